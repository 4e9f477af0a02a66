"""How far one process has come, and whether it goes on: what it handed out, what is under way, what is left to do.

Place in the walk: asked before every fetch, told what goes out, what landed and what the worker has done. Three things
keep the next fetch back: the budget (pages a period, pages in all), a worker that is behind, and the end. It counts
and compares; whose turn it is the ant knows, and what is waiting in the store the store said with the last batch.

What recurs, and how fast: the crawl's budget spread over a period, and the chores that come round by the clock.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.frontier.sites.politeness import ROBOTS_LIFE_S

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from webfountain.config import FountainConfig
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.policy import CycleTable
    from webfountain.records import Fetched, Link
    from webfountain.store.contract import Statistics

__all__ = [
    "COUNTS",
    "LOOKS",
    "MAX_PENDING_BYTES",
    "MAX_PENDING_VISITS",
    "Agenda",
    "FrontierStatistics",
    "Looks",
    "Pace",
    "Progress",
    "chores",
]

_BURST: Final = 0.02
"""Share of a period's capacity that may go out at once after a pause, so that a stall is made up for, not a flood."""
_STALL_S: Final = 0.25
"""A stall of this length is always made up for, however short the period."""


class Pace:
    """`capacity` pages per `period` seconds, evenly: a token bucket. None: as fast as politeness allows."""

    __slots__ = ("_burst_s", "_step", "_virtual")

    def __init__(self, capacity: int | None, period: float, *, start: float) -> None:
        self._step = 0.0 if capacity is None else period / capacity
        self._burst_s = max(_BURST * period, _STALL_S, self._step)
        self._virtual = start

    def open_at(self) -> float:
        """From when on one more page fits the budget."""
        return -inf if not self._step else self._virtual

    def take(self, at: float, *, share: float = 1.0) -> None:
        """Spend one page of the budget at `at`; of the whole budget `share` is the caller's."""
        self._virtual = max(self._virtual, at - self._burst_s) + self._step / share


class Agenda:
    """Chores by the clock: each name has an interval and is due when that has passed since it was last done."""

    __slots__ = ("_due", "_every")

    def __init__(self, every: dict[str, float], *, start: float) -> None:
        self._every = every
        self._due = dict.fromkeys(every, start)

    def take(self, at: float, *names: str) -> list[str]:
        """Those of the chores that are due; they count as done now."""
        due = [name for name in names if self._due[name] <= at]
        for name in due:
            self._due[name] = at + self._every[name]
        return due


LOOK_S: Final = 0.5
"""A process that has something to do asks the store so often what others left there."""


class Seldom(NamedTuple):
    """How seldom an idle process asks in the end: after `each_s` for each process there is, `longest_s` at most."""

    each_s: float
    longest_s: float


LOOKS: Final = Seldom(1 / 8, 10.0)
"""Notes, letters and sites. Up to 80 idle processes together ask eight times a second, so that a note waits no longer
for many of them than for one."""
COUNTS: Final = Seldom(1 / 16, 60.0)
"""The counts of a shared store, which are a sum over all its shards."""


class Looks:
    """When a process asks the store: twice a second with something to do, else twice as long each time, with jitter.

    The jitter keeps a thousand that fell idle together from asking together.
    """

    __slots__ = ("_due", "_last", "_pause", "_rng", "_seldom")

    def __init__(self, seldom: Seldom, *, rng: random.Random, start: float) -> None:
        self._seldom = seldom
        self._rng = rng
        self._pause = LOOK_S
        self._last = -inf
        self._due = start

    def due(self, at: float, *, idle: bool, processes: int) -> bool:
        """Whether to ask now; if so it counts as done. Who is idle no longer need not wait for the end of its pause."""
        if not idle:
            self._pause = LOOK_S
            self._due = min(self._due, self._last + LOOK_S)
        if self._due > at:
            return False
        more = self._pause - LOOK_S
        self._last, self._due = at, at + LOOK_S + (more * self._rng.uniform(0.5, 1.0) if more else 0.0)
        longest = max(min(self._seldom.each_s * processes, self._seldom.longest_s), LOOK_S)
        self._pause = min(2 * self._pause, longest)
        return True


def chores(lease_s: float, period_s: float) -> dict[str, float]:
    """What recurs by the clock in a crawl, and how often, s: site leases last `lease_s`, a period `period_s`."""
    return {
        "renew": lease_s / 3,
        "tidy": max(period_s, 60.0),
        "robots": ROBOTS_LIFE_S / 100,
        "waiting": 2.0,
        "shares": 5.0,
        "importance": 2.0,
    }


MAX_PENDING_BYTES: Final = 32_000_000
MAX_PENDING_VISITS: Final = 512
"""Bodies and visits that wait for the worker; above either no new fetch goes out, so memory stays bounded."""
_POLL_S: Final = 0.02
IDLE_S: Final = 60.0
"""`--until-idle`: idle is when no never-crawled URL comes due within this time (DESIGN.md section 7)."""


class FrontierStatistics(msgspec.Struct, frozen=True):
    """A frozen snapshot of one crawling process."""

    store: Statistics
    active_sites: int
    in_flight: int
    pending_visits: int
    pending_bytes: int
    handed_out: int


