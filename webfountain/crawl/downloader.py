"""A Scrapy downloader that leaves politeness to the frontier.

With a collection file, the frontier delays the requests, so the downloader sends each request at once. Without a
collection file, Scrapy's downloader slots delay the requests according to the project's settings (`project_pace`).
Downloader middlewares run as usual. Scrapy handles requests that bypass the scheduler, such as those for files and
images.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.core.downloader import Downloader, Slot
from scrapy.utils.defer import deferred_from_coro
from twisted.python.failure import Failure

from webfountain.crawl.download_handler import ABORT
from webfountain.crawl.flight import flight_of, replaced
from webfountain.crawl.middlewares import download_error
from webfountain.crawl.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred

    from webfountain.crawl.flight import Flight
    from webfountain.download.bad_response import ErrorWord

__all__ = ["FountainDownloader"]


class FountainDownloader(Downloader):
    """The downloader of a crawl.

    For a page that the fountain spider fetches, Scrapy sends the signal response_received, but no signals of the
    downloader, such as request_reached_downloader.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._session = Session.of(crawler)
        self._downloads: dict[asyncio.Future[Response], str] = {}  # the requests, with their sites
        self._abort_word = "cut"
        crawler.signals.connect(self._abort, ABORT)

    def _abort(self, word: ErrorWord, sites: Collection[str] | None) -> None:
        """Cancel a project's downloads, and remove requests that still wait in a downloader slot."""
        self._abort_word = word
        for download in [each for each, site in self._downloads.items() if sites is None or site in sites]:
            del self._downloads[download]
            download.cancel()
        for slot in self.slots.values():
            for entry in list(slot.queue):
                flight = flight_of(entry[0])
                if flight is None or (sites is not None and flight.fetch.site not in sites):
                    continue
                slot.queue.remove(entry)
                entry[1].errback(Failure(download_error(word, entry[0].url)))  # type: ignore[no-untyped-call]

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Any]:
        """Return the response to a request, or the new request that a middleware returned for it."""
        del spider  # the engine passes none, but the signature is Scrapy's
        flight = flight_of(request)
        if flight is None:
            return super().fetch(request)
        self.active.add(request)
        return deferred_from_coro(self._fetch(request, flight))

    async def _fetch(self, request: Request, flight: Flight) -> Response | Request:
        try:
            result: Response | Request = await self.middleware.download_async(self._way_of(flight), request)
        finally:
            self.active.discard(request)
        if isinstance(result, Request):
            replaced(flight, by=result)
        return result

    def _way_of(self, flight: Flight) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        if self._session.pace is not None:
            return functools.partial(self._enqueue_paced, flight)
        if flight.own:
            return self.handlers.download_request_async
        return functools.partial(self._download_for_project, flight)

    async def _enqueue_paced(self, flight: Flight, request: Request) -> Response:
        """Send a request through Scrapy's downloader slots, which apply DOWNLOAD_DELAY and similar settings."""
        if self._session.pace is not None and self._session.pace.is_apart(request):
            flight.landing.leave_queue(flight)
            flight.landing.count_apart(flight)
        return await self._enqueue_request(request)

    async def _download(self, slot: Slot, request: Request) -> Response:
        flight = flight_of(request)
        if flight is None:
            return await super()._download(slot, request)
        flight.landing.leave_queue(flight)
        return await self._until_aborted(super()._download(slot, request), request, flight)

    async def _download_for_project(self, flight: Flight, request: Request) -> Response:
        """Download without Scrapy's delays but with its signals; the frontier has already delayed the request."""
        request.meta[self.DOWNLOAD_SLOT] = self.get_slot_key(request)
        about = {"request": request, "spider": self.crawler.spider}
        self.signals.send_catch_log(signal=signals.request_reached_downloader, **about)
        try:
            response = await self._until_aborted(self.handlers.download_request_async(request), request, flight)
            self.signals.send_catch_log(signal=signals.response_downloaded, response=response, **about)
            return response
        finally:
            self.signals.send_catch_log(signal=signals.request_left_downloader, **about)

    async def _until_aborted(
        self, download: Coroutine[Any, Any, Response], request: Request, flight: Flight
    ) -> Response:
        """Return the result of a download. If this ant may send no more requests, or if the download is aborted, raise
        a download error.
        """
        if flight.terms.may_send is not None and not flight.terms.may_send():
            download.close()
            raise download_error("lapsed", request.url)
        running = asyncio.ensure_future(download)
        self._downloads[running] = flight.fetch.site
        try:
            return await running
        except asyncio.CancelledError:
            if running in self._downloads:
                raise  # cancelled by the caller and not by an abort
            raise download_error(self._abort_word, request.url) from None
        finally:
            self._downloads.pop(running, None)
