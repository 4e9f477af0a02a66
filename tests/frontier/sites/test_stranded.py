"""No page is stranded: what goes back to the store unasked is asked for again, whoever gave it back and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, collection_of
from webfountain.frontier.planning.earlier_due_times import SITES_PER_STEP
from webfountain.records import FetchResult
from webfountain.store.memory.sites import MemorySiteList
from webfountain.store.memory.store import MemoryStore

if TYPE_CHECKING:
    from webfountain.records import Fetch, SiteRecord

SITE = "http://one.example"
HTML = {"content-type": "text/html"}


def pages(n: int, *, site: str = SITE) -> list[str]:
    return [f"{site}/{number}" for number in range(n)]


def slow(fetch: Fetch, at: float) -> Answer:
    """Pages of 2.5 s, so that politeness takes 25 s for each: a hand of some is older than half a lease in the end."""
    return (404, {}, b"", 0.1) if fetch.kind == "robots" else (200, HTML, b"x", 2.5)


def until_idle(drive: Drive, *, within_s: float) -> None:
    end = drive.clock.now() + within_s
    while drive.frontier.finish_reason() is None and drive.clock.now() < end:
        drive.run(seconds=5.0)


def never_crawled(drive: Drive) -> int:
    return drive.store.census.statistics().pages["never-crawled"]


@pytest.mark.parametrize("recrawl", [True, False])
def test_pages_of_a_hand_that_was_given_back_because_it_got_old_are_crawled(recrawl: bool) -> None:
    drive = Drive(collection_of(pages(16)), slow, until_idle=True, recrawl=recrawl)
    until_idle(drive, within_s=3600.0)
    assert never_crawled(drive) == 0
    assert sorted(drive.asked()) == sorted(pages(16))
    assert drive.frontier.finish_reason() == "idle"


def test_many_sites_that_take_longer_than_a_lease_lose_no_page_at_their_end() -> None:
    sites = [f"http://s{number}.example" for number in range(10)]
    seeds = [page for site in sites for page in pages(330 + 7 * int(site[8]), site=site)]
    drive = Drive(collection_of(seeds, politeness="per_ip = false"), slow, until_idle=True, lease_seconds=300.0)
    until_idle(drive, within_s=20_000.0)
    assert never_crawled(drive) == 0
    assert len(drive.asked()) == len(seeds)


def test_a_page_that_is_given_back_while_more_of_its_site_is_ordered_is_crawled() -> None:
    """The order finds nothing, for the page goes back only after it; that is no reason to believe the site empty."""
    drive = Drive(collection_of(pages(1)), slow, until_idle=True)
    frontier = drive.frontier
    drive.run(until=lambda: drive.flying)  # robots.txt is asked
    batch = None
    while batch is None or not (batch.refills and drive.store.census.statistics().leased):
        if batch is not None:
            frontier.work.absorb(frontier.worker.run(batch))
        drive.clock.advance(0.1)
        while drive.flying and drive.flying[0][0] <= drive.clock.now():
            drive._land(drive.flying.pop(0)[2])
        batch = frontier.work.take()
    result = frontier.worker.run(batch)
    while (fetch := frontier.next()) is None:
        drive.clock.advance(0.1)
    frontier.landed(FetchResult(fetch, drive.clock.now(), 0.0, error="lapsed"))
    frontier.give_back(fetch)
    frontier.work.absorb(result)
    until_idle(drive, within_s=600.0)
    assert never_crawled(drive) == 0
    assert drive.asked() == pages(1)


class _SearchCounter(MemorySiteList):
    """How often the sites were looked through, but for the passes over parked ones."""

    times = 0

    def after(self, name: str, n: int) -> list[SiteRecord]:
        self.times += n > SITES_PER_STEP
        return super().after(name, n)


class _ListedStore(MemoryStore):
    sites: _SearchCounter

    def __init__(self) -> None:
        super().__init__(period_s=86_400.0)
        self.sites = _SearchCounter(self.table)


def test_the_end_is_reported_by_what_is_counted_and_no_site_is_searched_for_it() -> None:
    store = _ListedStore()
    drive = Drive(collection_of(pages(16)), slow, store=store, until_idle=True)
    begun = store.sites.times
    until_idle(drive, within_s=3600.0)
    assert drive.frontier.finish_reason() == "idle"
    assert store.sites.times - begun <= 2, "one walk of two calls, before the first site was taken"


def test_a_page_slower_than_its_lease_strands_no_other_page_of_its_site() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots":
            return 404, {}, b"", 0.1
        return 200, HTML, b"x", 90.0 if fetch.url.endswith("/2") and len(drive.asked()) < 4 else 0.1

    drive = Drive(collection_of(pages(8)), answer, lease_seconds=60.0, until_idle=True)
    until_idle(drive, within_s=3600.0)
    assert never_crawled(drive) == 0
    assert set(drive.asked()) == set(pages(8))
    drive.check_valid()


def test_a_project_whose_pages_are_slow_has_each_request_made_and_ends() -> None:
    drive = Drive(collection_of(pages(15), min_delay="25s"), slow, recrawl=False, lease_seconds=200.0)
    drive.run(seconds=1200.0)
    assert sorted(drive.asked()) == sorted(pages(15))
    assert not drive.frontier.has_pending()
