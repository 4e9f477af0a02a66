"""The answer to a project's request. Scrapy's `BaseStreamingDownloadHandler` reads the body piece by piece while it
arrives.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NoReturn

from scrapy.exceptions import DownloadFailedError, DownloadTimeoutError
from twisted.internet.ssl import Certificate

from webfountain.crawl.middlewares import download_error
from webfountain.download.connection import Exchange
from webfountain.download.time_limits import TimeLimits

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

    from scrapy import Request

    from webfountain.download.connection import Endpoint
    from webfountain.download.http_reader import ResponseReader

__all__ = ["StreamedAnswer"]


class StreamedAnswer:
    """An answer to a request of a Scrapy project; its body can be read while it arrives."""

    __slots__ = ("_news", "_pieces", "_running", "_timeout", "_url", "endpoint", "exchange", "full", "taken")

    def __init__(self, request: Request, timeout: float, *, may_send: Callable[[], bool] | None) -> None:
        self._url = request.url
        self._timeout = timeout
        self._news = asyncio.Event()
        self._pieces: deque[bytes] = deque()
        self._running: asyncio.Task[None] | None = None
        self.endpoint: Endpoint | None = None
        head_only = request.method == "HEAD"
        self.exchange = Exchange(self._begin, TimeLimits(timeout, None), head_only=head_only, may_send=may_send)
        self.taken = 0
        self.full = False

    def _begin(self, _: ResponseReader) -> StreamedAnswer:
        self._news.set()
        return self

    @property
    def size(self) -> int:
        """Number of received bytes that Scrapy has not read yet."""
        return sum(map(len, self._pieces))

    def take(self, data: bytes) -> None:
        """Add a piece of the body, still encoded."""
        self.taken += len(data)
        self._pieces.append(data)
        self._news.set()

    def end(self) -> bytes:
        """Return no bytes, because Scrapy reads the body through `chunks`."""
        return b""

    def wake(self, running: asyncio.Task[None]) -> None:
        """Record that the exchange of request and answer has ended."""
        self._running = running
        self._news.set()

    async def begun(self) -> None:
        """Wait for the response headers. Raise the error of the exchange if it ends before the headers."""
        while self.exchange.sink is None:
            await self._news.wait()
            self._news.clear()
            if self._running is not None and self.exchange.sink is None:
                self._raise(self._running)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body. Raise ResponseDataLossError if the peer closed the connection before the
        end.
        """
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self._running is not None:
                break
            await self._news.wait()
            self._news.clear()
        if self.exchange.error is not None or self._running.cancelled() or self._running.exception():
            self._raise(self._running)

    def certificate(self) -> Certificate | None:
        """Return the peer's certificate, or None without TLS."""
        return None if self.exchange.connection is None else _certificate(self.exchange.connection.tls())

    def _raise(self, running: asyncio.Task[None]) -> NoReturn:
        """Raise the error of the exchange as an exception that Scrapy's middlewares know."""
        running.result()
        word, cause = self.exchange.error or "cut", self.exchange.cause
        if word == "timeout":
            raise DownloadTimeoutError(f"Getting {self._url} took longer than {self._timeout} seconds.")
        if word == "cut" and (cause is not None or self.exchange.aborted):
            raise DownloadFailedError(f"{cause or 'the crawl stops'}: {self._url}") from cause
        raise download_error(word, self._url) from cause


def _certificate(tls: ssl.SSLObject | None) -> Certificate | None:
    """Return the peer's certificate as an object of the type that Scrapy's HTTP/1.1 handler returns."""
    der = None if tls is None else tls.getpeercert(binary_form=True)
    return None if der is None else Certificate.load(der)
