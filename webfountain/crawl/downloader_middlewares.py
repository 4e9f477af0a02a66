"""The downloader middlewares: one lands fetches, each exactly once, one ends those that the ant refused.

Landing is innermost of the chain, so that it sees the answer before Scrapy's retry and redirect middlewares turn it
into another request: a 503 slows the site down although it is retried, a redirect is an answer of its own. What never
reached the download handler (another middleware refused or answered) lands when the engine is done with it.
Conditional headers are the fetcher's business, verdicts the spider's side.

Refusing stands where Scrapy's middleware for robots.txt does, before those that would work for the request; only the
add-on installs it. What it says of a host without an address goes through Scrapy's retry middleware as ever. Beside
it stands Scrapy's own middleware for robots.txt, for requests that never were the ant's.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.httpobj import urlparse_cached

from webfountain.crawl.download_handler import download_error, error_word
from webfountain.crawl.flight import flight_of
from webfountain.records import Fetched

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

    from webfountain.crawl.flight import Flight

__all__ = ["BesideMiddleware", "LandingMiddleware", "RefusingMiddleware"]

logger = logging.getLogger(__name__)


class LandingMiddleware:
    """Tells the scheduler what came of each flight."""

    def process_response(self, request: Request, response: Response) -> Response:
        """An answer, whoever gave it."""
        flight = flight_of(request)
        if flight is not None and not flight.landed:
            at = flight.landing.now()
            flight.landing.land(flight, flight.fetched or _fetched(flight, request, response, at=at))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """No answer."""
        flight = flight_of(request)
        if flight is not None and not flight.landed:
            word = error_word(exception)
            flight.landing.land(flight, flight.fetched or Fetched(flight.fetch, flight.landing.now(), 0.0, error=word))


class RefusingMiddleware:
    """Gives the errback of a refused request what Scrapy's robots.txt middleware or download handler gives it."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Raises IgnoreRequest for what the ant refused, CannotResolveHostError where the host has no address."""
        flight = flight_of(request)
        if flight is None or flight.refusal is None:
            return
        outcome = flight.refusal.outcome
        if outcome.kind == "failed":
            raise download_error(outcome.record.error or "network", request.url)
        why = f"Forbidden by {outcome.record.error}"
        logger.debug("%s: %s", why, request, extra={"spider": self._crawler.spider})
        if outcome.kind == "refused_by_robots":
            self._crawler.stats.inc_value("robotstxt/forbidden")
        raise IgnoreRequest(why)


class BesideMiddleware(RobotsTxtMiddleware):
    """Scrapy's middleware for robots.txt, for what does not come from the scheduler: files, images, the project's own
    `engine.download_async`. For all else the ant has asked."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Raises IgnoreRequest for what robots.txt refuses."""
        del spider  # Scrapy passes none; its own signature still has it
        if flight_of(request) is None:
            await super().process_request(request)

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """One after the other: of those that wait for a robots.txt Scrapy 2.19 tells the first its rules, and all
        others that there are none. Files come many at once; pages seldom do."""
        async with self._turns[urlparse_cached(request).netloc]:
            return await super().robot_parser(request)


def _fetched(flight: Flight, request: Request, response: Response, *, at: float) -> Fetched:
    """A fetch as it ended with a response of another download handler; a project's page keeps its body to itself."""
    headers: list[tuple[str, Any]] = [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, values in response.headers.items()
        for value in values
    ]
    return Fetched(
        flight.fetch,
        at,
        float(request.meta.get("download_latency", 0.0)),
        status=response.status,
        headers=tuple(headers),
        body=response.body if flight.own else b"",
    )
