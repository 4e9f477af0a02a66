"""The immediate queue: first of all, but robots.txt, policy, private addresses and dead hosts hold for it too."""

from __future__ import annotations

import pytest

from tests.frontier.drive import Drive, collection_of
from tests.frontier.test_frontier import linked, site_of_pages
from webfountain.records import Link
from webfountain.urls import fingerprint, site_of

HOUR = 3600.0
DENY = '[policies.default]\ndeny = ["/no"]'


def hurried(drive, *found):
    links = [Link(url, site_of(url), fingerprint(url)) for url in found]
    assert drive.store.immediate(links, at=drive.clock.now()) == len(found)


def settled(drive, url):
    return drive.store.page(site_of(url), fingerprint(url))


def test_an_immediate_url_of_an_unknown_site_is_fetched_after_its_robots_txt():
    drive = Drive(collection_of(["http://one.example/"], collection='scope = "any"'), site_of_pages({"": b"x"}))
    drive.run(seconds=60)
    hurried(drive, "http://new.example/")
    drive.run(seconds=60)
    assert [(kind, url) for _, kind, url in drive.log[-2:]] == [
        ("robots", "http://new.example/robots.txt"), ("page", "http://new.example/"),
    ]  # fmt: skip


def test_an_immediate_url_of_a_parked_site_is_fetched_at_once():
    drive = Drive(collection_of(["http://one.example/"]), site_of_pages({"": b"x", "known": b"y"}))
    drive.run(seconds=60)
    assert not drive.frontier._ant.sites
    hurried(drive, "http://one.example/")
    drive.run(seconds=30)
    assert drive.asked() == ["http://one.example/"] * 2


@pytest.mark.parametrize("active", [True, False])
def test_robots_txt_refuses_an_immediate_url_whether_its_site_is_active_or_not(active):
    pages = {"": linked(*"abcdefgh")} | dict.fromkeys("abcdefgh", b"x") | {"private/x": b"z"}
    answer = site_of_pages(pages, robots=(200, b"User-agent: *\nDisallow: /private/"))
    drive = Drive(collection_of(["http://one.example/"]), answer)
    if active:
        drive.run(until=lambda: len(drive.asked()) == 2)
    hurried(drive, "http://one.example/private/x")
    drive.run(seconds=HOUR)
    assert "http://one.example/private/x" not in drive.asked()
    assert settled(drive, "http://one.example/private/x").state == "refused"


def test_the_policy_and_private_addresses_refuse_immediate_urls():
    collection = collection_of(
        ["http://one.example/"], allow_private="false", rest='[policies.default]\ndeny = ["/no"]'
    )
    drive = Drive(collection, site_of_pages({"": b"x", "no": b"y"}))
    drive.addresses |= {"inside.example": ["10.1.2.3"], "one.example": ["93.184.215.14"]}
    hurried(drive, "http://one.example/no", "http://inside.example/", "http://127.0.0.1/")
    drive.run(seconds=HOUR)
    assert drive.asked() == ["http://one.example/"]
    for url in ("http://inside.example/", "http://127.0.0.1/", "http://one.example/no"):
        assert settled(drive, url).state == "refused"


def test_a_dead_host_is_not_asked_for_ever_more_often_because_its_url_is_in_a_hurry():
    drive = Drive(collection_of(["http://one.example/"], collection='scope = "any"'), site_of_pages({"": b"x"}))
    drive.addresses["dead.example"] = []
    hurried(drive, "http://dead.example/")
    drive.run(seconds=24 * HOUR, steps=20_000)
    assert 3 <= drive.metrics.get("ant/unreachable") <= 200
    drive.addresses["dead.example"] = ["203.0.113.7"]
    drive.run(seconds=48 * HOUR)
    assert "http://dead.example/" in drive.asked()


def test_a_broken_robots_txt_is_retried_with_back_off_though_a_url_is_in_a_hurry():
    state = {"robots": (500, b"")}

    def answer(fetch, at):
        return site_of_pages({"": b"x"}, robots=state["robots"])(fetch, at)

    drive = Drive(collection_of(["http://one.example/"]), answer)
    hurried(drive, "http://one.example/")
    drive.run(seconds=2 * HOUR, steps=20_000)
    assert 3 <= len(drive.asked("robots")) <= 14
    assert drive.asked() == []
    state["robots"] = (404, b"")
    drive.run(seconds=48 * HOUR)
    assert drive.asked()[0] == "http://one.example/"


def test_urls_in_a_hurry_on_a_blocked_site_do_not_keep_it_from_leaving_a_full_active_list():
    pages = {"": linked("a", "b"), "a": b"x", "b": b"y"}

    def slow(fetch, path, at):
        return (503, {"retry-after": "600"}, b"", 0.05) if fetch.site == "http://slow.example" else None

    drive = Drive(
        collection_of([f"http://{name}.example/" for name in ("slow", "one", "two")]),
        site_of_pages(pages, extra=slow), active_sites=1,
    )  # fmt: skip
    drive.run(until=lambda: "http://slow.example/" in drive.asked())
    hurried(drive, "http://slow.example/a")
    drive.run(seconds=300, steps=20_000)
    assert len([url for url in drive.asked() if "slow" not in url]) == 6
    drive.run(seconds=HOUR, steps=20_000)
    assert "http://slow.example/a" in drive.asked()
    assert drive.most_open == 1
