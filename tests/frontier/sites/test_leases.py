"""A site lease lasts while its process does; who lost one stops at once; what was learned of a site outlives a kill."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tests.frontier.drive import Answer, Drive, collection_of
from tests.frontier.test_frontier import linked, site_of_pages

if TYPE_CHECKING:
    from webfountain.records import Fetch

SITE = "http://one.example"
HTML = {"content-type": "text/html"}
HOUR = 3600.0
MANY = {"": linked(*[f"p{number}" for number in range(99)])} | {f"p{number}": b"x" for number in range(99)}


def take_over(drive: Drive, *, at: float) -> list[str]:
    """What another process gets."""
    return [lease.site for lease in drive.store.sites.activate(9, owner="another", until=at + 99 * HOUR, at=at)]


def test_a_page_slower_than_the_lease_is_fetched_once_and_settled() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        return (404, {}, b"", 0.1) if fetch.kind == "robots" else (200, HTML, b"<p>late", 700.0)

    drive = Drive(collection_of([f"{SITE}/"]), answer, lease_seconds=600.0)
    drive.run(until=lambda: drive.metrics.get("ant/settled") == 1)
    page = drive.page(f"{SITE}/")
    assert (page.state, page.digest) == ("crawled", drive.items[-1]["digest"])
    assert drive.asked() == [f"{SITE}/"]
    assert drive.metrics.get("ant/settle_lost") == drive.metrics.get("ant/sites_lost") == 0
    drive.check_valid()


def test_nobody_gets_a_site_whose_process_goes_on() -> None:
    drive = Drive(collection_of([f"{SITE}/"], min_delay="300s"), site_of_pages(MANY), lease_seconds=60.0)
    for _ in range(50):
        drive.run(seconds=100.0)
        assert take_over(drive, at=drive.clock.now()) == []
    assert len(drive.asked()) >= 15


def test_a_process_that_slept_for_longer_than_its_lease_goes_on_where_nobody_came() -> None:
    drive = Drive(collection_of([f"{SITE}/"]), site_of_pages(MANY), lease_seconds=60.0)
    drive.run(seconds=30.0)
    drive.clock.advance(HOUR)
    drive.run(seconds=HOUR)
    assert sorted(drive.asked()) == sorted(f"{SITE}/{path}" for path in MANY)
    assert drive.metrics.get("ant/settle_lost") == drive.metrics.get("ant/sites_lost") == 0


def test_who_lost_a_site_asks_nothing_more_of_it_and_settles_nothing() -> None:
    drive = Drive(collection_of([f"{SITE}/"]), site_of_pages(MANY, seconds=2.0), lease_seconds=60.0)
    drive.run(until=lambda: len(drive.asked()) == 3 and drive.flying)
    drive.clock.advance(61.0)
    assert take_over(drive, at=drive.clock.now()) == [SITE]
    asked, settled = len(drive.log), drive.metrics.get("ant/settled")
    drive.step()  # the heartbeat, with the next batch
    drive.run(seconds=HOUR)
    assert drive.metrics.get("ant/sites_lost") == 1
    assert drive.metrics.get("ant/settled") == settled
    assert drive.metrics.get("ant/settle_lost") >= 1
    assert len(drive.log) - asked <= 1, "what was ready before the heartbeat"
    assert drive.frontier.progress.statistics().active_sites == 0
    assert drive.frontier.progress.statistics().in_flight == 0
    drive.check_valid()


def test_a_site_that_was_lost_can_be_had_again_and_what_was_under_way_before_has_no_effect() -> None:
    drive = Drive(collection_of([f"{SITE}/"]), site_of_pages(MANY, seconds=200.0), lease_seconds=60.0)
    drive.run(until=lambda: len(drive.asked()) == 1 and drive.flying)
    drive.clock.advance(61.0)
    taken = drive.store.sites.activate(9, owner="another", until=drive.clock.now() + 1.0, at=drive.clock.now())
    assert len(taken) == 1
    drive.run(seconds=24 * HOUR)
    assert drive.metrics.get("ant/sites_lost") == 1
    assert set(drive.asked()) == {f"{SITE}/{path}" for path in MANY}
    assert drive.most_open <= 2, "the fetch of before, and one under the new lease"
    drive.check_valid()


def test_a_crawl_delay_holds_over_kills_and_robots_txt_is_asked_once() -> None:
    web = site_of_pages(MANY, robots=(200, b"User-agent: *\nCrawl-delay: 20"))
    first = Drive(collection_of([f"{SITE}/"]), web, lease_seconds=5.0)
    log = first.log
    first.run(seconds=6.0)
    for _ in range(30):
        killed = Drive(first.collection, web, store=first.store, clock=first.clock, lease_seconds=5.0)
        killed.run(seconds=6.0)
        log += killed.log
    times = [at for at, _, _ in log]
    assert [kind for _, kind, _ in log].count("robots") == 1
    assert len(times) >= 4
    assert all(later - earlier >= 20.0 for earlier, later in pairwise(times))


def test_a_refusal_holds_over_a_kill_that_follows_at_once() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        return (404, {}, b"", 0.1) if fetch.kind == "robots" else (429, {"retry-after": "9"}, b"", 0.1)

    drive = Drive(collection_of([f"{SITE}/", f"{SITE}/two"]), answer, lease_seconds=1.0)
    drive.run(until=lambda: len(drive.asked()) == 1 and not drive.flying)
    drive.step()
    drive.clock.advance(1.1)
    again = Drive(drive.collection, answer, store=drive.store, clock=drive.clock)
    again.run(seconds=30.0)
    assert again.log[0][0] - drive.log[-1][0] >= 9.0


def test_a_site_that_is_left_while_it_is_asked_comes_back() -> None:
    drive = Drive(collection_of([f"{SITE}/"], min_delay="7s"), site_of_pages(MANY, seconds=30.0))
    drive.run(until=lambda: len(drive.asked()) == 1 and drive.flying)
    drive.frontier.close()  # the crawl ended, and its grace
    assert drive.site(SITE).state.next_at == drive.clock.now() + 7.0
    again = Drive(drive.collection, site_of_pages(MANY), store=drive.store, clock=drive.clock)
    again.run(seconds=2 * HOUR)
    assert set(again.asked()) == {f"{SITE}/{path}" for path in MANY}
