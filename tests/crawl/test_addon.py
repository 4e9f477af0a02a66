"""An existing Scrapy project with the add-on and nothing else: its own requests, callbacks and habits."""

from __future__ import annotations

import signal
import time
from collections import Counter
from typing import TYPE_CHECKING

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site

if TYPE_CHECKING:
    from pathlib import Path


def echo(asked: ReceivedRequest) -> Answer:
    """A page that says what was asked."""
    return Answer(f"<title>{asked.path}</title><p>{asked.body}</p>")


def test_callbacks_meta_arguments_bodies_and_headers_arrive_as_they_were_yielded(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self.base + "/first", self.first, meta={"deep": {"a": (1, 2)}}, cb_kwargs={"n": 7},
                                     headers={"X-Own": "yes"})
            def first(self, response, n):
                yield {"url": response.url, "deep": response.meta["deep"]["a"] == (1, 2), "n": n,
                       "title": response.css("title::text").get()}
                yield scrapy.FormRequest(self.base + "/form", formdata={"q": "x y"}, callback=self.second)
                yield scrapy.http.JsonRequest(self.base + "/json", data={"k": 1}, callback=self.second)
            async def second(self, response):
                yield {"said": response.css("p::text").get()}
        """,
    )
    with Site(echo) as site:
        project.crawl("theirs", base=site.base)
    items = project.items
    assert items[0] == {"url": site.base + "/first", "deep": True, "n": 7, "title": "/first"}
    assert sorted(item["said"] for item in items[1:]) == ["q=x+y", '{"k": 1}']
    first = next(asked for asked in site.asked if asked.path == "/first")
    assert (first.headers["x-own"], first.headers["user-agent"]) == ("yes", "theirs/1.0")


def test_each_request_is_made_once_unless_it_says_dont_filter(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                for _ in range(3):
                    yield scrapy.Request(self.base + "/once?b=1&a=2")
                    yield scrapy.Request(self.base + "/once?a=2&b=1")
                    yield scrapy.Request(self.base + "/thrice", dont_filter=True)
            def parse(self, response):
                pass
        """,
    )
    with Site(echo) as site:
        project.crawl("theirs", base=site.base)
    assert Counter(path.partition("?")[0] for path in site.paths) == {"/once": 1, "/thrice": 3}


def test_redirects_retries_cookies_and_errbacks_stay_scrapys(tmp_path: Path) -> None:
    tries: Counter[str] = Counter()

    def answer(asked: ReceivedRequest) -> Answer:
        tries[asked.path] += 1
        if asked.path == "/login":
            return Answer("in", headers=(("Set-Cookie", "who=me"),))
        if asked.path == "/moved":
            return Answer("", 302, (("Location", "/target"),))
        if asked.path == "/flaky" and tries["/flaky"] == 1:
            return Answer("", 500)
        if asked.path == "/missing":
            return Answer("", 404)
        return Answer(f"<p>{asked.headers.get('cookie', '')}</p>")

    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self.base + "/login", self.logged_in)
            def logged_in(self, response):
                for path in ("/moved", "/flaky", "/missing"):
                    yield scrapy.Request(self.base + path, self.seen, errback=self.failed, meta={"asked": path})
            def seen(self, response):
                yield {"asked": response.meta["asked"], "url": response.url, "cookie": response.css("p::text").get(),
                       "retries": response.meta.get("retry_times", 0),
                       "from": response.meta.get("redirect_urls")}
            def failed(self, failure):
                yield {"asked": failure.request.meta["asked"], "error": failure.value.response.status}
        """,
    )
    with Site(answer) as site:
        project.crawl("theirs", base=site.base)
    items = {item["asked"]: item for item in project.items}
    assert items["/moved"] == {
        "asked": "/moved",
        "url": site.base + "/target",
        "cookie": "who=me",
        "retries": 0,
        "from": [site.base + "/moved"],
    }
    assert (items["/flaky"]["retries"], items["/flaky"]["cookie"]) == (1, "who=me")
    assert items["/missing"] == {"asked": "/missing", "error": 404}
    assert len(project.items) == 3


def test_what_is_no_plain_data_stays_in_memory_and_is_logged_once(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Thing:
            pass
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self.base + "/lambda", lambda response: {"saw": response.url[-6:]})
                yield scrapy.Request(self.base + "/object", self.seen, meta={"thing": Thing()})
            def seen(self, response):
                yield {"saw": response.url[-6:], "kept": type(response.meta["thing"]).__name__}
        """,
    )
    with Site(echo) as site:
        log = project.crawl("theirs", base=site.base)
    assert sorted(item["saw"] for item in project.items) == ["lambda", "object"]
    assert {"saw": "object", "kept": "Thing"} in project.items
    assert log.count("stays in memory") == 1
    assert "'addon/in_memory': 2" in log


