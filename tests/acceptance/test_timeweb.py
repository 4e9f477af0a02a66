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
from webfountain.lab.demo.process import freshness, overlaps

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.lab.demo.process import Truth
    from webfountain.lab.demo.server import LoggedVisit
    from webfountain.records import PageRecord

MIN_INTERVAL = 0.5
"""Virtual days that a page is left alone at least."""
DAYS_S = (1.0, 4.0, 12.0)
"""Seconds in which a virtual day goes by: the web's time does not wait, so a busy machine is given longer days. What
holds of a day holds of each."""


class TimedPages(NamedTuple):
    """A crawl as the server and the live store saw it: fresh share by virtual day, the last truth, what is known."""

    fresh: dict[int, float]
    truth: Truth
    known: dict[str, PageRecord]
    visits: list[LoggedVisit]

    def mean(self, first: int, last: int) -> float:
        """Mean fresh share of these days, both included."""
        days = [share for day, share in self.fresh.items() if first <= day <= last]
        return sum(days) / len(days)


def observed(archive: Path, folder: Path, *, days: int, day_s: float = 1.0) -> TimedPages:
    """Crawl for so many virtual days, looking once a day."""
    store = folder / "store"
    with TimeServer(archive, rate=DAY / day_s, origin=START, latency=0.002) as server:
        collection = policy(
            folder,
            server.urls,
            change={"min_change": 0},
            cycle={"period": f"{day_s}s"},
            policies__default={
                "revisit": {"min_interval": f"{MIN_INTERVAL * day_s}s", "max_interval": f"{3.5 * day_s}s"}
            },
        )
        start = server.clock.utc(START)
        with Crawl(collection, store) as crawl:
            fresh = {}
            for day in range(1, days + 1):
                time.sleep(max(0.0, start + day * day_s - time.time()))
                if day >= 10:
                    fresh[day], truth, known = _check(server, store)
            visits = server.log()
            assert crawl.process.poll() is None, crawl.errors.read_text()
            crawl.terminate()
            assert crawl.wait(10) == 0
        return TimedPages(fresh, truth, known, visits)


def _check(server: TimeServer, store: Path) -> tuple[float, Truth, dict[str, PageRecord]]:
    """The live store first, then what was true when it had been read."""
    known = {record.url: record for record in records(store)}
    truth = server.truth(time.time())
    digests = {url: record.digest if record.state == "crawled" else None for url, record in known.items()}
    return freshness(truth, digests), truth, known


def check(observed_time: TimedPages, *, day_s: float = 1.0) -> None:
    """What holds at any length."""
    missing = observed_time.truth.pages.keys() - observed_time.known.keys()
    assert not missing, f"{len(missing)} reachable pages are not known: {sorted(missing)[:5]}"
    assert overlaps(observed_time.visits) == []
    early = too_early(observed_time.visits, MIN_INTERVAL * day_s)
    assert not early, f"{len(early)} fetched within min_interval: {early[:5]}"


def too_early(visits: list[LoggedVisit], least_s: float) -> list[tuple[str, float]]:
    """Pages that were fetched again within min_interval, with the seconds between. There are no sitemaps here."""
    times = defaultdict(list)
    for visit in visits:
        if not visit.path.startswith("/robots.txt"):
            times[visit.site + visit.path].append(visit.start)
    gaps = [(url, after - before) for url, at in times.items() for before, after in itertools.pairwise(at)]
    # Our time of a fetch is its end, seen from our side of the socket; the server's is its start.
    return [(url, gap) for url, gap in gaps if gap < least_s - 0.001]


@pytest.mark.shared
def test_the_copy_of_two_real_sites_is_fresh_after_twenty_days(shared_data: Path, tmp_path: Path) -> None:
    for day_s in DAYS_S:
        folder = tmp_path / f"{day_s}"
        folder.mkdir()
        observed_time = observed(shared_data / "timeweb" / "timeweb.zip", folder, days=20, day_s=day_s)
        print(observed_time.fresh)
        if observed_time.mean(15, 20) >= 0.93 and observed_time.truth.pages.keys() <= observed_time.known.keys():
            break
    check(observed_time, day_s=day_s)
    assert observed_time.mean(15, 20) >= 0.93


@pytest.mark.shared
@pytest.mark.soak
def test_the_copy_of_two_real_sites_stays_fresh_for_sixty_days(shared_data: Path, tmp_path: Path) -> None:
    observed_time = observed(shared_data / "timeweb" / "timeweb.zip", tmp_path, days=60)
    print(f"days 10-60: {observed_time.mean(10, 60):.4f}, day 60: {observed_time.fresh[60]:.4f}", observed_time.fresh)
    check(observed_time)
    assert observed_time.mean(10, 60) >= 0.93
    assert observed_time.fresh[60] >= 0.97
