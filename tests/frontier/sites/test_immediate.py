"""The immediate queue: first of all, but robots.txt, policy, private addresses and dead hosts hold for it too."""

from __future__ import annotations

import pytest

from tests.frontier.drive import Answer, Drive, Web, collection_of
from tests.frontier.test_frontier import linked, site_of_pages
from webfountain.frontier.batch import Batch
from webfountain.frontier.sites.site import State
from webfountain.records import Fetch, Link, PageRecord
from webfountain.urls import fingerprint, site_of

HOUR = 3600.0
DENY = '[policies.default]\ndeny = ["/no"]'


def hurried(drive: Drive, *found: str) -> None:
    links = [Link(url, site_of(url), fingerprint(url)) for url in found]
    assert drive.store.queues.immediate(links, at=drive.clock.now()) == len(found)


def settled(drive: Drive, url: str) -> PageRecord:
    return drive.page(url)


def test_an_immediate_url_of_an_unknown_site_is_fetched_after_its_robots_txt() -> None:
    drive = Drive(collection_of(["http://one.example/"], collection='scope = "any"'), site_of_pages({"": b"x"}))
    drive.run(seconds=60)
    hurried(drive, "http://new.example/")
    drive.run(seconds=60)
    assert [(kind, url) for _, kind, url in drive.log[-2:]] == [
        ("robots", "http://new.example/robots.txt"), ("page", "http://new.example/"),
    ]  # fmt: skip


def test_an_immediate_url_of_a_parked_site_is_fetched_at_once() -> None:
    drive = Drive(collection_of(["http://one.example/"]), site_of_pages({"": b"x", "known": b"y"}))
    drive.run(seconds=60)
    assert drive.frontier.progress.statistics().active_sites == 0
    hurried(drive, "http://one.example/")
    drive.run(seconds=30)
    assert drive.asked() == ["http://one.example/"] * 2


def test_a_site_that_is_activated_has_its_immediate_urls_in_the_same_batch() -> None:
    """Also where nobody looked for any: of a shared store the counts are old, and it might leave for want of others."""
    drive = Drive(collection_of(["http://one.example/"], collection='scope = "any"'), site_of_pages({"": b"x"}))
    hurried(drive, "http://new.example/")
    result = drive.frontier.worker.run(Batch(drive.clock.now(), room=5, immediate=False))
    assert "http://new.example" in {lease.site for lease in result.activated}
    assert [lease.record.url for lease in result.immediate["http://new.example"]] == ["http://new.example/"]


@pytest.mark.parametrize("active", [True, False])
def test_robots_txt_refuses_an_immediate_url_whether_its_site_is_active_or_not(active: bool) -> None:
    pages = {"": linked(*"abcdefgh")} | dict.fromkeys("abcdefgh", b"x") | {"private/x": b"z"}
    answer = site_of_pages(pages, robots=(200, b"User-agent: *\nDisallow: /private/"))
    drive = Drive(collection_of(["http://one.example/"]), answer)
    if active:
        drive.run(until=lambda: len(drive.asked()) == 2)
    hurried(drive, "http://one.example/private/x")
    drive.run(seconds=HOUR)
    assert "http://one.example/private/x" not in drive.asked()
    assert settled(drive, "http://one.example/private/x").state == "refused"


def test_the_policy_and_private_addresses_refuse_immediate_urls() -> None:
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


def test_a_dead_host_is_not_asked_for_ever_more_often_because_its_url_is_in_a_hurry() -> None:
    drive = Drive(collection_of(["http://one.example/"], collection='scope = "any"'), site_of_pages({"": b"x"}))
    drive.addresses["dead.example"] = []
    hurried(drive, "http://dead.example/")
    drive.run(seconds=24 * HOUR, steps=20_000)
    assert 3 <= drive.metrics.get("ant/unreachable") <= 200
    drive.addresses["dead.example"] = ["203.0.113.7"]
    drive.run(seconds=48 * HOUR)
    assert "http://dead.example/" in drive.asked()


