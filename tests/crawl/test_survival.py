"""What another project's crawl keeps when it is stopped or killed: requests of each kind, the items of its feed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.crawl.projects import ROOT, Answer, Project, ReceivedRequest, Site
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 8
SPIDERS = """
    import dataclasses, datetime, decimal, enum, typing
    from scrapy.linkextractors import LinkExtractor
    from scrapy.spiders import CrawlSpider, Rule
    class Item(scrapy.Item):
        n = scrapy.Field()
    class ItemInMeta(scrapy.Spider):
        name = "item"
        async def start(self):
            yield scrapy.Request(self._base + "/list")
        def parse(self, response):
            for link in response.css("a"):
                item = Item(n=int(link.css("::text").get()))
                yield response.follow(link, self.parse_page, meta={"item": item})
        def parse_page(self, response):
            yield response.meta["item"]
    class Colour(enum.Enum):
        RED = "red"
    class Where(typing.NamedTuple):
        x: int
        y: int
    @dataclasses.dataclass
    class Book:
        n: int
        price: decimal.Decimal
        took: datetime.timedelta
        where: Where
        colour: Colour
    class DataclassInArguments(scrapy.Spider):
        name = "dataclass"
        async def start(self):
            yield scrapy.Request(self._base + "/list")
        def parse(self, response):
            for n in range(len(response.css("a"))):
                book = Book(n, decimal.Decimal("1.50"), datetime.timedelta(1), Where(1, 2), Colour.RED)
                yield response.follow(f"page/{n}", self.parse_page, cb_kwargs={"book": book})
        def parse_page(self, response, book):
            assert (book.price + 1, book.where.y, book.colour) == (decimal.Decimal("2.50"), 2, Colour.RED)
            yield {"n": book.n}
    class Walker(CrawlSpider):
        name = "crawlspider"
        rules = [Rule(LinkExtractor(allow="/page/"), callback="parse_page", follow=True)]
        async def start(self):
            yield scrapy.Request(self._base + "/list")
        def parse_page(self, response):
            yield {"n": int(response.meta["link_text"])}
    class Form(scrapy.Spider):
        name = "form"
        async def start(self):
            yield scrapy.Request(self._base + "/list")
        def parse(self, response):
            for n in range(len(response.css("a"))):
                yield scrapy.FormRequest(f"{self._base}/page/{n}", formdata={"n": str(n)}, cookies={"n": str(n)},
                                         callback=self.parse_page)
        def parse_page(self, response):
            yield {"n": int(response.css("p::text").re_first("n=(.*)"))}
    class Chain(scrapy.Spider):
        name = "chain"
        async def start(self):
            yield scrapy.Request(self._base + "/page/0", meta={"seen": {"n": [0]}})
        def parse(self, response):
            n = response.meta["seen"]["n"][-1]
            yield {"n": n}
            if n < 7:
                yield response.follow(f"{n + 1}", meta={"seen": {"n": [n, n + 1]}})
    class InMemory(scrapy.Spider):
        name = "memory"
        async def start(self):
            yield scrapy.Request(self._base + "/list")
        def parse(self, response):
            for n in range(len(response.css("a"))):
                if n % 2:
                    yield response.follow(f"page/{n}", lambda response, n=n: {"n": n})
                else:
                    yield response.follow(f"page/{n}", self.parse_page, meta={"list": response, "n": n})
        def parse_page(self, response):
            assert response.meta["list"].css("a")
            yield {"n": response.meta["n"]}
"""
NAMES = ("item", "dataclass", "crawlspider", "form", "chain", "memory")
ALL = """
import sys
from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings
process = CrawlerProcess(get_project_settings())
for name in process.spider_loader.list():
    process.crawl(name, _base=f"{sys.argv[1]}/{name}")
process.start()
"""


def slow(asked: ReceivedRequest) -> Answer:
    """A list of pages, and pages that say what was sent to them; below each spider's name."""
    time.sleep(0.01)
    name = asked.path.split("/")[1]
    if asked.path.endswith("/list"):
        return Answer("".join(f'<a href="/{name}/page/{n}">{n}</a>' for n in range(PAGES)))
    return Answer(f"<p>{asked.body}</p>")


