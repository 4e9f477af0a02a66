"""A site that cannot be reached: our own crawl waits for it, one that asks its pages once gives it up."""

from __future__ import annotations

import pytest

from tests.frontier.drive import Answer, Drive, Web, collection_of
from webfountain.records import Fetch, Link, PageRecord
from webfountain.urls import fingerprint

SITE = "http://one.example"
PAGES = [f"{SITE}/{i}" for i in range(40)]
HOUR = 3600.0
PAGE = (200, {"content-type": "text/html"}, b"x", 0.01)


def mute(fetch: Fetch, at: float) -> Answer:
    return "connect"


def mute_after_robots_txt(fetch: Fetch, at: float) -> Answer:
    return (404, {}, b"", 0.01) if fetch.kind == "robots" else "timeout"


def records(drive: Drive) -> list[PageRecord]:
    return [record for _, record in drive.store.pages.records(site=SITE)]


@pytest.mark.parametrize(("answer", "error", "asked"), [(mute, "connect", 0), (mute_after_robots_txt, "timeout", 5)])
def test_who_asks_once_gives_a_site_up_after_five_requests_without_an_answer(
    answer: Web, error: str, asked: int
) -> None:
    drive = Drive(collection_of(PAGES), answer, recrawl=False)
    drive.run(seconds=HOUR)
    assert {(record.state, record.error) for record in records(drive)} == {("failed", error)}
    assert len(drive.asked()) == asked
    assert len(drive.log) == (5 if asked == 0 else 6)
    assert not drive.frontier.has_pending()
    last = drive.log[-1][0] - 1_000_000.0
    assert 10 * (1 + 2 + 4 + 8) * 0.75 <= last <= 10 * (1 + 2 + 4 + 8) * 1.25 + 10


def test_who_asks_once_gives_a_host_without_an_address_up_at_once() -> None:
    drive = Drive(collection_of(PAGES), mute, recrawl=False)
    drive.addresses["one.example"] = []
    drive.run(seconds=HOUR)
    assert {(record.state, record.error) for record in records(drive)} == {("failed", "dns")}
    assert drive.log == []
    assert not drive.frontier.has_pending()


@pytest.mark.parametrize("addresses", [[], ["203.0.113.9"]])
def test_our_own_crawl_waits_with_longer_and_longer_back_off(addresses: list[str]) -> None:
    drive = Drive(collection_of(PAGES), mute)
    drive.addresses["one.example"] = addresses
    drive.run(seconds=HOUR)
    assert {record.state for record in records(drive)} == {"never-crawled"}
    assert drive.frontier.has_pending()


def test_an_answer_between_them_keeps_a_site() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots":
            return 404, {}, b"", 0.01
        return PAGE if len(drive.asked()) % 5 == 0 else "timeout"

    drive = Drive(collection_of(PAGES[:12]), answer, recrawl=False)
    drive.run(seconds=HOUR)
    assert len(drive.asked()) == 12


def test_a_site_that_was_given_up_is_tried_once_more_for_a_page_that_comes_later() -> None:
    drive = Drive(collection_of(PAGES[:6]), mute_after_robots_txt, recrawl=False)
    drive.run(seconds=HOUR)
    assert len(drive.asked()) == 5
    drive.answer = lambda fetch, at: PAGE
    drive.frontier.offer(Link(f"{SITE}/later", SITE, fingerprint(f"{SITE}/later"), 0))
    drive.step()
    drive.run(seconds=HOUR)
    assert drive.asked()[5:] == [f"{SITE}/later"]
    assert not drive.frontier.has_pending()


@pytest.mark.parametrize("robots", [(503, {}, b"", 0.01), (500, {}, b"", 0.01), "too-slow", "bad-response"])
def test_who_asks_once_gives_a_site_up_whose_robots_txt_was_not_to_be_had_five_times(robots: Answer) -> None:
    drive = Drive(collection_of(PAGES), lambda fetch, at: robots if fetch.kind == "robots" else PAGE, recrawl=False)
    drive.run(seconds=HOUR)
    assert {(record.state, record.error) for record in records(drive)} == {("refused", "robots.txt")}
    assert drive.metrics.get("outcome/refused_by_robots") == len(PAGES)
    assert (len(drive.asked("robots")), drive.asked()) == (5, [])
    assert not drive.frontier.has_pending()


def test_a_server_that_closes_every_connection_unanswered_is_left_alone_for_longer_and_longer() -> None:
    drive = Drive(collection_of(PAGES), lambda fetch, at: (404, {}, b"", 0.01) if fetch.kind == "robots" else "cut")
    drive.run(seconds=HOUR)
    times = [at for at, kind, _ in drive.log if kind == "page"]
    assert 5 <= len(times) <= 12
    assert times[-1] - times[-2] > 10 * (times[1] - times[0])