def test_a_broken_robots_txt_is_retried_with_back_off_though_a_url_is_in_a_hurry() -> None:
    state = {"robots": (500, b"")}

    def answer(fetch: Fetch, at: float) -> Answer:
        return site_of_pages({"": b"x"}, robots=state["robots"])(fetch, at)

    drive = Drive(collection_of(["http://one.example/"]), answer)
    hurried(drive, "http://one.example/")
    drive.run(seconds=2 * HOUR, steps=20_000)
    assert 3 <= len(drive.asked("robots")) <= 14
    assert drive.asked() == []
    state["robots"] = (404, b"")
    drive.run(seconds=48 * HOUR)
    assert drive.asked()[0] == "http://one.example/"


def test_urls_in_a_hurry_on_a_blocked_site_do_not_keep_it_from_leaving_a_full_active_list() -> None:
    pages = {"": linked("a", "b"), "a": b"x", "b": b"y"}

    def slow(fetch: Fetch, path: str, at: float) -> Answer | None:
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


def crowd(answer: Web, *more: str) -> Drive:
    """Sixty sites that have pages to ask at all times, and a budget of one page a second for all."""
    seeds = [f"http://s{number}.example/" for number in range(60)]
    drive = Drive(
        collection_of(
            [*seeds, *more], collection='scope = "any"', politeness="per_ip = false",
            rest="capacity_pages_per_period = 86_400",
        ), answer,
    )  # fmt: skip
    drive.run(seconds=300)
    return drive


def waited(drive: Drive, since: float, url: str) -> float:
    return next(at for at, _, asked in drive.log if asked == url and at >= since) - since


MANY = {"": linked(*[f"p{number}" for number in range(99)])} | {f"p{number}": b"x" for number in range(99)}


@pytest.mark.parametrize("robots", [(404, b""), (200, b"Sitemap: /a.xml\nSitemap: /b.xml\nSitemap: /c.xml")])
def test_an_immediate_url_of_a_site_that_is_not_active_waits_no_round_of_the_others_for_its_robots_txt(
    robots: tuple[int, bytes],
) -> None:
    drive = crowd(site_of_pages(MANY, robots=robots))
    at = drive.clock.now()
    hurried(drive, "http://new.example/")
    drive.run(seconds=90)
    assert waited(drive, at, "http://new.example/") < 8


def test_an_immediate_url_hastens_a_robots_txt_that_already_waits_its_turn() -> None:
    drive = crowd(site_of_pages(MANY))
    drive.frontier.offer(Link("http://new.example/", "http://new.example", fingerprint("http://new.example/")))
    drive.run(
        until=lambda: (
            (new := drive.frontier.sites.sites.by_name.get("http://new.example")) and new.state is State.ROBOTS
        )
    )
    at = drive.clock.now()
    hurried(drive, "http://new.example/p1")
    drive.run(seconds=90)
    assert waited(drive, at, "http://new.example/p1") < 8


def test_immediate_urls_wait_for_the_renewal_of_an_old_robots_txt_and_obey_the_new_one() -> None:
    state = {"robots": (404, b"")}

    def answer(fetch: Fetch, at: float) -> Answer:
        return site_of_pages(MANY, robots=state["robots"])(fetch, at)

    drive = Drive(collection_of(["http://one.example/"], min_delay="1200s", politeness='max_delay = "1200s"'), answer)
    drive.run(seconds=23 * HOUR)
    state["robots"] = (200, b"User-agent: *\nDisallow: /p")
    asked = [f"http://one.example/p{number}" for number in range(200, 219)]
    hurried(drive, *asked)
    drive.run(seconds=6 * HOUR)
    robots, pages = ([at for at, kind, _ in drive.log if kind == what] for what in ("robots", "page"))
    assert robots[1] <= robots[0] + 25 * HOUR
    assert 1 <= len(set(asked) & set(drive.asked())) < 6
    assert pages[-1] < robots[1]
    assert {settled(drive, url).state for url in asked} == {"gone", "refused"}


def test_a_crawl_that_ends_while_a_hastened_robots_txt_waits_keeps_the_immediate_url() -> None:
    drive = crowd(site_of_pages(MANY))
    hurried(drive, "http://new.example/")
    drive.run(until=lambda: (new := drive.frontier.sites.sites.by_name.get("http://new.example")) and new.hand.urgent)
    drive.frontier.close()
    assert drive.store.census.statistics().immediate == 1
    again = Drive(drive.collection, drive.answer, store=drive.store, clock=drive.clock)
    again.run(until=lambda: "http://new.example/" in again.asked())
