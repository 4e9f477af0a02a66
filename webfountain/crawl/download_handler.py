"""The download handler for http and https: Scrapy's door to `fetcher` and `connection`.

Two ways through. Our own fetches (pages, robots.txt, sitemaps) take the cheapest: no header objects, no guess
of a response class, the content coding undone. Requests of another project's spiders get what its callbacks
and middlewares know: method, body and headers as they are, HtmlResponse and its like, raw content coding (for
HttpCompressionMiddleware), the signals headers_received and bytes_received, DOWNLOAD_MAXSIZE, DOWNLOAD_TIMEOUT,
DOWNLOAD_FAIL_ON_DATALOSS. Requests with a proxy or a bind address are passed to Scrapy's own handler.

TLS certificates are not verified unless DOWNLOAD_VERIFY_CERTIFICATES is set, as in Scrapy: a page behind an
expired certificate is still a page, and a crawl sends no secrets. Private addresses are refused unless the
collection (`network.allow_private`) allows them, after DNS and for every redirect; without a collection file
WEBFOUNTAIN_ALLOW_PRIVATE decides, which is on: an existing project is trusted to mean the hosts it names.
"""

from __future__ import annotations

import ipaddress
import ssl
import time
from typing import TYPE_CHECKING, Any, Final

from scrapy import signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    StopDownload,
)
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.ssl import _make_ssl_context
from twisted.python.failure import Failure

from webfountain.clock import SystemClock
from webfountain.crawl.flight import flight_of
from webfountain.crawl.session import Session
from webfountain.download.connection import ConnectionPool, Endpoint, Exchange, Pace
from webfountain.download.decoding import Body
from webfountain.download.fetcher import Fetcher, origin_of, refuse_private, resolve
from webfountain.download.http1 import BadResponse

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

    from webfountain.crawl.flight import Flight
    from webfountain.download.http1 import ErrorWord, ResponseReader
    from webfountain.records import Fetched

__all__ = ["ABORT", "FountainDownloadHandler", "FountainResponse", "download_error", "error_word"]

