"""Files on other hosts pass the gates of the host that is asked, and a sitemap there its robots.txt too."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, Web, collection_of

if TYPE_CHECKING:
    from webfountain.records import Fetch

HUB = "http://hub.example"
HTML = {"content-type": "text/html"}
ALLOWS = b"User-agent: *\nDisallow: /no"


def at_hub(drive: Drive) -> list[tuple[float, str]]:
    return [(at, url) for at, _, url in drive.log if url.startswith(HUB + "/")]


def crawl(answer: Web, sites: int, *, seeds: tuple[str, ...] = (), **values: str) -> Drive:
    names = [f"http://s{number}.example/" for number in range(sites)]
    settings = {"collection": 'scope = "any"', "politeness": "per_ip = false"} | values
    drive = Drive(collection_of([*names, *seeds], **settings), answer, active_sites=300)
    drive.addresses["hub.example"] = ["203.0.113.77"]
    return drive


def redirects(fetch: Fetch, at: float) -> Answer:
    """robots.txt of each site is one of the hub's."""
    if fetch.kind == "robots" and fetch.site != HUB:
        return 301, {"location": f"{HUB}/{fetch.site[7:]}.txt"}, b"", 0.1
    if fetch.kind == "robots":
        return 200, {}, ALLOWS, 0.1
    return 200, HTML, b'<a href="/no">no</a>', 0.1


@pytest.mark.parametrize("per_ip", ["true", "false"])
@pytest.mark.parametrize("known", [True, False])
def test_robots_txt_of_many_sites_that_redirect_to_one_host_are_asked_there_one_by_one(
    per_ip: str, known: bool
) -> None:
    drive = crawl(redirects, 40, seeds=(f"{HUB}/",) if known else (), politeness=f"per_ip = {per_ip}")
    drive.run(seconds=900)
    times = [at for at, _ in at_hub(drive)]
    assert len(times) >= 40
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(times)), "one a second, as of any site"
    assert drive.metrics.get("robots/rules") >= 40
    assert len([url for url in drive.asked() if not url.startswith(HUB)]) == 40
    assert drive.metrics.get("outcome/refused_by_robots") >= 40, "what they say is obeyed"
    assert drive.most_open == 1


def test_sites_that_share_one_robots_txt_share_its_fetch_while_it_waits() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots" and fetch.site != HUB:
            return 301, {"location": f"{HUB}/robots.txt"}, b"", 0.1
        return (200, {}, ALLOWS, 5.0) if fetch.kind == "robots" else (200, HTML, b"x", 0.1)

    drive = crawl(answer, 40)
    drive.run(seconds=900)
    assert len(at_hub(drive)) <= 3
    assert len(drive.asked()) == 40


def test_a_host_that_must_be_left_alone_is_left_alone_by_those_who_need_its_files_too() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.url.startswith(HUB + "/s"):
            return 429, {"retry-after": "3000"}, b"", 0.1
        return redirects(fetch, at)

    drive = crawl(answer, 10)
    drive.run(seconds=2900)
    assert len(at_hub(drive)) == 1
    assert drive.asked() == [], "a robots.txt that is not to be had refuses all"
    drive.answer = redirects
    drive.run(seconds=6 * 3600)
    assert len(drive.asked()) == 10


def test_what_the_store_remembers_of_a_parked_host_holds_for_its_guests_too() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.site == HUB and fetch.kind == "page":
            return 503, {"retry-after": "5000"}, b"", 0.1
        return (404, {}, b"", 0.1) if fetch.url == f"{HUB}/robots.txt" else redirects(fetch, at)

    drive = crawl(answer, 0, seeds=(f"{HUB}/",))
    drive.run(seconds=60)
    asked = len(at_hub(drive))
    assert drive.frontier.progress.statistics().active_sites == 0
    again = crawl(redirects, 3)
    late = Drive(again.collection, redirects, store=drive.store, clock=drive.clock)
    late.run(seconds=4000)
    assert (asked, at_hub(late)) == (2, [])


