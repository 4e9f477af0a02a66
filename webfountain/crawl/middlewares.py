"""Convert the end of each download between Scrapy and the frontier.

`LandingMiddleware` is next to the downloader, so it receives each answer before Scrapy's retry and redirect middlewares
do. For example, if Scrapy retries a request after a 503, the frontier still gets the 503 and slows the site down. If
another middleware drops or answers a request, the frontier gets a report only when the engine is done with the request.

The add-on installs `RefusingMiddleware` in the place of Scrapy's middleware for robots.txt; it ends the requests that
the frontier refuses. Errors are exceptions in Scrapy, and words in the frontier's records.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
)

from webfountain.crawl.flight import flight_of
from webfountain.formats.robots import IGNORED
from webfountain.records import FetchResult

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from webfountain.crawl.flight import Flight
    from webfountain.download.bad_response import ErrorWord

__all__ = ["LandingMiddleware", "RefusingMiddleware", "download_error"]

logger = logging.getLogger(__name__)

_EXCEPTIONS: Final[dict[str, type[Exception]]] = {
    "dns": CannotResolveHostError,
    "private-address": DownloadCancelledError,
    "connect": DownloadConnectionRefusedError,
    "tls": DownloadConnectionRefusedError,
    "certificate": DownloadConnectionRefusedError,
    "timeout": DownloadTimeoutError,
    "too-slow": DownloadTimeoutError,
    "headers-too-large": DownloadCancelledError,
    "too-large": DownloadCancelledError,
    "bomb": DownloadCancelledError,
    "content-type": DownloadCancelledError,
    "cut": ResponseDataLossError,
    "bad-response": DownloadFailedError,
    "network": DownloadFailedError,
    "lapsed": DownloadFailedError,
}
_WORDS: Final[tuple[tuple[type[Exception], ErrorWord], ...]] = (
    (CannotResolveHostError, "dns"),
    (DownloadConnectionRefusedError, "connect"),
    (DownloadTimeoutError, "timeout"),
    (TimeoutError, "timeout"),
    (DownloadCancelledError, "too-large"),
    (ResponseDataLossError, "cut"),
    (DownloadFailedError, "bad-response"),
    (OSError, "connect"),
)


class LandingMiddleware:
    """A middleware that reports the result of each flight to the scheduler."""

    def process_response(self, request: Request, response: Response) -> Response:
        """Report to the frontier the response of a request."""
        flight = flight_of(request)
        if flight is not None and not flight.landed:
            at, fetched = flight.landing.now(), flight.fetched
            if flight.own and response.status == 304 and "cached_response" in request.meta:
                # The project's HTTP cache asked whether a robots.txt has changed: the rules are in its copy.
                fetched = _fetched(flight, request, request.meta["cached_response"], at=at)
            flight.landing.land(flight, fetched or _fetched(flight, request, response, at=at))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Report to the frontier that a request got no response."""
        flight = flight_of(request)
        if flight is not None and not flight.landed:
            ignored = flight.own and isinstance(exception, IgnoreRequest)
            word = IGNORED if ignored else _error_word(exception)
            flight.landing.land(
                flight, flight.fetched or FetchResult(flight.fetch, flight.landing.now(), 0.0, error=word)
            )


class RefusingMiddleware:
    """The middleware that ends a refused request with the exception that Scrapy would raise."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Raise IgnoreRequest for a refused request, or CannotResolveHostError if its host has no address."""
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


def download_error(word: str, url: str) -> Exception:
    """Return the Scrapy exception for an error word; the exception has the error word as its attribute `word`."""
    error = _EXCEPTIONS[word](f"{word}: {url}")
    error.word = word  # type: ignore[attr-defined]
    return error


def _error_word(exception: BaseException) -> str:
    """Return the error word for an exception of any download handler, or "filtered" if it is not a download error."""
    word = getattr(exception, "word", None)
    if isinstance(word, str):
        return word
    return next((word for kind, word in _WORDS if isinstance(exception, kind)), "filtered")


def _fetched(flight: Flight, request: Request, response: Response, *, at: float) -> FetchResult:
    """Convert the response of another download handler to the result of a fetch. Leave out the body of a project's
    page, because only the spider needs the body.
    """
    headers: list[tuple[str, Any]] = [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, values in response.headers.items()
        for value in values
    ]
    return FetchResult(
        flight.fetch,
        at,
        float(request.meta.get("download_latency", 0.0)),
        status=response.status,
        headers=tuple(headers),
        body=response.body if flight.own else b"",
    )
