"""Bodies wait for the reader threads by site: slow sites hold up each other, and nobody else."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from webfountain.clock import ManualClock
from webfountain.frontier.pages.guarded_examiner import ReaderTurns

if TYPE_CHECKING:
    from collections.abc import Mapping

THREADS = {"large": 1, "others": 2}


class Readers:
    """Reader threads in a time of their own: a body is read when its seconds are over."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.turns = ReaderTurns(THREADS, clock=self.clock.now)
        self.read: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self._busy: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, asyncio.Future[None]]] = []

    async def sleep(self, seconds: float) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._events, (self.clock.now() + seconds, next(self._numbers), over))
        await over

    async def body(self, site: str, seconds: float, lane: str) -> None:
        async with self.turns.turn(site, lane):
            self._busy[lane] += 1
            self.most[lane] = max(self.most[lane], self._busy[lane])
            await self.sleep(seconds)
            self._busy[lane] -= 1
        self.read[site] += 1

    async def site(self, name: str, seconds: float, *, every: float, unread: int = 2, lane: str = "others") -> None:
        """A site whose pages come at an interval, as long as few enough of them are unread."""
        waiting: set[asyncio.Task[None]] = set()
        while True:
            await self.sleep(every)
            waiting = {task for task in waiting if not task.done()}
            if len(waiting) < unread:
                waiting.add(asyncio.ensure_future(self.body(name, seconds, lane)))

    async def pass_time(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        while True:
            for _ in range(12):
                await asyncio.sleep(0)
            if not self._events or self._events[0][0] > end:
                return
            at, _, over = heapq.heappop(self._events)
            self.clock.set(at)
            if not over.done():
                over.set_result(None)


def read_by(sites: Mapping[str, tuple[float, str]], *, seconds: float = 300.0) -> Counter[str]:
    """How many bodies of each site are read: a body a second comes, which takes so long, in a lane."""

    async def run() -> Counter[str]:
        readers = Readers()
        tasks = [
            asyncio.ensure_future(readers.site(name, takes, every=1.0, lane=lane))
            for name, (takes, lane) in sites.items()
        ]
        await readers.pass_time(seconds)
        for task in tasks:
            task.cancel()
        for others in asyncio.all_tasks() - {asyncio.current_task()}:
            others.cancel()
        await asyncio.sleep(0)
        assert all(readers.most[lane] <= THREADS[lane] for lane in THREADS)
        return readers.read

    return asyncio.run(run())


@pytest.mark.untraced
@pytest.mark.parametrize("hostile", [1, 3, 12])
@pytest.mark.parametrize("lane", ["others", "large"])
def test_sites_that_are_slow_to_read_leave_a_good_site_its_pages(hostile: int, lane: str) -> None:
    """Of a good site 6 pages of 30 were read beside three such sites."""
    slow = {f"slow{number}": (2.0, lane) for number in range(hostile)}
    ordinary = {f"plain{number}": (0.005, lane) for number in range(hostile)}
    good = {"good": (0.005, "others")}
    assert read_by(good | slow)["good"] >= 0.8 * read_by(good | ordinary)["good"]


def test_slow_sites_share_what_is_left_to_them() -> None:
    read = read_by({"good": (0.005, "others")} | {f"slow{number}": (2.0, "others") for number in range(3)})
    shares = [read[f"slow{number}"] for number in range(3)]
    assert min(shares) >= 40
    assert max(shares) - min(shares) <= 5


def test_where_all_sites_are_alike_no_thread_is_kept_free() -> None:
    read = read_by({f"slow{number}": (2.0, "others") for number in range(3)})
    assert sum(read.values()) >= 290


def test_a_site_that_hides_slow_pages_among_quick_ones_goes_after_the_others() -> None:
    async def run() -> tuple[int, int]:
        readers = Readers()

        async def sly(name: str) -> None:
            for takes in itertools.cycle((0.005, 2.0)):
                await readers.body(name, takes, "others")

        tasks = [asyncio.ensure_future(sly(f"sly{number}")) for number in range(3)]
        tasks.append(asyncio.ensure_future(readers.site("good", 0.005, every=1.0)))
        await readers.pass_time(300.0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)
        return readers.read["good"], sum(readers.read[f"sly{number}"] for number in range(3))

    good, sly = asyncio.run(run())
    assert good >= 240
    assert sly >= 150


def test_a_body_that_waits_in_vain_takes_no_thread() -> None:
    async def run() -> None:
        readers = Readers()
        first, second = (asyncio.ensure_future(readers.body(name, 1.0, "large")) for name in ("one", "two"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second.cancel()
        third = asyncio.ensure_future(readers.body("three", 1.0, "large"))
        await readers.pass_time(5.0)
        assert first.done()
        assert third.done()
        assert readers.read == {"one": 1, "three": 1}

    asyncio.run(run())
