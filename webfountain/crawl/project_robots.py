"""Keep Scrapy's stats about robots.txt, and apply robots.txt to downloads that bypass the scheduler."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred

from webfountain.crawl.flight import flight_of
from webfountain.crawl.session import Session

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser
    from scrapy.statscollectors import StatsCollector

    from webfountain.records import FetchResult

__all__ = ["BesideMiddleware", "count_robots"]


def count_robots(stats: StatsCollector, bodies: dict[str, bytes], fetched: FetchResult) -> None:
    """Count a fetched robots.txt in Scrapy's stats. Keep the body of the robots.txt in `bodies`, by host and port, for
    downloads that bypass the scheduler.
    """
    if fetched.fetch.kind != "robots":
        return
    stats.inc_value("robotstxt/request_count")
    status = fetched.status
    if status is None:
        stats.inc_value(f"robotstxt/exception_count/{fetched.error}")
        return
    stats.inc_value("robotstxt/response_count")
    stats.inc_value(f"robotstxt/response_status_count/{status}")
    parts = urlsplit(fetched.fetch.url)
    if parts.path == "/robots.txt" and status < 500 and not 300 <= status < 400:
        bodies[parts.netloc] = fetched.body if status == 200 else b""


class BesideMiddleware(RobotsTxtMiddleware):
    """Scrapy's middleware for robots.txt, applied only to requests that bypass the scheduler, such as those for files
    and images.

    If the frontier has already fetched a site's robots.txt in this run, the middleware uses it.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._known = Session.of(crawler).robots

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Raise IgnoreRequest for a request that robots.txt refuses."""
        del spider  # Scrapy passes none, but the signature is its own
        if flight_of(request) is None:
            await super().process_request(request)

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """Return the parser of a site's robots.txt.

        The requests to a site are processed one after another, because Scrapy 2.19 checks only the first of several
        waiting requests.
        """
        netloc = urlparse_cached(request).netloc
        async with self._turns[netloc]:
            body = self._known.get(netloc)
            if body is not None and netloc not in self._parsers:
                self._parsers[netloc] = Deferred()
                known = Response(f"{urlparse_cached(request).scheme}://{netloc}/robots.txt", body=body)
                await self._parse_robots(known, netloc, request)
                return self._parsers[netloc]  # type: ignore[return-value]
            return await super().robot_parser(request)
