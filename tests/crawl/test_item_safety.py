"""Items of a pipeline whose target is away: they wait, and no page is settled before them."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from typing import TYPE_CHECKING

import pytest
import redis.exceptions
from scrapy.utils.test import get_crawler

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site
from tests.crawl.test_from_scrapy_redis import wait_for
from tests.servers.valkey import SERVERS, single
from webfountain.crawl.item_safety import ItemSafety, is_away

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 120
SPIDER = """
    class Theirs(scrapy.Spider):
        name = "theirs"
        start_urls = ["{base}/0"]

        def parse(self, response):
            yield {{"page": int(response.url.rpartition("/")[2])}}
            yield from response.follow_all(css="a", callback=self.parse)
"""
SETTINGS = """
REDIS_URL = "{url}"
REDIS_ITEMS_KEY = "items"
WEBFOUNTAIN_STORE = "rocksdb://store"
ITEM_PIPELINES = {{"theirs.pipelines.Once": 300, "scrapy_redis.pipelines.RedisPipeline": 400}}
"""
ONCE = """
from scrapy.exceptions import DropItem

class Once:
    seen = set()

    def process_item(self, item):
        if item["page"] in self.seen:
            raise DropItem("seen")
        self.seen.add(item["page"])
        return item
"""


def answer(asked: ReceivedRequest) -> Answer:
    number = int(asked.path.strip("/") or 0)
    links = "".join(f'<a href="/{n}">{n}</a>' for n in (2 * number + 1, 2 * number + 2) if n < PAGES)
    return Answer(f"<title>{number}</title>{links}", headers=(("Content-Type", "text/html"),))


def project(folder: Path, site: Site, url: str) -> Project:
    made = Project(folder, SPIDER.format(base=site.base), settings=SETTINGS.format(url=url))
    (folder / "theirs" / "pipelines.py").write_text(ONCE)
    return made


def pushed(client: redis.Redis) -> list[int]:
    return sorted(json.loads(each)["page"] for each in client.lrange("items", 0, -1))


def test_no_item_is_lost_while_the_server_of_the_items_is_away(tmp_path: Path) -> None:
    with single(appendonly="yes") as (url, client), Site(answer) as site:
        process = project(tmp_path, site, url).start("theirs")
        server = SERVERS[url]
        wait_for(lambda: client.llen("items") > 10)
        server.terminate()
        asked = len(site.paths)
        wait_for(lambda: len(site.paths) >= min(asked + 15, PAGES))
        server.start(timeout=240.0)
        _, log = process.communicate(timeout=240)
        assert process.returncode == 0, log[-3000:]
        assert set(pushed(client)) == set(range(PAGES))
    assert len(site.paths) == PAGES, "no page was asked again for it"
    assert log.count("is unreachable; its items and their pages wait") == log.count("can be reached again, after") == 1


def test_a_page_whose_items_could_not_be_pushed_when_the_crawl_was_stopped_is_asked_again(tmp_path: Path) -> None:
    with single(appendonly="yes") as (url, client), Site(answer) as site:
        theirs = project(tmp_path, site, url)
        process = theirs.start("theirs")
        server = SERVERS[url]
        wait_for(lambda: client.llen("items") > 10)
        server.terminate()
        asked = len(site.paths)
        wait_for(lambda: len(site.paths) >= min(asked + 5, PAGES))
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=240)
        assert process.returncode == 0, log[-3000:]
        server.start(timeout=240.0)
        theirs.crawl("theirs")
        assert set(pushed(client)) == set(range(PAGES))


def test_an_answer_on_its_way_before_the_target_went_away_does_not_say_that_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = {name: [asyncio.Event() for _ in range(2)] for name in "ab"}

    async def push(item: str) -> None:
        await answers[item].pop(0).wait()
        if item == "b" and answers["b"]:
            raise ConnectionRefusedError

    async def run() -> None:
        process_item = ItemSafety(get_crawler(), lambda _: None).guard(push)
        (early, _), (failure, success) = answers["a"], answers["b"]
        a, b = asyncio.create_task(process_item("a")), asyncio.create_task(process_item("b"))
        await asyncio.sleep(0)  # both attempts begin
        failure.set()
        while "is unreachable" not in caplog.text:
            await asyncio.sleep(0)
        early.set()
        await a
        assert "can be reached again" not in caplog.text
        success.set()
        await b

    asyncio.run(run())
    assert caplog.text.count("can be reached again") == 1


class _Theirs(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (ConnectionRefusedError(), True),
        (TimeoutError(), True),
        (redis.exceptions.ConnectionError("Error 111"), True),
        (redis.exceptions.ReadOnlyError("READONLY"), True),
        (redis.exceptions.ResponseError("WRONGTYPE"), False),
        (sqlite3.OperationalError("no such table: items"), False),
        (ValueError("no price"), False),
        (FileNotFoundError("items.csv"), False),
        (_Theirs(), False),
    ],
    ids=repr,
)
def test_an_error_says_whether_a_target_is_away(error: Exception, *, away: bool) -> None:
    assert is_away(error) is away