def test_a_broken_callback_is_logged_and_ends_nothing_else(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self.base + "/a")
                yield scrapy.Request(self.base + "/b")
            def parse(self, response):
                if response.url.endswith("a"):
                    raise KeyError("broken")
                yield {"url": response.url}
        """,
    )
    with Site(echo) as site:
        log = project.crawl("theirs", base=site.base)
        assert log.count("KeyError: 'broken'") == 1
        assert [item["url"] for item in project.items] == [site.base + "/b"]
        project.crawl("theirs", base=site.base)
        assert Counter(site.paths) == {"/a": 1, "/b": 1}


def test_greater_priority_goes_first(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self.base + "/start")
            def parse(self, response):
                if response.url.endswith("/start"):
                    for i in range(40):
                        yield scrapy.Request(self.base + f"/{i % 4}/{i}", priority=i % 4)
        """,
        settings="WEBFOUNTAIN_HAND = 1\nCONCURRENT_REQUESTS_PER_DOMAIN = 1",
    )
    with Site(echo) as site:
        project.crawl("theirs", base=site.base)
    classes = [int(path[1]) for path in site.paths[1:]]
    assert len(classes) == 40
    # The first may be handed out before all are known.
    assert classes[2:] == sorted(classes[2:], reverse=True)


def test_a_request_of_greater_priority_goes_before_those_that_were_leased_already(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                for i in range(60):
                    yield scrapy.Request(self.base + f"/page/{i}")
            def parse(self, response):
                if response.url.endswith("/page/20"):
                    yield scrapy.Request(self.base + "/token", priority=1000)
        """,
        settings="CONCURRENT_REQUESTS_PER_DOMAIN = 1",
    )
    with Site(echo) as site:
        project.crawl("theirs", base=site.base)
    assert len(site.paths) == 61
    assert site.paths.index("/token") - site.paths.index("/page/20") <= 2, "one may be under way"


def test_robots_txt_is_obeyed_where_the_project_says_so(tmp_path: Path) -> None:
    spider = """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self.base + "/open")
                yield scrapy.Request(self.base + "/closed")
            def parse(self, response):
                yield {"url": response.url}
    """
    # The sitemap is no request of the spider's, whatever robots.txt names.
    rules = "User-agent: *\nDisallow: /closed\nSitemap: /map.xml\n"
    obeying = Project(tmp_path / "obeying", spider, settings="ROBOTSTXT_OBEY = True")
    with Site(echo, robots=rules) as site:
        log = obeying.crawl("theirs", base=site.base)
    assert site.paths == ["/open"]
    assert [asked.path for asked in site.asked].count("/robots.txt") == 1
    assert "'robotstxt/forbidden': 1" in log
    assert "'robotstxt/response_status_count/200': 1" in log
    ignoring = Project(tmp_path / "ignoring", spider)
    with Site(echo, robots=rules) as site:
        ignoring.crawl("theirs", base=site.base)
    assert sorted(asked.path for asked in site.asked) == ["/closed", "/open"]


def test_a_killed_crawl_goes_on_where_it_was_and_repeats_at_most_what_was_in_flight(tmp_path: Path) -> None:
    def slow(asked: ReceivedRequest) -> Answer:
        time.sleep(0.01)
        return echo(asked)

    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self.base + "/start", self.first)
            def first(self, response):
                for i in range(60):
                    yield scrapy.Request(self.base + f"/page/{i}", self.second, cb_kwargs={"i": i})
            def second(self, response, i):
                yield {"i": i}
        """,
        settings="CONCURRENT_REQUESTS_PER_DOMAIN = 1",
    )
    with Site(slow) as site:
        process = project.start("theirs", base=site.base)
        while len(site.paths) < 15:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed_at = len(site.paths)
        project.crawl("theirs", base=site.base)
        asked = Counter(site.paths)
    assert killed_at < 61
    assert set(asked) == {"/start", *(f"/page/{i}" for i in range(60))}
    assert sum(asked.values()) <= 61 + 8


def test_crawl_and_sitemap_spiders_work(tmp_path: Path) -> None:
    def answer(asked: ReceivedRequest) -> Answer:
        if asked.path == "/map.xml":
            return Answer(f"<urlset><url><loc>{site.base}/mapped</loc></url></urlset>")
        return Answer('<a href="/1">1</a><a href="/2">2</a>' if asked.path == "/" else "<p>leaf</p>")

    project = Project(
        tmp_path,
        """
        from scrapy.linkextractors import LinkExtractor
        from scrapy.spiders import CrawlSpider, Rule, SitemapSpider
        class Walker(CrawlSpider):
            name = "walker"
            rules = [Rule(LinkExtractor(), callback="leaf", follow=True)]
            async def start(self):
                yield scrapy.Request(self.base + "/")
            def leaf(self, response):
                yield {"url": response.url}
        class Mapped(SitemapSpider):
            name = "mapped"
            def __init__(self, base):
                self.sitemap_urls = [base + "/map.xml"]
                super().__init__()
            def parse(self, response):
                yield {"url": response.url}
        """,
    )
    with Site(answer) as site:
        project.crawl("walker", base=site.base)
        project.crawl("mapped", base=site.base)
    assert sorted(item["url"] for item in project.items) == [site.base + path for path in ("/1", "/2", "/mapped")]


def test_other_schemes_and_a_download_handler_of_the_projects_own_still_work(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request("data:,hello")
                yield scrapy.Request(self.base + "/x")
            def parse(self, response):
                yield {"text": response.text[:5]}
        """,
        settings="""
        DOWNLOAD_HANDLERS = {"http": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"}
        DOWNLOAD_DELAY = 0.01
        """,
    )
    with Site(echo) as site:
        project.crawl("theirs", base=site.base)
    assert sorted(item["text"] for item in project.items) == ["<titl", "hello"]
