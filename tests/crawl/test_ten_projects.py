"""Projects of ten kinds, with and without the add-on: stopped, killed, resumed and run again."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site

if TYPE_CHECKING:
    from pathlib import Path

PAGES: Final = 14
SPIDERS: Final = """
import dataclasses, datetime, json
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider

def callback_for(kind):
    def parse(self, response):
        yield {"n": int(response.url.rpartition("/")[2]), "kind": kind}
    return parse

class Walker(CrawlSpider):
    name = "crawlspider"
    rules = [Rule(LinkExtractor(allow="/page/"), callback="parse_page", follow=True)]
    async def start(self):
        yield scrapy.Request(self._base + "/list")
    def parse_page(self, response):
        yield {"n": int(response.meta["link_text"])}

class Maps(SitemapSpider):
    name = "sitemap"
    sitemap_rules = [("/page/", "parse_page")]
    async def start(self):
        self.sitemap_urls = [self._base + "/sitemap.xml"]
        async for each in super().start():
            yield each
    def parse_page(self, response):
        yield {"n": int(response.url.rpartition("/")[2])}

class LogIn(scrapy.Spider):
    name = "login"
    async def start(self):
        yield scrapy.Request(self._base + "/login")
    def parse(self, response):
        yield scrapy.FormRequest.from_response(response, formdata={"user": "me"}, callback=self.logged_in)
    def logged_in(self, response):
        for n in range(14):
            yield scrapy.Request(f"{self._base}/page/{n}", self.__page, cookies={"who": "me"})
    def __page(self, response):
        yield {"n": int(response.url.rpartition("/")[2])}

class Poet(scrapy.Spider):
    name = "callback_for"
    parse_book = callback_for("book")
    async def start(self):
        yield scrapy.Request(self._base + "/list")
    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_book)

class Windows(scrapy.Spider):
    name = "windows"
    async def start(self):
        day = datetime.date(2026, 1, 1)
        for n in range(14):
            day += datetime.timedelta(30)
            yield scrapy.Request(f"{self._base}/page/{n}", cb_kwargs={"window": (day, datetime.timedelta(30)), "n": n})
    def parse(self, response, window, n):
        assert window[0] + window[1] > window[0]
        yield {"n": n, "day": window[0].isoformat()}

@dataclasses.dataclass
class File:
    name: str
    n: int

class Collect(scrapy.Spider):
    name = "collect"
    async def start(self):
        yield scrapy.Request(self._base + "/api", meta={"file": File("list.json", 0)})
    def parse(self, response):
        for n in response.json()["pages"]:
            yield scrapy.http.JsonRequest(f"{self._base}/page/{n}", data={"half": "\\ud83d"},
                meta={"file": File("\\ud83d.json", n)}, callback=self.parse_file, errback=self.failed, priority=n)
    def parse_file(self, response):
        yield {"n": response.meta["file"].n}
    def failed(self, failure):
        yield {"n": -1}

class Imitating(HTTP11DownloadHandler):
    "A handler of the project's own, as those that imitate a browser."

class Browser(scrapy.Spider):
    name = "handler"
    custom_settings = {"DOWNLOAD_HANDLERS": {"http": "theirs.spiders.Imitating"}, "USER_AGENT": None}
    async def start(self):
        yield scrapy.Request(self._base + "/list", meta={"impersonate": "chrome"})
    def parse(self, response):
        for a in response.css("a"):
            yield response.follow(a, self.parse_page, meta={"impersonate": "chrome", "impersonate_args": {"a": False}})
    def parse_page(self, response):
        yield {"n": int(response.url.rpartition("/")[2])}

@dataclasses.dataclass
class PageMethod:
    method: str
    args: tuple

class Playing(scrapy.Spider):
    name = "playwright"
    custom_settings = {"DOWNLOAD_HANDLERS": {"http": "theirs.spiders.Imitating"}}
    async def start(self):
        yield scrapy.Request(self._base + "/list", meta={"playwright": True})
    async def parse(self, response):
        for a in response.css("a"):
            yield response.follow(a, self.parse_page, errback=self.failed, meta={
                "playwright": True, "playwright_page_methods": [PageMethod("wait_for_selector", ("p",))]})
    async def parse_page(self, response):
        assert response.meta["playwright_page_methods"][0].method == "wait_for_selector"
        yield {"n": int(response.url.rpartition("/")[2])}
    async def failed(self, failure):
        yield {"n": -1}

