"""Scrapy's downloader without a second politeness: our own fetches go straight to the download handler.

The ant has decided when a site is asked; Scrapy's per-domain slots, their queues and timers would only cost time
here (0.06 ms a page). Downloader middlewares run as ever. Requests of another project's spiders, and those that
bypass the scheduler (robots.txt of Scrapy's middleware, media, `engine.download_async`), take Scrapy's way.
Set as DOWNLOADER by `webfountain.settings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.core.downloader import Downloader
from scrapy.utils.defer import deferred_from_coro

from webfountain.crawl.flight import flight_of

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from twisted.internet.defer import Deferred

__all__ = ["FountainDownloader"]


class FountainDownloader(Downloader):
    """The signals request_reached_downloader, response_downloaded and request_left_downloader are not sent for our
    own fetches; response_received is."""

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Any]:
        """The response to `request`, or the request that a middleware put in its place."""
        del spider  # the engine passes none; Scrapy's own signature still has it
        flight = flight_of(request)
        if flight is None or not flight.own:
            return super().fetch(request)
        self.active.add(request)
        return deferred_from_coro(self._fetch(request))

    async def _fetch(self, request: Request) -> Response | Request:
        try:
            return await self.middleware.download_async(self.handlers.download_request_async, request)
        finally:
            self.active.discard(request)