class Progress:
    """One process on its way. `start` is now, UTC seconds."""

    def __init__(self, config: FountainConfig, cycle: CycleTable, *, stored: Statistics, start: float) -> None:
        self._config = config
        self._most = inf if config.max_pages is None else config.max_pages
        self._pace = Pace(cycle.capacity_pages_per_period, cycle.period_s, start=start)
        self.share = 1.0
        """Which part of the crawl's budget is this process's."""
        self._started = start
        self._looked_at = -inf
        self._never_crawled_due: float | None = None
        self._immediate_left = False
        self._known: list[Link] = []
        self._handed_out = 0
        self._pending_visits = 0
        self._written_visits = 0
        self._pending_bytes = 0
        self._examined_bytes = 0
        self.stored = stored
        """What the store held after the last batch."""
        self.working = False
        """Whether a batch is with the worker."""
        self.stopped = False
        """Whether nothing more may go out, because somebody said so."""
        self.lacks_room = False
        """Whether there is no room on the disk for what would come."""

    # -------------------------------------------------------------- the budget

    def open_at(self) -> float:
        """From when on one more fetch may go out; inf: by time alone none may."""
        if self.stopped or self.lacks_room or self._handed_out >= self._most or self.congested():
            return inf
        return self._pace.open_at()

    def congested(self) -> bool:
        """Whether the worker is so far behind that nothing more should be fetched."""
        held = self._pending_bytes + self._examined_bytes
        return held > MAX_PENDING_BYTES or self._pending_visits > MAX_PENDING_VISITS

    def spend(self, at: float) -> None:
        """One page of the budget goes out."""
        self._pace.take(at, share=self.share)
        self._handed_out += 1

    # ---------------------------------------------------------- with the worker

    @contextmanager
    def examining(self, fetched: Fetched) -> Iterator[None]:
        """While a body waits for a thread that examines it, and for the end of that, it is in memory."""
        self._examined_bytes += len(fetched.body)
        try:
            yield
        finally:
            self._examined_bytes -= len(fetched.body)

    def wait_for_worker(self, visit: Visit) -> None:
        """A visit is in memory until the worker has written it."""
        self._pending_visits += 1
        self._pending_bytes += _size_of(visit)

    async def all_written(self, *, within_s: float) -> None:
        """Until what waits for the worker now is in the store, or the time is over."""
        awaited = self._written_visits + self._pending_visits
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._written_visits < awaited:
                    await asyncio.sleep(_POLL_S)

    def absorb(self, result: BatchResult) -> None:
        """A batch came back."""
        self.working = False
        self.lacks_room = result.lacks_room
        visits = [ended.visit for ended in result.batch.ended if ended.visit is not None]
        self._pending_visits -= len(visits)
        self._written_visits += len(visits)
        self._pending_bytes -= sum(map(_size_of, visits))
        if result.statistics is not None:
            self.stored = result.statistics
        self._never_crawled_due = result.never_crawled_due
        if result.never_crawled_due is not None:
            self._looked_at = result.batch.at
        self._immediate_left = result.immediate_left
        self._known += result.known

    def take_known(self) -> list[Link]:
        """The offered requests that turned out to be known since this was asked last: nothing will come of them."""
        known, self._known = self._known, []
        return known

    # ----------------------------------------------------------------- the end

    def is_busy(self, sites: ActiveList, batch: Batch) -> bool:
        """Anything in flight, or waiting to be settled: `batch` is the one being gathered."""
        return bool(sites.in_flight or self._pending_visits or batch.has_ends())

    def has_pending(self, sites: ActiveList, batch: Batch) -> bool:
        """Whether any URL is left to ask once: never-crawled, leased or offered."""
        left = self.stored.pages["never-crawled"] + self.stored.immediate > sites.kept
        return left or self.working or self.is_busy(sites, batch)

    def finish_reason(self, at: float, sites: ActiveList, batch: Batch, *, all_idle: float | None = -inf) -> str | None:
        """Why the crawl should close now; None: it goes on. `all_idle`: a moment at which every ant of the crawl had
        nothing to do; None: there was none."""
        if self._config.max_seconds is not None and at - self._started >= self._config.max_seconds:
            return "max_seconds"
        if self._handed_out >= self._most and not self.is_busy(sites, batch):
            return "max_pages"
        if not self._config.until_idle or all_idle is None:
            return None
        return "idle" if self._is_idle(at, sites, batch) and self._looked_at >= all_idle else None

    def is_resting(self, at: float, sites: ActiveList, batch: Batch) -> bool:
        """Nothing in flight, and nothing that this process holds comes due within IDLE_S."""
        return not (self.is_busy(sites, batch) or self._immediate_left or sites.has_before(at + IDLE_S))

    def _is_idle(self, at: float, sites: ActiveList, batch: Batch) -> bool:
        """DESIGN.md section 7: nothing in flight, and no never-crawled URL comes due within IDLE_S."""
        if self.working or self._never_crawled_due is None or not self.is_resting(at, sites, batch):
            return False
        return self._never_crawled_due > at + IDLE_S

    def statistics(self, sites: ActiveList) -> FrontierStatistics:
        """A frozen snapshot."""
        return FrontierStatistics(
            store=self.stored,
            active_sites=sites.statistics().sites,
            in_flight=sites.in_flight,
            pending_visits=self._pending_visits,
            pending_bytes=self._pending_bytes,
            handed_out=self._handed_out,
        )


def _size_of(visit: Visit) -> int:
    """About how many bytes a visit holds in memory."""
    return len(visit.fetched.body) + 3 * len(visit.reading.text)
