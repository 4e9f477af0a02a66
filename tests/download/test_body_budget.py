"""The bytes of bodies that a crawl holds are bounded; everybody's body arrives all the same."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
from typing import TYPE_CHECKING

import pytest

from tests.download.peers import fetcher, ok, terms
from webfountain.download import time_limits
from webfountain.download.body_budget import BodyBudget
from webfountain.download.connection import Exchange
from webfountain.download.time_limits import TimeLimits
from webfountain.records import Fetch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from webfountain.download.body_budget import HeldBody
    from webfountain.download.connection import Sink
    from webfountain.download.fetcher import Fetcher
    from webfountain.download.http_reader import ResponseReader
    from webfountain.records import FetchResult

MEGABYTE = 1_000_000
PAGE_BYTES = 7_500_000
PIECE = bytes(50_000)


@contextlib.asynccontextmanager
async def sites(many: int, answer: bytes = b"") -> AsyncIterator[list[tuple[str, int]]]:
    """Address and port of so many. Every page is the same: `answer`, or else 7.5 MB, as fast as they are read."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {PAGE_BYTES}\r\n\r\n"
            writer.write(answer or head.encode())
            for _ in range(0 if answer else PAGE_BYTES // len(PIECE)):
                writer.write(PIECE)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, [f"127.0.1.{nth + 1}" for nth in range(many)], 0)
    try:
        yield [listening.getsockname() for listening in server.sockets]
    finally:
        server.close()


async def get(client: Fetcher, site: tuple[str, int], held: HeldBody, *, max_bytes: int = 10_000_000) -> FetchResult:
    """The home page of a site."""
    base = f"http://{site[0]}:{site[1]}"
    return await client.fetch(
        Fetch(1, "page", f"{base}/", base, site[0]), terms(timeout=240, max_bytes=max_bytes), held=held
    )


def test_a_hundred_large_pages_at_once_hold_at_most_the_budget_and_all_arrive() -> None:
    async def run() -> None:
        most = 256 * MEGABYTE
        budget = BodyBudget(most)

        async def one(client: Fetcher, site: tuple[str, int]) -> int:
            held = budget.hold()
            fetched = await get(client, site, held)
            assert budget.statistics().held <= most
            held.release()
            return len(fetched.body)

        async with sites(100) as all_sites, fetcher() as client:
            assert await asyncio.gather(*(one(client, site) for site in all_sites)) == [PAGE_BYTES] * 100
        found = budget.statistics()
        assert 100 * MEGABYTE < found.peak <= most
        assert found.pauses > 0
        assert (found.held, found.under_way, found.paused, found.landed) == (0, 0, 0, 0)

    asyncio.run(run())


def test_bodies_that_unpack_from_one_packet_stop_those_that_have_not_begun() -> None:
    async def run() -> None:
        budget = BodyBudget(64 * MEGABYTE)
        landed: asyncio.Queue[HeldBody] = asyncio.Queue()

        async def one(client: Fetcher, site: tuple[str, int]) -> int:
            held = budget.hold()
            fetched = await get(client, site, held)
            landed.put_nowait(held)
            return len(fetched.body)

        page = gzip.compress(random.Random(1).randbytes(500) * (PAGE_BYTES // 500))  # 40 kB
        answer = ok(page, "Content-Encoding: gzip", "Connection: close")
        async with sites(40, answer) as all_sites, fetcher() as client:
            arriving = asyncio.gather(*(one(client, site) for site in all_sites))
            first: list[HeldBody] = []
            while not budget.statistics().paused:  # so another one lands
                first.append(await landed.get())
            assert len(first) + landed.qsize() <= 8
            for held in first:
                held.release()
            for _ in range(40 - len(first)):
                (await landed.get()).release()
            assert await arriving == [PAGE_BYTES] * 40
        found = budget.statistics()
        assert found.peak <= 64 * MEGABYTE
        assert (found.held, found.under_way, found.paused, found.landed) == (0, 0, 0, 0)

    asyncio.run(run())


def test_bodies_larger_than_the_budget_arrive_one_after_the_other() -> None:
    async def run() -> None:
        budget = BodyBudget(MEGABYTE)

        async def one(client: Fetcher, site: tuple[str, int]) -> int:
            held = budget.hold()
            fetched = await get(client, site, held)
            held.release()
            return len(fetched.body)

        async with sites(5) as all_sites, fetcher() as client:
            assert await asyncio.gather(*(one(client, site) for site in all_sites)) == [PAGE_BYTES] * 5
        assert budget.statistics().peak < 2 * PAGE_BYTES

    asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (ok(bytes(500_000))[:-1], "cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + bytes(3 * MEGABYTE), "too-large"),
        (ok(b"x" * 500_000, "Content-Encoding: gzip"), "bad-response"),
        (ok(gzip.compress(bytes(500_000))[:-9], "Content-Encoding: gzip"), "cut"),
    ],
)
def test_what_failed_gives_its_bytes_back(answer: bytes, word: str) -> None:
    async def run() -> None:
        budget = BodyBudget(MEGABYTE)
        async with sites(1, answer) as (site,), fetcher() as client:
            fetched = await get(client, site, budget.hold(), max_bytes=2 * MEGABYTE)
            assert fetched.error == word
        found = budget.statistics()
        assert (found.held, found.under_way, found.paused, found.landed) == (0, 0, 0, 0)

    asyncio.run(run())


def test_a_fetch_that_is_cancelled_while_it_is_stopped_gives_its_bytes_back() -> None:
    async def run() -> None:
        budget = BodyBudget(MEGABYTE)
        async with sites(4) as (first, *others), fetcher() as client:
            landed = budget.hold()
            await get(client, first, landed)  # nobody examines it: all others stand still
            waiting = [asyncio.create_task(get(client, site, budget.hold())) for site in others]
            while budget.statistics().paused < 3:
                await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.gather(waiting[0], return_exceptions=True)
            while budget.statistics().under_way > 2:
                await asyncio.sleep(0)
            client._pool.abort()
            assert {(await each).error for each in waiting[1:]} == {"cut"}
            landed.release()
        found = budget.statistics()
        assert (found.held, found.under_way, found.paused, found.landed) == (0, 0, 0, 0)

    asyncio.run(run())


class Clock:
    """In the place of the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now


def test_a_pause_of_reading_does_not_count_as_time_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(time_limits, "time", clock)

    async def run() -> None:
        exchange = Exchange(_unwanted, TimeLimits(30.0, 100.0))
        clock.now += 10
        exchange.pause()
        clock.now += 3600
        assert exchange.late(clock.now) is None
        exchange.resume()
        assert clock.now - exchange.time.started == 10
        clock.now += 19
        assert exchange.late(clock.now) is None
        clock.now += 1
        assert exchange.late(clock.now) == "timeout"

    asyncio.run(run())


def _unwanted(_: ResponseReader) -> Sink:
    raise AssertionError("nothing comes")
