"""A site lease that ran out loses nothing while nobody takes its site over; then its steps change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.frontier.drive import Drive, collection_of
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from webfountain.records import Fetch

SITE = "http://one.example"
HTML = {"content-type": "text/html"}
Answer = tuple[int, dict[str, str], bytes, float]


def slow(*answers: Answer) -> Drive:
    """A crawl of one page, whose fetches bring these answers one after the other."""
    left = list(answers)

    def answer(fetch: Fetch, _: float) -> Answer:
        return (404, {}, b"", 0.1) if fetch.kind == "robots" else left.pop(0)

    return Drive(collection_of([f"{SITE}/"]), answer, lease_seconds=600.0)


def test_a_fetch_that_takes_longer_than_the_lease_is_settled_once() -> None:
    drive = slow((200, HTML, b"<p>late", 1700.0))
    drive.run(until=lambda: drive.items)
    drive.step()
    page = drive.store.page(SITE, fingerprint(f"{SITE}/"))
    assert page is not None
    assert (page.state, page.digest) == ("crawled", drive.items[-1]["digest"])
    assert drive.asked() == [f"{SITE}/"]
    assert drive.metrics.get("ant/settle_lost") == 0
    drive.store.check_valid()


def test_the_site_leases_of_the_active_list_are_renewed_in_time() -> None:
    drive = slow((200, HTML, b"<p>late", 1700.0))
    drive.run(seconds=300.0)
    assert drive.flying
    drive.clock.advance(250.0)
    drive.step()
    assert drive.store.activate(9, owner="other", until=1e9, at=drive.clock.now() + 599.0) == []
    assert len(drive.store.activate(9, owner="other", until=1e9, at=drive.clock.now() + 601.0)) == 1


def test_what_comes_after_a_takeover_has_no_effect_and_is_counted() -> None:
    drive = slow((200, HTML, b"<p>late", 1700.0))
    drive.run(until=lambda: drive.flying and drive.asked())
    (taken,) = drive.store.activate(9, owner="other", until=1e9, at=drive.clock.now() + 601.0)
    drive.run(until=lambda: drive.items)
    drive.run(seconds=60.0)
    assert drive.metrics.get("ant/settle_lost") == drive.store.statistics().settle_lost == 1
    page = drive.store.page(SITE, fingerprint(f"{SITE}/"))
    assert page is not None
    assert (page.state, page.last_crawled, page.digest) == ("never-crawled", None, None)
    assert drive.store.renew([taken], until=2e9), "the other has lost its site to one that was too late"
    assert not drive.frontier.statistics().active_sites
    drive.store.check_valid()