def stop(process: subprocess.Popen[str], site: Site, *, after: int, by: signal.Signals) -> None:
    """Stop a crawl once the site has got `after` more requests."""
    most = len(site.paths) + after
    while len(site.paths) < most and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(by)
    process.communicate(timeout=240)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Six spiders, each with a habit that many have, and a script that runs all of them at once."""
    project = Project(tmp_path, SPIDERS, settings='FEEDS = {"%(name)s.jsonl": {"format": "jsonlines"}}')
    (tmp_path / "all.py").write_text(ALL)
    return project


def numbers(folder: Path, name: str) -> Counter[int]:
    """What a spider has yielded, in all runs; each line of its feed must be whole."""
    return Counter(json.loads(line)["n"] for line in (folder / f"{name}.jsonl").read_text().splitlines())


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL], ids=["stops", "kills"])
def test_after_two_stops_or_kills_every_spider_has_all_its_items_as_with_jobdir(
    project: Project, tmp_path: Path, by: signal.Signals
) -> None:
    with Site(slow) as site:
        for _ in range(2):
            stop(project.start_script("all.py", site.base), site, after=18, by=by)
        done = project.run("all.py", site.base)
        asked = Counter(site.paths)
    assert "Traceback" not in done.stderr
    kept = [line for line in done.stderr.splitlines() if "stays in memory" in line]
    assert all(f"{site.base}/memory/" in line for line in kept)
    yielded = {name: numbers(tmp_path, name) for name in NAMES}
    assert {name: set(many) for name, many in yielded.items()} == {name: set(range(PAGES)) for name in NAMES}
    assert max(many for path, many in asked.items() if not path.startswith("/memory")) <= 3
    if by == signal.SIGINT:  # and none twice, but where a page is asked again for those that it yielded
        assert all(max(yielded[name].values()) == 1 for name in NAMES if name != "memory")


def test_a_page_is_settled_after_all_that_came_of_it_in_memory_also_through_redirects_and_retries(
    tmp_path: Path,
) -> None:
    tries: Counter[str] = Counter()

    def answer(asked: ReceivedRequest) -> Answer:
        tries[asked.path] += 1
        if asked.path == "/moved":
            return Answer("", 302, (("Location", "/flaky"),))
        if asked.path == "/flaky" and tries["/flaky"] <= 2:
            return Answer("", 503 if tries["/flaky"] == 1 else 200)
        return Answer("")

    project = Project(
        tmp_path,
        """
        import os, signal
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self._base + "/first")
            def parse(self, response):
                yield {"said": "first"}
                yield response.follow("/moved", lambda response: self.second(response))
            def second(self, response):
                if self._kill == "yes":
                    os.kill(os.getpid(), signal.SIGKILL)
                yield {"said": response.url.removeprefix(self._base)}
        """,
        settings="RETRY_TIMES = 5",
    )
    with Site(answer) as site:
        killed = project.start("theirs", _base=site.base, _kill="yes")
        killed.communicate(timeout=240)
        assert killed.returncode == -signal.SIGKILL
        project.crawl("theirs", _base=site.base, _kill="no")
        assert [item["said"] for item in project.items][-2:] == ["first", "/flaky"]
        assert site.paths.count("/first") == 2
        before = len(site.paths)
        project.crawl("theirs", _base=site.base, _kill="no")
    assert site.paths[before:] == []


def test_callbacks_that_take_longer_than_a_lease_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        import asyncio, time
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                for path in ("/waits", "/blocks", "/after"):
                    yield scrapy.Request(self._base + path)
            async def parse(self, response):
                if response.url.endswith("/waits"):
                    await asyncio.sleep(2.5)
                if response.url.endswith("/blocks"):
                    time.sleep(2.5)
                yield {"path": response.url.removeprefix(self._base)}
        """,
        settings="WEBFOUNTAIN_LEASE_SECONDS = 1",
    )
    with Site(slow) as site:
        log = project.crawl("theirs", _base=site.base)
    assert sorted(item["path"] for item in project.items) == ["/after", "/blocks", "/waits"]
    assert sorted(site.paths) == ["/after", "/blocks", "/waits"]
    assert "'ant/settle_lost': 0" in log
    assert "'finish_reason': 'finished'" in log


OVER_THERE = """
    class Theirs(scrapy.Spider):
        name = "theirs"
        async def start(self):
            for n in range(3):
                yield scrapy.Request(f"{self._base}/{n}", dont_filter=True)
        def parse(self, response):
            yield scrapy.Request(self._other + response.url[-2:], lambda response: {"url": response.url})
"""


def test_pages_that_wait_for_requests_in_memory_take_no_place_from_the_sites_of_these(tmp_path: Path) -> None:
    project = Project(tmp_path, OVER_THERE, settings="WEBFOUNTAIN_ACTIVE_SITES = 1\nWEBFOUNTAIN_MAX_SECONDS = 200")
    with Site(slow) as site, Site(slow) as other:
        log = project.crawl("theirs", _base=site.base, _other=other.base)
    assert "'finish_reason': 'finished'" in log
    assert sorted(other.paths) == ["/0", "/1", "/2"]


def test_pages_that_wait_for_requests_to_a_forgotten_site_are_settled_all_the_same(tmp_path: Path) -> None:
    project = Project(tmp_path, OVER_THERE, settings="WEBFOUNTAIN_MAX_SECONDS = 200")
    with Site(slow) as site, Site(slow) as other:
        project.crawl("theirs", _base=site.base, _other=other.base)
        store = open_store(f"rocksdb://{tmp_path}/.webfountain/theirs", collection=None, period_s=None)
        store.pages.forget(other.base, at=0.0)
        store.close()
        log = project.crawl("theirs", _base=site.base, _other=other.base)
    assert "'finish_reason': 'finished'" in log
    assert "'ant/settled': 3" in log
    assert len(other.paths) == 3


