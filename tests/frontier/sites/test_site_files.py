"""robots.txt has a life, sitemaps a turn; a site that leaves early loses neither."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tests.frontier.drive import Answer, Drive, collection_of
from tests.frontier.sites.street import SEVEN, Street
from tests.frontier.test_frontier import linked, site_of_pages
from webfountain.frontier.batch import ReadSitemap
from webfountain.records import SiteState
from webfountain.store.answers import LeaseBatch

if TYPE_CHECKING:
    from webfountain.records import Fetch

HOUR, DAY = 3600.0, 86_400.0


def many_pages(n: int) -> dict[str, bytes]:
    return {"": linked(*[f"p{i}" for i in range(n)])} | {f"p{i}": b"x" for i in range(n)}


def test_robots_txt_is_asked_again_after_a_day_also_of_a_site_that_is_never_left() -> None:
    state = {"body": b""}

    def answer(fetch: Fetch, at: float) -> Answer:
        return site_of_pages(many_pages(400), robots=(200, state["body"]))(fetch, at)

    drive = Drive(collection_of(["http://one.example/"], min_delay="300s"), answer)
    drive.run(seconds=0.9 * DAY)
    assert len(drive.asked("robots")) == 1
    state["body"] = b"User-agent: *\nDisallow: /p"
    drive.run(seconds=0.2 * DAY)
    assert len(drive.asked("robots")) == 2
    renewed = next(at for at, kind, _ in drive.log[1:] if kind == "robots")
    assert renewed <= 1_000_000 + 1.02 * DAY
    drive.run(seconds=0.5 * DAY)
    late = [at for at, kind, url in drive.log if kind == "page" and "/p" in url and at > renewed]
    assert late == [], "what was leased under the old rules goes back"
    assert drive.store.census.statistics().pages["refused"] > 100


def test_a_robots_txt_that_breaks_later_refuses_what_is_left() -> None:
    state: dict[str, tuple[int, bytes] | str] = {"robots": (404, b"")}

    def answer(fetch: Fetch, at: float) -> Answer:
        return site_of_pages(many_pages(400), robots=state["robots"])(fetch, at)

    drive = Drive(collection_of(["http://one.example/"], min_delay="300s"), answer)
    drive.run(seconds=0.9 * DAY)
    state["robots"] = "timeout"
    drive.run(seconds=1.0 * DAY)
    broken = [at for at, kind, _ in drive.log if kind == "robots"][1]
    assert [at for at, kind, _ in drive.log if kind == "page" and at > broken] == []
    state["robots"] = (404, b"")
    drive.run(seconds=2 * DAY)
    assert [at for at, kind, _ in drive.log if kind == "page" and at > broken] != []


def test_robots_txt_redirects_end_after_five_hops_and_then_allow() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots":
            return (302, {"location": fetch.url + "x"}, b"", 0.05)
        return (200, {}, b"page", 0.05)

    drive = Drive(collection_of(["http://one.example/"]), answer)
    drive.run(seconds=600)
    assert len(drive.asked("robots")) == 6
    assert drive.asked() == ["http://one.example/"]


def test_a_project_that_does_not_obey_robots_txt_never_asks_for_it() -> None:
    drive = Drive(collection_of(["http://one.example/"]), site_of_pages({"": b"x"}), obey_robots=False)
    drive.run(seconds=3 * DAY)
    assert drive.asked("robots") == []
    assert drive.asked()[0] == "http://one.example/"


def test_sitemaps_are_read_once_a_period_and_an_index_leads_to_more() -> None:
    index = b"<sitemapindex><sitemap><loc>http://one.example/s1.xml</loc></sitemap></sitemapindex>"
    urls = b"<urlset><url><loc>http://one.example/hidden</loc></url></urlset>"
    xml = {"content-type": "application/xml"}

    def with_sitemaps(fetch: Fetch, path: str, at: float) -> Answer | None:
        return {"index.xml": (200, xml, index, 0.05), "s1.xml": (200, xml, urls, 0.05)}.get(path)

    robots = (200, b"Sitemap: http://one.example/index.xml\nSitemap: http://two.example/other.xml")
    web = site_of_pages({"": b"x", "hidden": b"y"}, robots=robots, extra=with_sitemaps)
    drive = Drive(collection_of(["http://one.example/"]), web)
    drive.run(seconds=HOUR)
    assert drive.asked("sitemap") == ["http://one.example/index.xml", "http://one.example/s1.xml"]
    assert "http://one.example/hidden" in drive.asked()
    assert drive.metrics.get("sitemap/out_of_scope") == 1
    drive.run(seconds=30 * DAY)
    asked = [at for at, kind, url in drive.log if kind == "sitemap" and "index" in url]
    assert len(asked) > 1
    assert all(later - earlier >= DAY for earlier, later in pairwise(asked))


def test_a_site_that_has_no_due_page_stays_until_its_index_has_led_to_the_sitemaps() -> None:
    street = Street(obey_robots=True)
    name = SEVEN[0]
    lease = street.enter(name, 0, state=SiteState(robots=b"Sitemap: /index.xml", robots_at=0.0))
    street.take_in(dealt=[LeaseBatch(name, [], [], [], [])])

    def parked_after(fetch: Fetch, at: float) -> bool:
        street.land(fetch, at)
        street.list.departures.park_idle(street.at(at), is_full=False)
        return bool(street.batch.parked)

    index = street.next(1.0)
    assert index.url == f"{name}/index.xml"
    assert not parked_after(index, 2.0)
    street.take_in(3.0, sitemaps=[ReadSitemap(name, index.url, [f"{name}/inner.xml"])])
    inner = street.next(60.0)
    assert inner.url == f"{name}/inner.xml"
    assert not parked_after(inner, 61.0)
    street.take_in(62.0, sitemaps=[ReadSitemap(name, inner.url, [])])
    street.list.departures.park_idle(street.at(62.0), is_full=False)
    assert [parked.lease for parked in street.batch.parked] == [lease]


def test_a_sitemap_that_was_sent_for_when_the_site_had_to_leave_is_fetched_later() -> None:
    body = b"<urlset><url><loc>http://slow.example/hidden</loc></url></urlset>"

    def slow(fetch: Fetch, path: str, at: float) -> Answer | None:
        if path == "sitemap.xml":
            return (200, {"content-type": "application/xml"}, body, 0.05)
        return None

    robots = (200, b"User-agent: *\nCrawl-delay: 60\nSitemap: http://slow.example/sitemap.xml")
    others = [f"http://o{i}.example/" for i in range(3)]
    drive = Drive(
        collection_of(["http://slow.example/", *others], politeness="per_ip = false"),
        site_of_pages({"": b"x", "hidden": b"y"}, robots=robots, extra=slow), active_sites=1,
    )  # fmt: skip
    drive.run(seconds=0.5 * DAY)
    assert "http://slow.example/sitemap.xml" in drive.asked("sitemap")
    assert "http://slow.example/hidden" in drive.asked()


def test_a_failed_sitemap_is_counted_and_costs_nothing_else() -> None:
    web = site_of_pages({"": b"x"}, robots=(200, b"Sitemap: http://one.example/none.xml"))
    drive = Drive(collection_of(["http://one.example/"]), web)
    drive.run(seconds=HOUR)
    assert drive.metrics.get("sitemap/failed") == 1
    assert drive.asked() == ["http://one.example/"]
