"""The crawler without Scrapy, under a manual clock: politeness, robots.txt, recrawl, refusals, idleness."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, Web, collection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webfountain.records import Fetch

HTML = {"content-type": "text/html"}


def site_of_pages(
    pages: Mapping[str, bytes],
    *,
    robots: tuple[int, bytes] | str = (404, b""),
    seconds: float = 0.05,
    extra: Callable[[Fetch, str, float], Answer | None] | None = None,
) -> Web:
    """A web of one dict: path -> body; robots.txt answers as told."""

    def answer(fetch: Fetch, at: float) -> Answer:
        path = fetch.url.split("/", 3)[3]
        if path == "robots.txt":
            return robots if isinstance(robots, str) else (robots[0], {}, robots[1], seconds)
        if extra is not None and (special := extra(fetch, path, at)) is not None:
            return special
        body = pages.get(path)
        return (404, HTML, b"", seconds) if body is None else (200, HTML, body, seconds)

    return answer


def linked(*paths: str) -> bytes:
    return b"<title>t</title>" + b"".join(b'<a href="/%s">x</a>' % path.encode() for path in paths)


def test_every_linked_page_is_fetched_once_and_robots_txt_first_and_once() -> None:
    pages = {"": linked("a", "b"), "a": linked("b", "c"), "b": linked("a"), "c": linked("", "missing")}
    drive = Drive(collection_of(["http://one.example/"]), site_of_pages(pages))
    drive.run(seconds=3600)
    assert drive.log[0][1] == "robots"
    assert drive.asked("robots") == ["http://one.example/robots.txt"]
    assert sorted(drive.asked()) == sorted(f"http://one.example/{p}" for p in ["", "a", "b", "c", "missing"])
    assert drive.outcomes == {"new": 4, "gone": 1}


def test_a_site_never_sees_two_requests_at_once_and_each_waits_ten_times_the_last() -> None:
    pages = {"": linked(*"abcdef")} | dict.fromkeys("abcdef", b"x")
    drive = Drive(collection_of(["http://one.example/"]), site_of_pages(pages, seconds=0.5))
    drive.run(seconds=3600)
    assert drive.most_open == 1
    times = [at for at, _, _ in drive.log]
    assert len(times) == 8
    assert all(later - earlier >= 0.5 + 5.0 for earlier, later in pairwise(times))


@pytest.mark.parametrize(("per_ip", "most"), [("true", 1), ("false", 3)])
def test_host_names_on_one_address_share_its_politeness_unless_they_are_separated(per_ip: str, most: int) -> None:
    seeds = [f"http://{name}.example/" for name in "abc"]
    drive = Drive(collection_of(seeds, politeness=f"per_ip = {per_ip}"), site_of_pages({"": b"x"}, seconds=0.5))
    together: defaultdict[float, int] = defaultdict(int)
    drive.run(seconds=600)
    for at, _, _ in drive.log:
        together[at] += 1
    assert max(together.values()) == most
    assert len(drive.asked()) == 3


def test_crawl_delay_is_obeyed_up_to_max_delay() -> None:
    pages = {"": linked("a", "b"), "a": b"x", "b": b"y"}
    answer = site_of_pages(pages, robots=(200, b"User-agent: *\nCrawl-delay: 20"))
    drive = Drive(collection_of(["http://one.example/"]), answer)
    drive.run(seconds=600)
    times = [at for at, _, _ in drive.log]
    assert len(times) == 4
    assert all(later - earlier >= 20 for earlier, later in pairwise(times)), "before the first page too"


def test_what_robots_txt_refuses_is_never_asked_and_settled_as_refused() -> None:
    pages = {"": linked("ok", "private/x"), "ok": b"x", "private/x": b"y"}
    answer = site_of_pages(pages, robots=(200, b"User-agent: *\nDisallow: /private/"))
    drive = Drive(collection_of(["http://one.example/"]), answer)
    drive.run(seconds=3600)
    assert "http://one.example/private/x" not in drive.asked()
    states = {record.url: (record.state, record.error) for _, record in drive.store.pages.records()}
    assert states["http://one.example/private/x"] == ("refused", "robots.txt")
    assert drive.metrics.get("outcome/refused_by_robots") == 1


def test_an_unreachable_robots_txt_refuses_the_site_until_a_retry_succeeds() -> None:
    state = {"robots": (503, b"")}

    def answer(fetch: Fetch, at: float) -> Answer:
        return site_of_pages({"": b"x"}, robots=state["robots"])(fetch, at)

    drive = Drive(collection_of(["http://one.example/"]), answer)
    drive.run(seconds=300)
    tries = len(drive.asked("robots"))
    assert drive.asked() == []
    assert 2 <= tries <= 6, "it backs off"
    state["robots"] = (404, b"")
    drive.run(seconds=3600)
    assert drive.asked() == ["http://one.example/"]


def test_robots_txt_redirects_are_followed_and_asked_again_after_a_day() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.url == "http://one.example/robots.txt":
            return (301, {"location": "/r/robots.txt"}, b"", 0.05)
        if fetch.url == "http://one.example/r/robots.txt":
            return (200, {}, b"User-agent: *\nDisallow: /no", 0.05)
        return (200, HTML, linked("no"), 0.05)

    drive = Drive(collection_of(["http://one.example/"]), answer)
    drive.run(seconds=3600)
    assert drive.asked() == ["http://one.example/"]
    assert drive.asked("robots") == ["http://one.example/robots.txt", "http://one.example/r/robots.txt"]
    drive.run(seconds=20 * 86_400)
    assert len(drive.asked("robots")) > 2


def test_retry_after_and_back_off_keep_a_busy_site_alone_and_spare_the_others() -> None:
    def busy(fetch: Fetch, path: str, at: float) -> Answer | None:
        if fetch.site == "http://busy.example":
            return (429, {"retry-after": "500"}, b"", 0.05)
        return None

    drive = Drive(
        collection_of(["http://busy.example/", "http://calm.example/"]),
        site_of_pages({"": linked("a"), "a": b"x"}, extra=busy),
    )
    drive.run(seconds=400)
    assert [url for url in drive.asked() if "busy" in url] == ["http://busy.example/"]
    assert len([url for url in drive.asked() if "calm" in url]) == 2
    assert drive.metrics.get("politeness/retry_after") == 1


def test_a_host_without_an_address_waits_and_its_urls_are_not_lost() -> None:
    drive = Drive(collection_of(["http://dead.example/", "http://live.example/"]), site_of_pages({"": b"x"}))
    drive.addresses["dead.example"] = []
    drive.run(seconds=60)
    assert drive.asked() == ["http://live.example/"]
    assert drive.store.census.statistics().pages["never-crawled"] == 1
    drive.addresses["dead.example"] = ["203.0.113.5"]
    drive.run(seconds=86_400)
    assert "http://dead.example/" in drive.asked()


def test_private_addresses_are_refused_after_dns_unless_allowed() -> None:
    drive = Drive(collection_of(["http://inside.example/"], allow_private="false"), site_of_pages({"": b"x"}))
    drive.addresses["inside.example"] = ["127.0.0.1"]
    drive.run(seconds=60)
    assert drive.log == []
    assert [(r.state, r.error) for _, r in drive.store.pages.records()] == [("refused", "private-address")]


def test_a_changed_page_is_found_by_recrawl_and_an_unchanged_one_costs_a_304() -> None:
    def versions(fetch: Fetch, path: str, at: float) -> Answer | None:
        if path == "news":
            return (200, HTML, b"<p>issue %d</p>" % (at // 86_400), 0.05)
        if path == "":
            if fetch.etag == '"1"':
                return (304, {}, b"", 0.05)
            return (200, HTML | {"etag": '"1"'}, linked("news"), 0.05)
        return None

    drive = Drive(
        collection_of(["http://one.example/"], rest="[change]\nmin_change = 0"), site_of_pages({}, extra=versions)
    )
    drive.run(seconds=60 * 86_400)
    assert drive.outcomes["changed"] > 15
    assert drive.outcomes["not_modified"] >= 2
    records = {r.url: r for _, r in drive.store.pages.records()}
    news, home = records["http://one.example/news"], records["http://one.example/"]
    assert news.bucket < home.bucket, "what changes more often is in a faster bucket"
    assert 0 < news.changes < news.checks
    assert home.changes == 0


def test_no_page_is_asked_earlier_than_min_interval_nor_later_than_max_interval_allows() -> None:
    policy = '[policies.default.revisit]\nmin_interval = "2d"\nmax_interval = "5d"\n[change]\nmin_change = 0'

    def ever_new(fetch: Fetch, path: str, at: float) -> Answer | None:
        return (200, HTML, b"%f" % at, 0.05) if path == "hot" else None

    web = site_of_pages({"": linked("hot", "cold"), "cold": b"x"}, extra=ever_new)
    drive = Drive(collection_of(["http://one.example/"], rest=policy), web)
    drive.run(seconds=60 * 86_400)
    for path in ("hot", "cold"):
        times = [at for at, _, url in drive.log if url.endswith(path)]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert min(gaps) >= 2 * 86_400
        assert max(gaps) <= 5 * 86_400 + 60


def test_a_dead_page_is_asked_ever_more_rarely() -> None:
    drive = Drive(collection_of(["http://one.example/gone"]), site_of_pages({}))
    drive.run(seconds=100 * 86_400)
    times = [at for at, kind, _ in drive.log if kind == "page"]
    gaps = [round((later - earlier) / 86_400) for earlier, later in pairwise(times)]
    assert gaps == sorted(gaps)
    assert gaps[-1] > 2 * gaps[0] >= 2


def test_a_redirect_is_a_link_and_a_record_of_its_source() -> None:
    def moved(fetch: Fetch, path: str, at: float) -> Answer | None:
        return (301, {"location": "/new"}, b"", 0.05) if path == "old" else None

    drive = Drive(collection_of(["http://one.example/old"]), site_of_pages({"new": b"x"}, extra=moved))
    drive.run(seconds=3600)
    states = {r.url: r.state for _, r in drive.store.pages.records()}
    assert states == {"http://one.example/old": "redirected", "http://one.example/new": "crawled"}


def test_a_redirect_to_itself_fails_and_does_not_loop() -> None:
    def loop(fetch: Fetch, path: str, at: float) -> Answer | None:
        return (302, {"location": fetch.url}, b"", 0.05)

    drive = Drive(collection_of(["http://one.example/x"]), site_of_pages({}, extra=loop))
    drive.run(seconds=3600)
    assert len(drive.asked()) == 1
    assert [(r.state, r.error) for _, r in drive.store.pages.records()] == [("failed", "redirect-loop")]


def test_sitemaps_bring_urls_and_make_pages_due_when_lastmod_is_newer() -> None:
    from datetime import UTC, datetime

    published = {"at": 0.0}

    def with_sitemap(fetch: Fetch, path: str, at: float) -> Answer | None:
        if path == "sitemap.xml":
            when = datetime.fromtimestamp(published["at"], UTC).isoformat()
            body = f"<urlset><url><loc>http://one.example/page</loc><lastmod>{when}</lastmod></url></urlset>"
            return (200, {"content-type": "application/xml"}, body.encode(), 0.05)
        return None

    web = site_of_pages(
        {"": b"x", "page": b"y"}, robots=(200, b"Sitemap: http://one.example/sitemap.xml"), extra=with_sitemap
    )
    policy = '[policies.default.revisit]\nmin_interval = "30d"'
    drive = Drive(collection_of(["http://one.example/"], rest=policy), web)
    drive.run(seconds=3600)
    assert drive.asked().count("http://one.example/page") == 1
    published["at"] = drive.clock.now() + 86_400
    drive.run(seconds=40 * 86_400)
    times = [at for at, _, url in drive.log if url.endswith("page")]
    assert len(times) >= 2


def test_an_immediate_url_goes_first_and_stays_polite() -> None:
    from webfountain.records import Link
    from webfountain.urls import fingerprint

    pages = {"": linked(*"abcdefghij")} | dict.fromkeys("abcdefghij", b"x")
    drive = Drive(collection_of(["http://one.example/"]), site_of_pages(pages))
    drive.run(until=lambda: len(drive.asked()) == 3)
    url = "http://one.example/now"
    drive.store.queues.immediate([Link(url, "http://one.example", fingerprint(url))], at=drive.clock.now())
    drive.run(seconds=3600)
    assert drive.asked().index(url) <= 4
    assert drive.most_open == 1


def test_an_edited_deny_also_holds_for_urls_already_queued() -> None:
    pages = {"": linked("keep", "drop/1")} | {"keep": b"x", "drop/1": b"y"}
    drive = Drive(collection_of(["http://one.example/"]), site_of_pages(pages), max_pages=1)
    drive.run(until=lambda: drive.frontier.finish_reason() == "max_pages")
    drive.frontier.close()
    edited = collection_of(["http://one.example/"], rest="[policies.default]\ndeny = ['/drop/']")
    again = Drive(edited, site_of_pages(pages), store=drive.store, clock=drive.clock)
    again.run(seconds=3600)
    assert again.asked() == ["http://one.example/keep"]
    assert {r.state for _, r in again.store.pages.records() if "drop" in r.url} == {"refused"}


def test_a_capacity_is_spread_over_the_period_and_never_exceeded() -> None:
    pages = {"": linked(*[f"p{i}" for i in range(300)])} | {f"p{i}": b"x" for i in range(300)}
    drive = Drive(
        collection_of(["http://one.example/"], min_delay="0s", delay_factor=0, rest="capacity_pages_per_period = 100"),
        site_of_pages(pages, seconds=0.01),
    )
    drive.run(seconds=86_400)
    asked = [at for at, kind, _ in drive.log if kind == "page"]
    assert 95 <= len(asked) <= 103
    half = sum(at < 1_000_000 + 43_200 for at in asked)
    assert 45 <= half <= 55


def test_a_crawl_until_idle_ends_when_only_a_dead_host_waits() -> None:
    drive = Drive(
        collection_of(["http://live.example/", "http://dead.example/"]), site_of_pages({"": b"x"}), until_idle=True
    )
    drive.addresses["dead.example"] = []
    for _ in range(200):
        drive.step()
        drive.clock.advance(1.0)
        if drive.frontier.finish_reason():
            break
    assert drive.frontier.finish_reason() == "idle"
    assert drive.store.census.statistics().pages["never-crawled"] == 1


def test_more_sites_than_the_active_list_holds_all_get_their_turn() -> None:
    seeds = [f"http://s{i}.example/" for i in range(40)]
    drive = Drive(
        collection_of(seeds, politeness="per_ip = false"), site_of_pages({"": linked("a"), "a": b"x"}), active_sites=5
    )
    most = 0
    while len(drive.asked()) < 80:
        drive.run(seconds=1)
        most = max(most, drive.frontier.progress.statistics().active_sites)
    assert most <= 5
    assert len(set(drive.asked())) == 80


def test_a_page_that_is_due_again_needs_a_batch_before_the_scheduler_is_woken() -> None:
    collection = collection_of(
        ["http://one.example/"], period="1s", rest='[policies.default]\nrevisit = { max_interval = "800ms" }'
    )
    drive = Drive(collection, site_of_pages({"": b"x"}))
    drive.run(until=lambda: drive.outcomes["new"])
    while drive.step():
        pass
    frontier = drive.frontier
    due = frontier.work_at()
    assert drive.clock.now() < due < drive.clock.now() + 1.0, "the site stays active until its page is due"
    drive.clock.set(due)
    assert frontier.wake_at() == inf
    assert frontier.next() is None
    while drive.step():
        pass
    assert frontier.work_at() > due
    assert due < frontier.wake_at() < inf, "its page is leased, and waits for the delay"