def test_errbacks_that_yield_what_stays_in_memory_are_all_called(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                for n in range(1200):
                    yield scrapy.Request(f"{self._base}/closed/{n}", errback=self.failed)
            def failed(self, failure):
                yield scrapy.Request("http://nowhere.invalid/" + failure.request.url, errback=lambda failure: None,
                                     meta={"dont_retry": True})
        """,
        settings="ROBOTSTXT_OBEY = True\nWEBFOUNTAIN_MAX_SECONDS = 200\nLOG_LEVEL = 'INFO'",
    )
    with Site(slow, robots="User-agent: *\nDisallow: /closed\n") as site:
        log = project.crawl("theirs", _base=site.base)
    assert "'finish_reason': 'finished'" in log
    assert "'ant/settled': 2400" in log


def test_a_callback_that_the_spider_has_lost_keeps_its_requests_until_it_comes_back(tmp_path: Path) -> None:
    spider = """
        class Theirs(scrapy.Spider):
            name = "theirs"
            async def start(self):
                yield scrapy.Request(self._base + "/start")
            def parse(self, response):
                for n in range(8):
                    yield response.follow(f"/page/{n}", self.NAME)
                yield response.follow("/other", self.other)
                if self._stop == "yes":
                    raise scrapy.exceptions.CloseSpider("stop")
            def NAME(self, response):
                yield {"url": response.url}
            def other(self, response):
                pass
    """
    project = Project(tmp_path, spider.replace("NAME", "parse_page"))
    module = tmp_path / "theirs" / "spiders.py"
    with Site(slow) as site:
        project.crawl("theirs", _base=site.base, _stop="yes")
        source = module.read_text()
        module.write_text(source.replace("parse_page", "parse_book"))
        log = project.crawl("theirs", _base=site.base, _stop="no")
        assert site.paths == ["/start", "/other"]
        assert log.count("has no method 'parse_page'") == 1
        assert "'addon/withheld': 8" in log
        assert "'finish_reason': 'finished'" in log
        module.write_text(source)
        project.crawl("theirs", _base=site.base, _stop="no")
    assert len(project.items) == 8


def test_each_page_that_the_fountain_has_settled_has_its_item_in_the_feed_after_a_kill(tmp_path: Path) -> None:
    def answer(asked: ReceivedRequest) -> Answer:
        return Answer(f'<p>{asked.path}</p><a href="{asked.path}x"></a><a href="{asked.path}y"></a>')

    with Site(answer) as site:
        (tmp_path / "c.toml").write_text(
            f'[collection]\nname = "c"\nseeds = ["{site.base}/"]\n[network]\nallow_private = true\n'
            '[politeness]\nmin_delay = "0s"\ndelay_factor = 0\n'
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy", "crawl", "fountain", "-a", "collection=c.toml", "-O", "pages.jsonl"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "webfountain.settings"},
            stderr=subprocess.PIPE,
            text=True,
        )
        stop(process, site, after=60, by=signal.SIGKILL)
    store = open_store(f"rocksdb://{tmp_path}/.webfountain", collection=None, period_s=None)
    settled = {record.url for _, record in store.pages.records(state="crawled")}
    store.close()
    lines = (tmp_path / "pages.jsonl").read_text().splitlines()
    assert settled
    assert settled <= {json.loads(line)["url"] for line in lines if line.endswith("}")}


REMEMBERING = """
import os, pathlib, signal
from scrapy.exceptions import DropItem
class Remembering:
    \"\"\"A pipeline with a database of its own: it drops what it knows.\"\"\"
    def process_item(self, item):
        known = pathlib.Path("known").read_text().split() if os.path.exists("known") else []
        if str(item["n"]) in known:
            raise DropItem("known")
        if item["n"] == 2 and not os.path.exists("killed"):
            pathlib.Path("killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        with open("known", "a") as file:
            file.write(f"{item['n']}\\n")
        return item
class Three(scrapy.Spider):
    name = "three"
    custom_settings = {"ITEM_PIPELINES": {Remembering: 1}, "CONCURRENT_ITEMS": 1}
    async def start(self):
        yield scrapy.Request(self._base + "/list")
    def parse(self, response):
        for n in range(3):
            yield {"n": n}
"""


def test_an_item_that_its_pipeline_has_stored_is_in_the_feed_although_a_kill_came_at_once(tmp_path: Path) -> None:
    project = Project(tmp_path, REMEMBERING)
    with Site(slow) as site:
        process = project.start("three", _base=site.base)
        process.communicate(timeout=240)
        assert process.returncode == -signal.SIGKILL
        assert [item["n"] for item in project.items] == [0, 1]
        project.crawl("three", _base=site.base)
    assert [item["n"] for item in project.items] == [0, 1, 2]
