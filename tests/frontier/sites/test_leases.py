"""A fetch that outlives its lease: the page went back to its queue, and what the late fetch brings has no effect."""

from __future__ import annotations

from tests.frontier.drive import Drive, collection_of
from webfountain.urls import fingerprint

SITE = "http://one.example"
HTML = {"content-type": "text/html"}


def test_a_late_settle_of_a_reclaimed_lease_has_no_effect_and_is_counted():
    answers = [(200, HTML, b"<p>late", 700.0), (200, HTML, b"<p>in time", 1.0)]

    def answer(fetch, at):
        return (404, {}, b"", 0.1) if fetch.kind == "robots" else answers.pop(0)

    drive = Drive(collection_of([f"{SITE}/"]), answer, lease_seconds=600.0)
    drive.run(seconds=650.0)
    drive.run(until=lambda: not drive.flying and drive.items)
    drive.step()
    assert drive.metrics.get("ant/reclaimed") == 1
    assert drive.metrics.get("ant/settle_lost") == drive.store.statistics().settle_lost == 1
    page = drive.store.page(SITE, fingerprint(f"{SITE}/"))
    assert (page.state, page.last_crawled, page.digest) == ("never-crawled", None, None)
    drive.run(until=lambda: drive.metrics.get("ant/settled") == 1)
    page = drive.store.page(SITE, fingerprint(f"{SITE}/"))
    assert (page.state, page.digest) == ("crawled", drive.items[-1]["digest"])
    assert drive.asked() == [f"{SITE}/"] * 2
    assert drive.metrics.get("ant/settle_lost") == 1
    drive.store.check_valid()