class Files(scrapy.Spider):
    name = "files"
    custom_settings = {"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}, "FILES_STORE": "files"}
    async def start(self):
        yield scrapy.Request(self._base + "/list")
    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_page)
    def parse_page(self, response):
        n = int(response.url.rpartition("/")[2])
        yield {"n": n, "file_urls": [f"{self._base}/file/{n}"]}

class Inline(scrapy.Spider):
    name = "inline"
    async def start(self):
        yield scrapy.Request(self._base + "/list")
    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_page)
    async def parse_page(self, response):
        more = await self.crawler.engine.download_async(scrapy.Request(response.url.replace("/page/", "/more/")))
        yield {"n": int(response.url.rpartition("/")[2]), "more": more.css("p::text").get()}
"""
NAMES: Final = (
    "crawlspider",
    "sitemap",
    "login",
    "callback_for",
    "windows",
    "collect",
    "handler",
    "playwright",
    "files",
    "inline",
)
QUICK: Final = ("callback_for", "collect")
SETTINGS: Final = "CONCURRENT_REQUESTS_PER_DOMAIN = 2\nWEBFOUNTAIN_COOKIES = True\n"


class Web:
    """The site of all of them; pages take a little."""

    def __init__(self) -> None:
        self.site = Site(self.answer)

    def answer(self, asked: ReceivedRequest) -> Answer:
        time.sleep(0.03)
        links = [f"{self.site.base}/page/{n}" for n in range(PAGES)]
        if asked.path == "/list":
            return Answer("".join(f'<a href="{url}">{n}</a>' for n, url in enumerate(links)))
        if asked.path == "/sitemap.xml":
            return Answer(f"<urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in links)}</urlset>")
        if asked.path == "/login":
            return Answer('<form method="post" action="/in"><input name="user"></form>')
        if asked.path == "/api":
            return Answer(json.dumps({"pages": list(range(PAGES))}))
        return Answer(f"<p>{asked.path}</p>")

    def counts(self) -> Counter[str]:
        """How often each page was asked; log-ins and lists are start requests, which every run makes."""
        return Counter(path for path in self.site.paths if path.startswith(("/page/", "/more/", "/file/")))


def numbers(project: Project) -> set[int]:
    return {item["n"] for item in project.items}


def ended(project: Project, web: Web, name: str, end: signal.Signals, *options: str) -> None:
    """Begin a crawl and end it after some pages."""
    process = project.start(name, *options, _base=web.site.base)
    while sum(web.counts().values()) < 5:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(end)
    process.communicate(timeout=240)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.soak) for name in NAMES]
)
def test_a_project_that_is_stopped_and_run_again_asks_what_jobdir_asks(tmp_path: Path, name: str) -> None:
    web = Web()
    with web.site:
        project = Project(tmp_path / "ours", SPIDERS, settings=SETTINGS)
        ended(project, web, name, signal.SIGTERM)
        assert len(project.items) < PAGES
        for _ in range(2):
            project.crawl(name, _base=web.site.base)
    ours = web.counts()
    theirs_web = Web()
    with theirs_web.site:
        theirs = Project(tmp_path / "theirs", SPIDERS, addon=False)
        theirs.crawl(name, "-s", "JOBDIR=job", _base=theirs_web.site.base)
    assert numbers(project) == numbers(theirs) == set(range(PAGES))
    assert len(project.items) == len(theirs.items)
    assert ours == theirs_web.counts(), "nothing twice that JOBDIR asks once"


@pytest.mark.parametrize(
    "name", [name if name in QUICK[:1] else pytest.param(name, marks=pytest.mark.soak) for name in NAMES]
)
def test_a_project_that_is_killed_loses_nothing(tmp_path: Path, name: str) -> None:
    web = Web()
    with web.site:
        project = Project(tmp_path, SPIDERS, settings=SETTINGS)
        ended(project, web, name, signal.SIGKILL)
        for _ in range(2):
            project.crawl(name, _base=web.site.base)
    assert numbers(project) == set(range(PAGES))
    repeated = sum(many - 1 for many in web.counts().values())
    assert repeated <= 12, "what was under way, and what was not settled yet"