@pytest.mark.parametrize("addresses", [[], ["10.0.0.9"]])
def test_a_robots_txt_on_a_host_without_a_public_address_refuses_its_site(addresses: list[str]) -> None:
    drive = crawl(redirects, 3, allow_private="false")
    drive.addresses |= {f"s{number}.example": ["93.184.215.14"] for number in range(3)}
    drive.addresses["hub.example"] = addresses
    drive.run(seconds=600)
    assert at_hub(drive) == []
    assert drive.asked() == []
    assert drive.metrics.get("robots/refuse") >= 3


def test_sitemaps_on_another_host_wait_for_its_robots_txt_and_its_gate() -> None:
    sitemap = "<urlset><url><loc>http://{0}.example/hidden</loc></url></urlset>"

    def answer(fetch: Fetch, at: float) -> Answer:
        host = fetch.url.split("/")[2].split(".")[0]
        if fetch.url == f"{HUB}/robots.txt":
            return 200, {}, b"User-agent: *\nDisallow: /private/", 0.1
        if fetch.kind == "robots":
            names = b"".join(b"Sitemap: %s/%s/%s.xml\n" % (HUB.encode(), folder, host.encode())
                             for folder in (b"open", b"private"))  # fmt: skip
            return 200, {}, names, 0.1
        if fetch.kind == "sitemap":
            return 200, {}, sitemap.format(fetch.url.rpartition("/")[2][:-4]).encode(), 0.1
        return 200, HTML, b"x", 0.1

    drive = crawl(answer, 30)
    drive.run(seconds=900)
    asked = at_hub(drive)
    assert asked[0][1] == f"{HUB}/robots.txt"
    assert sorted(url for _, url in asked[1:]) == sorted(f"{HUB}/open/s{number}.xml" for number in range(30))
    assert all(later - earlier >= 1.0 for (earlier, _), (later, _) in pairwise(asked))
    assert len([url for url in drive.asked() if url.endswith("/hidden")]) == 30


def test_a_sitemap_that_redirects_is_followed_within_the_collection() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots":
            return 200, {}, b"Sitemap: /sitemap.xml", 0.1
        if fetch.url.endswith("/sitemap.xml"):
            return 302, {"location": "/real.xml"}, b"", 0.1
        if fetch.kind == "sitemap":
            return 200, {}, b"<urlset><url><loc>http://s0.example/hidden</loc></url></urlset>", 0.1
        return 200, HTML, b"x", 0.1

    drive = crawl(answer, 1)
    drive.run(seconds=600)
    assert drive.asked("sitemap") == ["http://s0.example/sitemap.xml", "http://s0.example/real.xml"]
    assert "http://s0.example/hidden" in drive.asked()


def test_two_sites_whose_robots_txt_redirect_to_each_other_end_after_five_hops() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots":
            other = "s1" if "//s0" in fetch.url else "s0"
            return 302, {"location": f"http://{other}.example/robots.txt?{len(fetch.url)}"}, b"", 0.1
        return 200, HTML, b"x", 0.1

    drive = crawl(answer, 2)
    drive.run(seconds=600)
    assert len(drive.asked("robots")) <= 12
    assert len(drive.asked()) == 2


def test_no_two_requests_are_under_way_at_one_host_whoever_they_are_for() -> None:
    drive = crawl(redirects, 20, seeds=(f"{HUB}/", f"{HUB}/two"))
    drive.run(seconds=900)
    assert drive.most_open == 1


def test_a_robots_txt_at_a_host_without_an_address_ends_no_crawl_of_one_pass() -> None:
    """Who yields requests waits for their ends, so the hub is given up at once, as a guest."""
    drive = Drive(collection_of(["http://s0.example/"]), redirects, recrawl=False)
    drive.addresses["hub.example"] = []
    drive.run(seconds=600.0)
    assert drive.asked() == []
    assert drive.page("http://s0.example/").error == "robots.txt"
    assert drive.frontier.progress.statistics().active_sites == 0
