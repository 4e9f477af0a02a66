"""The private parts of Scrapy's engine that we use are where we think they are, and do what we think they do."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

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


def test_every_end_is_told_once_after_all_that_follows_it_and_the_engine_can_be_woken() -> None:
    events = run_script()
    ends = sorted(event for event in events if event.startswith("end "))
    assert ends == ["end ://three", "end late", "end one", "end two"]
    one = next(i for i, event in enumerate(events) if event.startswith("end") and event.endswith("one"))
    assert events.index("item") < one
    assert next(i for i, event in enumerate(events) if event.startswith("enqueue") and event.endswith("late")) < one
    assert "closed finished" in events
