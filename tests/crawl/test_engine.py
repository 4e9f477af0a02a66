"""The private parts of Scrapy's engine that we use are where we think they are, and do what we think they do."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys, time
import scrapy
from scrapy.core.scheduler import BaseScheduler
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import AsyncCrawlerProcess
from webfountain.crawl import engine

EVENTS = []

class Scheduler:
    def __init__(self, crawler):
        self.crawler, self.waiting, self.due = crawler, [], None
    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)
    def open(self, spider):
        engine.connect_ends(self.crawler, lambda request: EVENTS.append("end " + request.url[6:]))
    def close(self, reason):
        EVENTS.append("closed " + reason)
    def has_pending_requests(self):
        return bool(self.waiting)
    def enqueue_request(self, request):
        EVENTS.append("enqueue " + request.url[6:])
        self.waiting.append(request)
        return True
    def next_request(self):
        from twisted.internet import reactor
        if not self.waiting:
            return None
        if self.waiting[0].url == "data:,late" and self.due is None:
            self.due = time.monotonic() + 0.2
            reactor.callLater(0.2, engine.wake, self.crawler)
        if self.due is not None and time.monotonic() < self.due:
            return None
        return self.waiting.pop(0)

class Spider(scrapy.Spider):
    name = "x"
    async def start(self):
        yield scrapy.Request("data:,one", errback=self.failed)
        yield scrapy.Request("data:,two")
        yield scrapy.Request("gopher://three")
    def failed(self, failure):
        pass
    def parse(self, response):
        EVENTS.append("parse " + response.text)
        if response.text == "one":
            yield {"a": 1}
            yield scrapy.Request("data:,late")
        if response.text == "two":
            raise KeyError

class Pipeline:
    def process_item(self, item):
        EVENTS.append("item")
        return item

process = AsyncCrawlerProcess({
    "SCHEDULER": Scheduler, "ITEM_PIPELINES": {Pipeline: 1}, "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False,
})
# Without the wake the engine would ask again after this time, which nobody waits for.
ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 3600.0
process.crawl(Spider)
process.start()
print("\\n".join(EVENTS))
"""


def run_script() -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_end_is_reported_once_after_all_that_follows_it_and_the_engine_can_be_woken() -> None:
    events = run_script()
    ends = sorted(event for event in events if event.startswith("end "))
    assert ends == ["end ://three", "end late", "end one", "end two"]
    one = next(i for i, event in enumerate(events) if event.startswith("end") and event.endswith("one"))
    assert events.index("item") < one
    assert next(i for i, event in enumerate(events) if event.startswith("enqueue") and event.endswith("late")) < one
    assert "closed finished" in events


SCRAPE = """
import asyncio, json
import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from webfountain.crawl import engine

SEEN = []

class Waits:
    @classmethod
    def from_crawler(cls, crawler):
        waits = cls()
        crawler.signals.connect(waits.scraped, signals.item_scraped)
        return waits
    async def scraped(self, item):
        await asyncio.sleep(0)
        SEEN.append(f"waited for {item['url']}")

class Middleware:
    async def process_spider_output(self, response, result):
        async for output in result:
            yield {"url": output["url"].upper()}

class Pipeline:
    def process_item(self, item):
        SEEN.append(item["url"])
        return item

class Spider(scrapy.Spider):
    name = "x"
    async def start(self):
        engine.scrape_for(self.crawler, None, None)
        for url in ("data:,one", "data:,two"):
            yield scrapy.Request(url)
    def parse(self, response):
        if response.text == "two":
            raise KeyError
        return [{"url": response.url}]

process = AsyncCrawlerProcess({
    "SPIDER_MIDDLEWARES_BASE": {}, "SPIDER_MIDDLEWARES": {Middleware: 1} if WITH_MIDDLEWARE else {},
    "EXTENSIONS": {Waits: 1} if WITH_WAITING else {}, "LOG_ENABLED": False,
    "ITEM_PIPELINES": {Pipeline: 1}, "CONCURRENT_ITEMS": 1,
    "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False,
})
crawler = process.create_crawler(Spider)
process.crawl(crawler)
process.start()
stats = crawler.stats.get_stats()
print(json.dumps([SEEN, stats["item_scraped_count"], stats["spider_exceptions/KeyError"]]))
"""


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("middleware", [False, True])
def test_items_pass_what_a_crawl_has_and_an_error_of_a_callback_is_counted(waits: bool, middleware: bool) -> None:
    """Spider middlewares and receivers that must be waited for have their part, as in Scrapy."""
    head = f"WITH_WAITING, WITH_MIDDLEWARE = {waits}, {middleware}\n"
    done = subprocess.run(
        [sys.executable, "-c", head + SCRAPE], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    seen, scraped, errors = json.loads(done.stdout)
    url = "DATA:,ONE" if middleware else "data:,one"
    assert sorted(seen) == sorted([url, *([f"waited for {url}"] if waits else [])])
    assert (scraped, errors) == (1, 1)
