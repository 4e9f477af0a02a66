"""A worker that is stuck in a batch bounds what is fetched: no new fetch goes out above the pending visits or bytes."""

from __future__ import annotations

import heapq
from math import inf
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, collection_of
from tests.frontier.test_frontier import linked
from webfountain.frontier.progress import MAX_PENDING_BYTES, MAX_PENDING_VISITS, FrontierStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.records import Fetch

SITES, LINKS = 30, 60
LARGE = bytes(4_000_000)


def crawl_of(page: bytes) -> Drive:
    """A crawl of many sites without any delay, whose pages but for the first of each are `page`."""
    home = linked(*[f"p{n}" for n in range(LINKS)])

    def answer(fetch: Fetch, at: float) -> Answer:
        path = fetch.url.split("/", 3)[3]
        if path == "robots.txt":
            return 404, {}, b"", 0.1
        return 200, {"content-type": "text/html" if path == "" else "image/png"}, page if path else home, 0.1

    seeds = [f"http://s{n}.example/" for n in range(SITES)]
    return Drive(collection_of(seeds, min_delay="0s", delay_factor=0, politeness="per_ip = false"), answer, hand=LINKS)


def fetch_and_land_one(drive: Drive) -> None:
    while (fetch := drive.frontier.next()) is not None:
        drive._send(fetch)
    at, _, fetched = heapq.heappop(drive.flying)
    drive.clock.set(max(at, drive.clock.now()))
    drive._land(fetched)


@pytest.mark.parametrize(
    ("page", "bound", "pending"),
    [
        (b"small", MAX_PENDING_VISITS, lambda now: now.pending_visits),
        (LARGE, MAX_PENDING_BYTES, lambda now: now.pending_bytes),
    ],
)
def test_above_the_bound_nothing_goes_out_until_the_worker_comes_back(
    page: bytes, bound: int, pending: Callable[[FrontierStatistics], int]
) -> None:
    drive = crawl_of(page)
    drive.run(until=lambda: drive.metrics.get("ant/leased") >= SITES * LINKS // 2)
    while (stuck := drive.frontier.work.take()) is None:
        fetch_and_land_one(drive)
    while pending(drive.frontier.progress.statistics()) <= bound:
        fetch_and_land_one(drive)
    asked, flying, passed = len(drive.log), len(drive.flying), drive.frontier.progress.statistics()
    drive.run()
    drive.clock.advance(3600.0)
    assert drive.frontier.next() is None
    assert drive.frontier.wake_at() == inf
    assert len(drive.log) == asked
    # What was in flight when the bound was passed has landed all the same.
    now = drive.frontier.progress.statistics()
    assert now.in_flight == 0
    assert now.pending_visits == passed.pending_visits + flying
    drive.frontier.work.absorb(drive.frontier.worker.run(stuck))
    drive.run(until=lambda: len(drive.log) > asked)
    assert len(drive.log) > asked
