"""A usual crawl with Scrapy, LinkExtractor and Scrapy's scheduler, for the comparison of `bench_crawl`.

``python -m tests.benchmarks.plain_scrapy SEEDS.json PAGES [--jobdir FOLDER | --redis URL]``. It is not held back: no
delay, many requests at once, warnings only, no telnet console. robots.txt is obeyed, as Scrapy's own template has it
and as webfountain does.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.linkextractors import LinkExtractor

from webfountain.urls import host_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


class PlainSpider(Spider):
    """Follows every link of its sites, and yields one item per page."""

    name = "plain"
    seeds: tuple[str, ...] = ()

    async def start(self) -> AsyncIterator[Request]:
        """Yield the seeds."""
        self.links = LinkExtractor()
        self.allowed_domains = [host_of(url) for url in self.seeds]
        for url in self.seeds:
            yield Request(url)

    def parse(self, response: Any) -> Iterator[Any]:
        """Yield the item of the page, then its links."""
        yield {"url": response.url, "title": response.css("title::text").get(), "body": response.body}
        for link in self.links.extract_links(response):
            yield Request(link.url)


def main() -> None:
    """Crawl a number of pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=Path)
    parser.add_argument("pages", type=int)
    parser.add_argument("--jobdir")
    parser.add_argument("--redis", metavar="URL", help="scrapy-redis's scheduler and duplicate filter there")
    chosen = parser.parse_args()
    settings = {
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": True,
        "CLOSESPIDER_PAGECOUNT": chosen.pages,
        "JOBDIR": chosen.jobdir,
    }
    if chosen.redis is not None:
        warnings.simplefilter("ignore")
        settings |= {
            "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
            "REDIS_URL": chosen.redis,
        }
    process = AsyncCrawlerProcess({name: value for name, value in settings.items() if value is not None})
    process.crawl(PlainSpider, seeds=tuple(json.loads(chosen.seeds.read_text())))
    process.start()


if __name__ == "__main__":
    main()
