"""Scrapy's downloader without a second politeness: what the ant hands out goes straight to the download handler.

The ant has decided when a site is asked; Scrapy's per-domain slots, their queues and timers would only cost time
here (0.06 ms a page). Downloader middlewares run as ever. What bypasses the scheduler (files and images,
`engine.download_async`) takes Scrapy's way, with the project's DOWNLOAD_DELAY and concurrency; so does a request whose
slot DOWNLOAD_SLOTS has rules for. Set as DOWNLOADER by `webfountain.settings` and by the add-on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.utils.defer import deferred_from_coro

from webfountain.crawl.flight import flight_of, replaced

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response
    from twisted.internet.defer import Deferred

    from webfountain.crawl.flight import Flight

__all__ = ["FountainDownloader"]


class FountainDownloader(Downloader):
    """The signals request_reached_downloader, response_downloaded and request_left_downloader are not sent for our
    own fetches; response_received is."""

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Any]:
        """The response to `request`, or the request that a middleware put in its place."""
        del spider  # the engine passes none; Scrapy's own signature still has it
        flight = flight_of(request)
        if flight is None:
            return super().fetch(request)
        self.active.add(request)
        return deferred_from_coro(self._fetch(request, flight))

    async def _fetch(self, request: Request, flight: Flight) -> Response | Request:
        download = self.handlers.download_request_async if flight.own else self._download_for_project
        try:
            result: Response | Request = await self.middleware.download_async(download, request)
        finally:
            self.active.discard(request)
        if isinstance(result, Request):
            replaced(flight, by=result)
        return result

    async def _download_for_project(self, request: Request) -> Response:
        """What Scrapy does in a slot that has room and no delay."""
        key = self.get_slot_key(request)
        if key in self.per_slot_settings:
            return await self._enqueue_request(request)
        request.meta[self.DOWNLOAD_SLOT] = key
        about = {"request": request, "spider": self.crawler.spider}
        self.signals.send_catch_log(signal=signals.request_reached_downloader, **about)
        try:
            response: Response = await self.handlers.download_request_async(request)
            self.signals.send_catch_log(signal=signals.response_downloaded, response=response, **about)
            return response
        finally:
            self.signals.send_catch_log(signal=signals.request_left_downloader, **about)
