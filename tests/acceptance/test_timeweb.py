"""Two real sites over real months, a virtual day a second: is our copy what the server holds?

A crawl with ``max_interval = 3.5 s`` (3.5 virtual days) runs beside the server; every virtual day the live store is
read and compared with the server's own truth. A perfect visit every 3.5 days gives a fresh share of .951 to .965.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.acceptance.crawls import Crawl, policy, records
from tests.servers.timeweb import DAY, START, TimeServer
from webfountain.demo.server import freshness, overlaps

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.demo.server import LoggedVisit, Truth
    from webfountain.records import PageRecord

MIN_INTERVAL = 0.5
"""Seconds, so virtual days, that a page is left alone at least."""


class Watched(NamedTuple):
    """A crawl as the server and the live store saw it: fresh share by virtual day, the last truth, what is known."""

    fresh: dict[int, float]
    truth: Truth
    known: dict[str, PageRecord]
    visits: list[LoggedVisit]

    def mean(self, first: int, last: int) -> float:
        """Mean fresh share of these days, both included."""
        days = [share for day, share in self.fresh.items() if first <= day <= last]
        return sum(days) / len(days)


def watch(archive: Path, folder: Path, *, days: int) -> Watched:
    """Crawl for so many virtual days, looking once a day."""
    store = folder / "store"
    with TimeServer(archive, rate=DAY, origin=START, latency=0.002) as server:
        collection = policy(
            folder,
            server.urls,
            change={"min_change": 0},
            cycle={"period": "1s"},
            policies__default={"revisit": {"min_interval": f"{MIN_INTERVAL}s", "max_interval": "3.5s"}},
        )
        start = server.clock.utc(START)
        with Crawl(collection, store) as crawl:
            fresh = {}
            for day in range(1, days + 1):
                time.sleep(max(0.0, start + day - time.time()))
                if day >= 10:
                    fresh[day], truth, known = _look(server, store)
            visits = server.log()
            assert crawl.process.poll() is None, crawl.errors.read_text()
            crawl.terminate()
            assert crawl.wait(10) == 0
        return Watched(fresh, truth, known, visits)


def _look(server: TimeServer, store: Path) -> tuple[float, Truth, dict[str, PageRecord]]:
    """The live store first, then what was true when it had been read."""
    known = {record.url: record for record in records(store)}
    truth = server.truth(time.time())
    digests = {url: record.digest if record.state == "crawled" else None for url, record in known.items()}
    return freshness(truth, digests), truth, known


def check(watched: Watched) -> None:
    """What holds at any length."""
    missing = watched.truth.pages.keys() - watched.known.keys()
    assert not missing, f"{len(missing)} reachable pages are not known: {sorted(missing)[:5]}"
    assert overlaps(watched.visits) == []
    early = too_early(watched.visits)
    assert not early, f"{len(early)} fetched within min_interval: {early[:5]}"


def too_early(visits: list[LoggedVisit]) -> list[tuple[str, float]]:
    """Pages that were fetched again within min_interval, with the seconds between. There are no sitemaps here."""
    times = defaultdict(list)
    for visit in visits:
        if not visit.path.startswith("/robots.txt"):
            times[visit.site + visit.path].append(visit.start)
    gaps = [(url, after - before) for url, at in times.items() for before, after in itertools.pairwise(at)]
    # Our time of a fetch is its end, seen from our side of the socket; the server's is its start.
    return [(url, gap) for url, gap in gaps if gap < MIN_INTERVAL - 0.001]


@pytest.mark.shared
def test_the_copy_of_two_real_sites_is_fresh_after_twenty_days(shared_data: Path, tmp_path: Path) -> None:
    watched = watch(shared_data / "timeweb" / "timeweb.zip", tmp_path, days=20)
    print(watched.fresh)
    check(watched)
    # The web's time does not wait: on a busy machine the first days go by before the crawl has seen all pages once.
    assert watched.mean(15, 20) >= 0.93


@pytest.mark.shared
@pytest.mark.soak
def test_the_copy_of_two_real_sites_stays_fresh_for_sixty_days(shared_data: Path, tmp_path: Path) -> None:
    watched = watch(shared_data / "timeweb" / "timeweb.zip", tmp_path, days=60)
    print(f"days 10-60: {watched.mean(10, 60):.4f}, day 60: {watched.fresh[60]:.4f}", watched.fresh)
    check(watched)
    assert watched.mean(10, 60) >= 0.93
    assert watched.fresh[60] >= 0.97
