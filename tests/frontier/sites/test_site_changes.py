"""A crawl requests dead links by what it learned of dead links, and pages that came and went sooner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.frontier.drive import Drive, collection_of
from tests.frontier.sites.street import SEVEN, Street
from webfountain.core.buckets import bucket_of
from webfountain.core.change_rate import Prior, append
from webfountain.frontier.batch import remembered
from webfountain.frontier.sites.site_changes import SiteChanges
from webfountain.frontier.visit import Visit
from webfountain.records import Fetch, FetchResult, Lease, LeaseId, OutcomeKind, PageRecord, SiteState
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from tests.frontier.drive import Answer

HOME = "http://home.example"
DAY = 86_400.0
DEAD = [f"{HOME}/dead{number}" for number in range(40)]
COMING = f"{HOME}/coming"


@pytest.fixture(scope="module")
def drive() -> Drive:
    """A hundred days of a site of one page with forty dead links, and of a page that is gone for three weeks of six."""
    begin: list[float] = []

    def web(fetch: Fetch, at: float) -> Answer:
        begin[:] = begin or [at]
        if fetch.url == f"{HOME}/":
            links = "".join(f"<a href='{url}'>x</a>" for url in (*DEAD, COMING))
            return 200, {"content-type": "text/html"}, links.encode(), 0.01
        if fetch.url == COMING and (at - begin[0]) // (21 * DAY) % 2 == 0:
            return 200, {"content-type": "text/html"}, b"here", 0.01
        return 404, {}, b"", 0.01

    driven = Drive(collection_of([f"{HOME}/"], delay_factor=0), web)
    driven.run(seconds=100 * DAY)
    return driven


def visited(before: PageRecord, kind: OutcomeKind, *, state: SiteState, changed: bool = False) -> PageRecord:
    """The record of a page after a visit ten days after the last one, on a site with this state."""
    fetch = Fetch(1, "page", before.url, HOME, None, Lease(LeaseId(HOME, 1, 1), b"k", before))
    history = append(before.history, 10 * DAY, changed) if kind != "new" else b""
    checked = {"history": history, "checks": before.checks + (kind != "new"), "changes": before.changes + changed}
    record = msgspec.structs.replace(before, state="crawled", digest="new", **checked)
    visit = Visit(FetchResult(fetch, 20 * DAY, 0.1, 200), kind, record)
    return SiteChanges(state).add(before, visit, price=None, believed=Prior(10 * DAY), fastest_s=DAY / 96).record


def test_a_first_copy_has_the_bucket_of_its_site() -> None:
    new = PageRecord(HOME, first_seen=20 * DAY)
    assert visited(new, "new", state=SiteState()).bucket == bucket_of(10 * DAY, DAY / 96)
    lively = SiteState(changes=98, observed_time=80 * DAY)
    assert visited(new, "new", state=lively).bucket == bucket_of(DAY, DAY / 96)


def test_a_page_that_changed_has_the_bucket_of_faster_pages_and_a_failed_one_keeps_its_own() -> None:
    known = PageRecord(HOME, "crawled", digest="old", last_crawled=10 * DAY, bucket=77)
    changed, same = (visited(known, kind, state=SiteState(), changed=kind == "changed") for kind in ("changed", "same"))
    assert changed.bucket < same.bucket
    assert visited(known, "failed", state=SiteState()).bucket == 77


def test_dead_links_are_requested_ever_more_rarely(drive: Drive) -> None:
    start = drive.log[0][0]
    days = [(at - start) / DAY for at, _, url in drive.log if url in DEAD]
    early, late = (sum(low <= day < high for day in days) for low, high in ((0, 25), (75, 100)))
    assert early >= 80  # the first time, and soon after that
    assert late < early / 2


def test_a_page_that_had_a_copy_is_found_within_days_of_its_return(drive: Drive) -> None:
    start = drive.log[0][0]
    days = [(at - start) / DAY for at, _, url in drive.log if url == COMING]
    for back in (42, 84):
        assert any(back <= day < back + 10 for day in days), f"from day {back} on"


def test_what_was_learned_of_dead_links_is_stored_with_the_site(drive: Drive) -> None:
    drive.frontier.close()
    record = drive.store.sites.get(HOME)
    assert record is not None
    state = remembered(record)
    assert state.revived == 2
    assert state.born == 0
    assert state.unborn_time > 40 * 50 * DAY
    gone = drive.store.pages.get(HOME, fingerprint(DEAD[0]))
    assert gone is not None
    assert gone.due is not None
    assert gone.last_crawled is not None
    assert DAY <= gone.due - gone.last_crawled <= 1000 * DAY


def test_the_time_of_a_dead_link_is_counted_once_though_fetches_failed_meanwhile() -> None:
    begin: list[float] = []

    def web(fetch: Fetch, at: float) -> Answer:
        begin[:] = begin or [at]
        if fetch.url == f"{HOME}/":
            return 200, {"content-type": "text/html"}, b"<a href='/dead0'>x</a>", 0.01
        fails = fetch.url == DEAD[0] and DAY < at - begin[0] < 60 * DAY
        return 503 if fails else 404, {}, b"", 0.01

    drive = Drive(collection_of([f"{HOME}/"], delay_factor=0), web)
    drive.run(seconds=90 * DAY)
    times = [at for at, _, url in drive.log if url == DEAD[0]]
    assert any(DAY < at - begin[0] < 60 * DAY for at in times)  # a failure
    assert times[-1] - begin[0] > 60 * DAY
    drive.frontier.close()
    record = drive.store.sites.get(HOME)
    assert record is not None
    assert remembered(record).unborn_time == pytest.approx(times[-1] - times[0], abs=60)


def test_a_page_that_is_linked_before_it_is_published_is_found_sooner_than_an_old_dead_link() -> None:
    """The home page has forty dead links. On day 50 it gets one more, and on day 53 this and one of the forty get a
    page.
    """
    begin: list[float] = []
    early = f"{HOME}/early"

    def web(fetch: Fetch, at: float) -> Answer:
        begin[:] = begin or [at]
        day = (at - begin[0]) / DAY
        if fetch.url == f"{HOME}/":
            links = "".join(f"<a href='{url}'>x</a>" for url in (*DEAD, *[early] * (day >= 50)))
            return 200, {"content-type": "text/html"}, f"{links} {int(day)}".encode(), 0.01
        if fetch.url in (early, DEAD[-1]) and day >= 53:
            return 200, {"content-type": "text/html"}, b"here", 0.01
        return 404, {}, b"", 0.01

    drive = Drive(collection_of([f"{HOME}/"], delay_factor=0, rest="[change]\nmin_change = 0\n"), web)
    drive.run(seconds=60 * DAY)
    assert drive.page(early).state == "crawled"
    assert drive.page(DEAD[-1]).state == "gone"
    drive.frontier.close()
    record = drive.store.sites.get(HOME)
    assert record is not None
    found, _, urls, asked = remembered(record).unborn_added
    assert (found, urls) == (1, 1)
    assert asked >= 2, "the first request came before the page"


def test_dead_links_of_a_directory_whose_links_come_alive_are_requested_more_often() -> None:
    """Of two directories with thirty dead links each, one gets ten pages in the course of time."""
    begin: list[float] = []
    urls = [f"{HOME}/{part}/{number}" for part in ("coming", "never") for number in range(30)]

    def web(fetch: Fetch, at: float) -> Answer:
        begin[:] = begin or [at]
        if fetch.url == f"{HOME}/":
            return 200, {"content-type": "text/html"}, "".join(f"<a href='{url}'>x</a>" for url in urls).encode(), 0.01
        number = int(fetch.url.rpartition("/")[2]) if fetch.url in urls else 30
        if "/coming/" in fetch.url and number < 10 and at - begin[0] > (10 + 5 * number) * DAY:
            return 200, {"content-type": "text/html"}, b"here", 0.01
        return 404, {}, b"", 0.01

    drive = Drive(collection_of([f"{HOME}/"], delay_factor=0), web)
    drive.run(seconds=120 * DAY)
    late = [url for at, kind, url in drive.log if kind == "page" and at - begin[0] > 60 * DAY]
    still_dead = [f"{HOME}/{part}/{number}" for part in ("coming", "never") for number in range(10, 30)]
    coming, never = (sum(part in url for url in late if url in still_dead) for part in ("/coming/", "/never/"))
    assert coming > 1.5 * never
    drive.frontier.close()
    record = drive.store.sites.get(HOME)
    assert record is not None
    state = remembered(record)
    assert state.unborn == 60
    born = {name: found for name, found, _ in state.unborn_classes}
    assert born == {"link /coming/": 10, "link /never/": 0}


def test_urls_of_a_directory_that_had_pages_are_fetched_before_those_of_a_dead_one() -> None:
    street = Street()
    known = (("", (40.0, 20.0)), ("unrecorded /dead/", (20.0, 0.0)), ("unrecorded /live/", (20.0, 20.0)))
    lease = street.enter(SEVEN[0], 0, state=SiteState(first_fetches=known))
    street.deal(lease, [f"{part}/{number}" for number in range(8) for part in ("dead", "live")])
    asked = []
    for at in range(0, 160, 10):
        fetch = street.next(float(at))
        asked.append(fetch.url)
        street.land(fetch, at + 0.5)
    assert ["/live/" in url for url in asked] == [True] * 8 + [False] * 8


def test_new_urls_give_way_to_known_pages_if_their_directory_is_dead_and_the_price_is_high() -> None:
    state = SiteState(first_fetches=(("", (40.0, 20.0)), ("unrecorded /dead/", (20.0, 0.0))))
    changes, believed = SiteChanges(state), Prior(10 * DAY)

    def part(path: str, price: float | None) -> float:
        return changes.part_of_share(PageRecord(f"{HOME}{path}"), price=price, believed=believed)

    assert part("/dead/1", 10 * DAY) < 0.1
    assert part("/dead/1", DAY) == pytest.approx(10 * part("/dead/1", 10 * DAY), rel=0.01)
    assert part("/dead/1", None) == 1.0, "only a crawl with prices compares them"
    assert part("/other/1", 10 * DAY) == pytest.approx((20 + 4) / (40 + 4))


def test_first_fetches_are_counted_by_source_and_directory_and_stored_with_the_site() -> None:
    urls = [f"{HOME}/{part}/{number}" for part in ("dead", "live") for number in range(5)]

    def web(fetch: Fetch, at: float) -> Answer:
        links = "".join(f"<a href='{url}'>x</a>" for url in urls) if fetch.url == f"{HOME}/" else ""
        return 404 if "/dead/" in fetch.url else 200, {"content-type": "text/html"}, f"{links} here".encode(), 0.01

    drive = Drive(collection_of([f"{HOME}/"], delay_factor=0), web)
    drive.run(seconds=DAY)
    drive.frontier.close()
    record = drive.store.sites.get(HOME)
    assert record is not None
    counted = dict(remembered(record).first_fetches)
    assert counted == {"": (11, 6), "seed ": (1, 1), "link /dead/": (5, 0), "link /live/": (5, 5)}


def test_a_gone_page_is_put_off_while_the_price_is_higher_than_its_request_is_worth() -> None:
    changes, believed = SiteChanges(SiteState(unborn=1, unborn_asked=1, unborn_time=100 * DAY)), Prior(10 * DAY)
    gone = PageRecord(DEAD[0], state="gone", last_crawled=0.0, due=20 * DAY, failures=3)

    def until(price: float | None, *, record: PageRecord = gone, at: float = 20 * DAY) -> float | None:
        return changes.puts_off_until(record, at=at, price=price, believed=believed)

    assert until(0.001 * DAY) is None
    assert until(10 * DAY) == 25 * DAY, "after a quarter more of the wait the price may have fallen"
    assert until(10 * DAY, at=DAY) == 2 * DAY, "but not before another period"
    assert until(None) is None, "only a crawl with prices compares them"
    assert until(10 * DAY, record=msgspec.structs.replace(gone, immediate=1)) is None
    assert until(10 * DAY, record=msgspec.structs.replace(gone, state="crawled")) is None


def test_no_dead_link_is_requested_while_a_release_takes_the_whole_budget() -> None:
    """A site of 120 pages and sixty dead links, twelve fetches a day. On day 60 all pages change at once."""
    begin: list[float] = []
    live, dead = ([f"{HOME}/{part}{number}" for number in range(many)] for part, many in (("page", 120), ("dead", 60)))

    def web(fetch: Fetch, at: float) -> Answer:
        begin[:] = begin or [at]
        if fetch.url in dead:
            return 404, {}, b"", 0.01
        version = at - begin[0] > 60 * DAY
        links = "".join(f"<a href='{url}'>x</a>" for url in live + dead) if fetch.url == f"{HOME}/" else ""
        return 200, {"content-type": "text/html"}, f"{fetch.url} {version} {links}".encode(), 0.01

    rest = 'periods = 7\nstrategy = "fountain"\ncapacity_pages_per_period = 12\n[change]\nmin_change = 0\n'
    drive = Drive(collection_of([f"{HOME}/"], delay_factor=0, rest=rest), web)
    drive.run(seconds=75 * DAY)
    days = [((at - begin[0]) / DAY, url) for at, kind, url in drive.log if kind == "page"]

    def dead_share(begin: float, end: float) -> float:
        asked = [url in dead for day, url in days if begin <= day < end]
        return sum(asked) / len(asked)

    assert dead_share(45, 60) > 0.1
    assert dead_share(62, 69) < 0.05