_EXCEPTIONS: Final[dict[str, type[Exception]]] = {
    "dns": CannotResolveHostError,
    "private-address": DownloadCancelledError,
    "connect": DownloadConnectionRefusedError,
    "timeout": DownloadTimeoutError,
    "too-slow": DownloadTimeoutError,
    "headers-too-large": DownloadCancelledError,
    "too-large": DownloadCancelledError,
    "bomb": DownloadCancelledError,
    "content-type": DownloadCancelledError,
    "cut": ResponseDataLossError,
    "bad-response": DownloadFailedError,
    "network": DownloadFailedError,
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
ABORT: Final = object()
"""Signal: end all downloads at once (the crawl stops)."""
_UNLIMITED: Final = 1 << 62


def download_error(word: str, url: str) -> Exception:
    """The exception that Scrapy's middlewares know for an error word; it carries the word as `word`."""
    error = _EXCEPTIONS[word](f"{word}: {url}")
    error.word = word  # type: ignore[attr-defined]
    return error


def error_word(exception: BaseException) -> str:
    """The word for an exception of any download handler; "filtered" for what was no download error."""
    word = getattr(exception, "word", None)
    if isinstance(word, str):
        return word
    return next((word for kind, word in _WORDS if isinstance(exception, kind)), "filtered")


class FountainResponse(Response):
    """The response of one of our own fetches: `headers` are made only when somebody asks."""

    __slots__ = ("fetched",)

    def __init__(self, url: str, *, fetched: Fetched | None = None, **kwargs: Any) -> None:
        self.fetched = fetched
        super().__init__(url, **kwargs)

    @property
    def headers(self) -> Headers:
        if self._headers is None:
            self._headers = Headers()
            for name, value in self.fetched.headers if self.fetched is not None else ():
                self._headers.appendlist(name, value.encode("latin-1"))
        return self._headers

    @headers.setter
    def headers(self, value: Any) -> None:
        self._headers = Headers(value)


class FountainDownloadHandler(BaseDownloadHandler):
    """Settings read: WEBFOUNTAIN_ALLOW_PRIVATE, DOWNLOAD_TIMEOUT, DOWNLOAD_MAXSIZE, DOWNLOAD_FAIL_ON_DATALOSS,
    DOWNLOAD_VERIFY_CERTIFICATES and the other DOWNLOAD_TLS settings."""

    lazy = True  # built inside a running loop, whatever process class runs the crawl

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self._allow_private = settings.getbool("WEBFOUNTAIN_ALLOW_PRIVATE", True)
        self._timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
        self._max_bytes = settings.getint("DOWNLOAD_MAXSIZE")
        self._fail_on_dataloss = settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._pool = ConnectionPool(self._tls_context)
        self._fetcher = Fetcher(self._pool, SystemClock())
        self._plain: Any = None
        crawler.signals.connect(self._pool.abort, ABORT)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        """The response, or one of Scrapy's download exceptions."""
        flight = flight_of(request)
        if flight is not None and flight.own:
            return await self._own(request, flight)
        if request.meta.get("proxy") or request.meta.get("bindaddress"):
            return await self._by_scrapy(request)
        return await self._foreign(request, flight)

    async def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        if self._plain is not None:
            await self._plain.close()

    def _tls_context(self) -> ssl.SSLContext:
        context = _make_ssl_context(self.crawler.settings)
        # Many servers end a body without the closing record; the framing tells whether it was cut.
        context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
        return context

    async def _own(self, request: Request, flight: Flight) -> Response:
        extra = request.headers.to_tuple_list() if request.headers else ()
        fetched = await self._fetcher.fetch(flight.fetch, flight.terms, extra=extra)
        flight.fetched = fetched
        if fetched.error is not None:
            raise download_error(fetched.error, request.url)
        return FountainResponse(request.url, fetched=fetched, status=fetched.status, body=fetched.body, request=request)

    async def _by_scrapy(self, request: Request) -> Response:
        """Scrapy's own handler, for what this one does not do."""
        if self._plain is None:
            from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler  # noqa: PLC0415

            self._plain = build_from_crawler(HTTP11DownloadHandler, self.crawler)
        response: Response = await self._plain.download_request(request)
        return response

    async def _foreign(self, request: Request, flight: Flight | None) -> Response:
        download = _Download(self.crawler, request, self._max_bytes)
        timeout = float(request.meta.get("download_timeout") or self._timeout)
        started = time.monotonic()
        exchange = Exchange(
            download.begin,
            pace=Pace(timeout, None),
            started=started,
            head_only=request.method == "HEAD",
        )
        download.exchange = exchange
        endpoint = await self._send(request, flight, exchange)
        request.meta["download_latency"] = time.monotonic() - started
        return self._response(download, endpoint)

    async def _send(self, request: Request, flight: Flight | None, exchange: Exchange) -> Endpoint:
        """Run the exchange at the first address that lets us connect."""
        parts = urlparse_cached(request)
        origin = origin_of(f"{parts.scheme}://{parts.netloc}")
        allow_private = self._may_be_private() if flight is None else flight.terms.allow_private
        data = _wire(request, parts, origin.authority)
        try:
            pinned = flight.fetch.address if flight is not None and request.url.startswith(flight.fetch.site) else None
            addresses = (pinned,) if pinned else await resolve(origin.host)
            for last, address in enumerate(addresses, start=1 - len(addresses)):
                refuse_private(address, allow_private=allow_private)
                endpoint = origin.at(address)
                await self._pool.run(endpoint, data, exchange, repeatable=request.method in ("GET", "HEAD"))
                if exchange.error != "connect" or last == 0:
                    break
                exchange.again()
        except BadResponse as bad:
            raise download_error(bad.word, request.url) from None
        return endpoint

    def _may_be_private(self) -> bool:
        """What holds for a request that no flight carries: media, robots.txt of Scrapy's own middleware."""
        terms = Session.of(self.crawler).terms
        return self._allow_private if terms is None else bool(terms.allow_private)

    def _response(self, download: _Download, endpoint: Endpoint) -> Response:
        request, exchange = download.request, download.exchange
        fail = request.meta.get("download_fail_on_dataloss", self._fail_on_dataloss)
        if exchange.error == "cut" and exchange.sink is not None and not fail:
            return download.response(endpoint, exchange.sink.partial(), ["dataloss"])
        if exchange.error is not None and download.stop is None:
            raise download_error(exchange.error, request.url)
        if download.stop is None:
            return download.response(endpoint, exchange.body, None)
        response = download.response(
            endpoint, exchange.sink.partial() if exchange.sink is not None else b"", ["download_stopped"]
        )
        if download.stop.fail:
            download.stop.response = response
            raise download.stop
        return response


class _Download:
    """One request of another project: its exchange, its signals, its response."""

    __slots__ = ("_crawler", "_max_bytes", "exchange", "request", "stop")

    exchange: Exchange

    def __init__(self, crawler: Crawler, request: Request, max_bytes: int) -> None:
        self._crawler = crawler
        self._max_bytes = int(request.meta.get("download_maxsize", max_bytes)) or _UNLIMITED
        self.request = request
        self.stop: StopDownload | None = None

    def begin(self, reader: ResponseReader) -> Body:
        """The head is complete: tell who listens, refuse what is announced as too large."""
        length = reader.length
        if length is not None and length > self._max_bytes:
            raise BadResponse("too-large")
        body = _Signalled(self, limit=self._max_bytes)
        self._tell(body, signals.headers_received, headers=self.headers(reader), body_length=length)
        return body

    def received(self, body: Body, data: bytes) -> None:
        """Tell who listens to bytes_received."""
        self._tell(body, signals.bytes_received, data=data)

    def _tell(self, body: Body, signal: object, **kwargs: Any) -> None:
        """Send a signal; a receiver's StopDownload ends the body here."""
        answers = self._crawler.signals.send_catch_log(
            signal=signal, request=self.request, spider=self._crawler.spider, **kwargs
        )
        for _, answer in answers:
            if isinstance(answer, Failure) and isinstance(answer.value, StopDownload):
                self.stop = answer.value
                body.full = True

    @staticmethod
    def headers(reader: ResponseReader) -> Headers:
        """The response's headers as Scrapy holds them."""
        headers = Headers()
        for name, value in reader.headers:
            headers.appendlist(name, value.encode("latin-1"))
        return headers

    def response(self, endpoint: Endpoint, body: bytes, flags: list[str] | None) -> Response:
        """The response, of the class that Scrapy chooses for its type."""
        headers = self.headers(self.exchange.reader)
        kind = responsetypes.from_args(headers=headers, url=self.request.url, body=body)
        connection = self.exchange.connection
        return kind(
            url=self.request.url,
            status=self.exchange.reader.status or 0,
            headers=headers,
            body=body,
            flags=flags,
            certificate=None if connection is None else connection.certificate(),
            ip_address=ipaddress.ip_address(endpoint.address),
            protocol="HTTP/1.1",
        )


class _Signalled(Body):
    """A body, not decoded, that tells its download of every piece."""

    __slots__ = ("_download",)

    def __init__(self, download: _Download, *, limit: int) -> None:
        super().__init__("", limit=limit)
        self._download = download

    def take(self, data: bytes) -> None:
        super().take(data)
        self._download.received(self, data)


def _wire(request: Request, parts: Any, authority: str) -> bytes:
    """The request as it goes over the wire: as the project made it, framed by us."""
    target = (
        (parts.path or "/") + (f";{parts.params}" if parts.params else "") + (f"?{parts.query}" if parts.query else "")
    )
    lines = [f"{request.method} {target} HTTP/1.1".encode("latin-1", "replace")]
    names = set()
    for name, values in request.headers.items():
        lower = name.lower()
        if lower in (b"proxy-authorization", b"content-length", b"transfer-encoding"):
            continue
        names.add(lower)
        lines += [name + b": " + value.replace(b"\r", b"").replace(b"\n", b"") for value in values]
    if b"host" not in names:
        lines.insert(1, b"Host: " + authority.encode("latin-1", "replace"))
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        lines.append(b"Content-Length: %d" % len(request.body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + request.body
