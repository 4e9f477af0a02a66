"""A project as scrapy-redis's README shows it, moved over by the steps that our README tells, and nothing else."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from tests.crawl.projects import Answer, Project, ReceivedRequest, Site
from tests.servers.valkey import single
from webfountain.crawl.builder import redis_parameters, redis_url
from webfountain.crawl.start_urls import StartUrls
from webfountain.store.shared.connection import connect
from webfountain.store.shared.feed import ServerFeed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import redis

SPIDERS = """
    from scrapy.linkextractors import LinkExtractor
    from scrapy.spiders import Rule
    from scrapy_redis.spiders import RedisCrawlSpider, RedisSpider

    class MySpider(RedisSpider):
        name = "myspider_redis"
        redis_key = "myspider:start_urls"

        def parse(self, response):
            yield {"name": response.css("title::text").get(), "url": response.url, "meta": response.meta.get("job")}
            for link in response.css("a::attr(href)").getall():
                yield response.follow(link, self.parse)

    class MyCrawler(RedisCrawlSpider):
        name = "mycrawler_redis"
        rules = [Rule(LinkExtractor(), callback="parse_page", follow=True)]

        def parse_page(self, response):
            yield {"name": response.css("title::text").get(), "url": response.url}

    class Plain(scrapy.Spider):
        name = "plain"
        redis_key = "%(name)s:start_urls"

        def parse(self, response):
            yield {"url": response.url, "meta": response.meta.get("job")}
"""
# As example-project/example/settings.py of scrapy-redis has it, with the lines of step 1 taken out and put in.
SETTINGS = """
REDIS_URL = "{url}"
ITEM_PIPELINES = {{"scrapy_redis.pipelines.RedisPipeline": 400}}
MAX_IDLE_TIME_BEFORE_CLOSE = {idle}
"""
PAGES = 12


def answer(asked: ReceivedRequest) -> Answer:
    """A site of pages in a row, each linking the next two."""
    number = int(asked.path.strip("/") or 0)
    links = "".join(f'<a href="/{n}">{n}</a>' for n in (number + 1, number + 2) if n < PAGES)
    return Answer(f"<title>Page {number}</title>{links}", headers=(("Content-Type", "text/html"),))


@pytest.fixture
def server() -> Iterator[tuple[str, redis.Redis]]:
    with single() as found:
        yield found


def test_two_workers_crawl_what_is_pushed_to_one_list_each_page_once(
    tmp_path: Path, server: tuple[str, redis.Redis]
) -> None:
    """URLs and JSON, pushed before and while they run; the items reach the list that scrapy-redis's pipeline fills."""
    url, client = server
    project = Project(tmp_path, SPIDERS, settings=SETTINGS.format(url=url, idle=4))
    with Site(answer) as first, Site(answer) as second, Site(answer) as third:
        client.lpush("myspider:start_urls", f"{first.base}/0")
        workers = [project.start("myspider_redis"), project.start("myspider_redis")]
        wait_for(lambda: len(first.asked) > 3)
        client.lpush("myspider:start_urls", json.dumps({"url": f"{second.base}/0", "meta": {"job": "j1"}}))
        client.lpush("myspider:start_urls", json.dumps({"url": f"{third.base}/5", "meta": {"job": "j2"}}))
        client.lpush("myspider:start_urls", "not a URL at all")
        for worker in workers:
            _, log = worker.communicate(timeout=240)
            assert worker.returncode == 0, log[-4000:]
        pages = [[each.path for each in site.asked if each.path != "/robots.txt"] for site in (first, second, third)]
    assert sorted(pages[0], key=int_of) == sorted(pages[1], key=int_of) == [f"/{n}" for n in range(PAGES)]
    assert sorted(pages[2], key=int_of) == [f"/{n}" for n in range(5, PAGES)]
    items = [json.loads(each) for each in client.lrange("myspider_redis:items", 0, -1)]
    assert len(items) == PAGES + PAGES + PAGES - 5
    assert {each["meta"] for each in items} == {None, "j1", "j2"}
    assert client.llen("myspider:start_urls") == 0


def test_a_crawl_spider_and_a_plain_spider_with_a_key_read_sets_and_sorted_sets(
    tmp_path: Path, server: tuple[str, redis.Redis]
) -> None:
    url, client = server
    project = Project(tmp_path, SPIDERS, settings=SETTINGS.format(url=url, idle=2))
    with Site(answer) as site:
        client.sadd("mycrawler_redis:start_urls", f"{site.base}/0")
        project.crawl("mycrawler_redis", "-s", "REDIS_START_URLS_AS_SET=1")
        assert len([each for each in site.asked if each.path != "/robots.txt"]) == PAGES
        client.zadd("plain:start_urls", {json.dumps({"url": f"{site.base}/3", "meta": {"job": 7}}): 1.0})
        project.crawl("plain", "-s", "REDIS_START_URLS_AS_ZSET=1")
    assert {"url": f"{site.base}/3", "meta": 7} in project.items


@pytest.mark.parametrize("pushed", [b"x" * 10_000_000, b"{" * 10_000_000, b"\xff" * 10_000_000])
def test_what_is_pushed_makes_no_long_line_in_the_log(
    server: tuple[str, redis.Redis], pushed: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    found = StartUrls(ServerFeed(connect(server[0]), b"pushed"), Spider("theirs"), Settings())
    assert found.requests(pushed) == []
    [record] = caplog.records
    assert len(record.getMessage()) < 600


def int_of(path: str) -> int:
    return int(path.strip("/"))


def wait_for(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 240.0
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"REDIS_URL": "redis://u:p@h:1/2"}, "redis://u:p@h:1/2?prefix=webfountain.s"),
        ({"REDIS_HOST": "h", "REDIS_DB": 3}, "redis://h:6379/3?prefix=webfountain.s"),
        ({"REDIS_PORT": 7}, "redis://localhost:7/0?prefix=webfountain.s"),
        ({"REDIS_URL": "redis://h?prefix=mine"}, "redis://h?prefix=mine"),
        ({}, None),
    ],
)
def test_the_server_is_where_scrapy_redis_expects_it(given: dict[str, object], url: str | None) -> None:
    from scrapy.settings import Settings

    assert redis_url(Settings(given), "s") == url
    parameters = {"password": "p", "socket_timeout": 9, "redis_cls": "x.Y", "encoding": "utf-8"}
    assert redis_parameters(Settings({"REDIS_PARAMS": parameters})) == {"password": "p", "socket_timeout": 9}
