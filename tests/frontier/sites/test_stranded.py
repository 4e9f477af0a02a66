"""No page is stranded: what goes back to the store unasked is asked for again, whoever gave it back and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, collection_of

if TYPE_CHECKING:
    from webfountain.records import Fetch

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
    return drive.store.statistics().pages["never-crawled"]


@pytest.mark.parametrize("recrawl", [True, False])
def test_pages_of_a_hand_that_was_given_back_because_it_got_old_are_crawled(recrawl):
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


def test_a_page_slower_than_its_lease_strands_no_other_page_of_its_site() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots":
            return 404, {}, b"", 0.1
        return 200, HTML, b"x", 90.0 if fetch.url.endswith("/2") and len(drive.asked()) < 4 else 0.1

    drive = Drive(collection_of(pages(8)), answer, lease_seconds=60.0, until_idle=True)
    until_idle(drive, within_s=3600.0)
    assert never_crawled(drive) == 0
    assert set(drive.asked()) == set(pages(8))
    drive.store.check_valid()


def test_a_project_whose_pages_are_slow_has_each_request_made_and_ends() -> None:
    drive = Drive(collection_of(pages(15), min_delay="25s"), slow, recrawl=False, lease_seconds=200.0)
    drive.run(seconds=1200.0)
    assert sorted(drive.asked()) == sorted(pages(15))
    assert not drive.frontier.has_pending()
