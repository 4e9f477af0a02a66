"""The download handler for http and https, which connects Scrapy to `Fetcher` and the connection pool.

webfountain's own fetches (the fountain spider's pages, robots.txt files, sitemaps) go straight to `Fetcher`, which
costs the least CPU time. Requests of a Scrapy project go through Scrapy's `BaseStreamingDownloadHandler` to the same
connection pool. If a project sets a proxy or a DOWNLOADER_CLIENTCONTEXTFACTORY, Scrapy's default handler sends the
request.

By default, TLS certificates are not verified, as in Scrapy. Certificates are verified if a collection sets
`network.verify_tls`, or a project sets DOWNLOAD_VERIFY_CERTIFICATES. The handler refuses connections to private
addresses unless the collection file sets `network.allow_private`. Without a collection file, private addresses are
allowed, and WEBFOUNTAIN_ALLOW_PRIVATE=False forbids them.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import logging
import ssl
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

from scrapy.core.downloader.handlers._base_streaming import BaseStreamingDownloadHandler
from scrapy.exceptions import (
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers, Response
from scrapy.utils._download_handlers import normalize_bind_address
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.ssl import _log_sslobj_debug_info, _make_ssl_context
from service_identity import CertificateError, VerificationError
from twisted.internet.ssl import Certificate

from webfountain.crawl.flight import flight_of
from webfountain.crawl.middlewares import download_error
from webfountain.crawl.reactor_names import reactor_addresses
from webfountain.crawl.session import Session
from webfountain.download.bad_response import BadResponse
from webfountain.download.connection import Exchange, check_certificates
from webfountain.download.connection_pool import ConnectionPool
from webfountain.download.fetcher import Fetcher, allowed, authority_of
from webfountain.download.resolver import Resolver
from webfountain.download.time_limits import TimeLimits
from webfountain.public_addresses import is_address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Sequence

    from scrapy import Request
    from scrapy.core.downloader.handlers._base_streaming import _BaseResponseArgs
    from scrapy.crawler import Crawler

    from webfountain.crawl.flight import Flight
    from webfountain.download.bad_response import ErrorWord
    from webfountain.download.connection import Endpoint
    from webfountain.download.http_reader import ResponseReader
    from webfountain.records import FetchResult

__all__ = ["ABORT", "FountainDownloadHandler", "FountainResponse", "warn_of_other_name"]

logger = logging.getLogger(__name__)

ABORT: Final = object()
"""The signal that ends all downloads, or those from `sites` if this argument is not None. The argument `word` becomes
the error of each download: "cut" if the crawl stops, "lapsed" if the ant's leases ended.
"""


class _StreamedAnswer:
    """An answer to a request of a Scrapy project; Scrapy's `BaseStreamingDownloadHandler` reads its body in pieces."""

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

    def _begin(self, _: ResponseReader) -> _StreamedAnswer:
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


class FountainDownloadHandler(BaseStreamingDownloadHandler["_StreamedAnswer"]):
    """The download handler for http and https.

    Settings read: WEBFOUNTAIN_ALLOW_PRIVATE, DOWNLOAD_BIND_ADDRESS, DOWNLOAD_TIMEOUT, DOWNLOAD_MAXSIZE,
    DOWNLOAD_WARNSIZE, DOWNLOAD_FAIL_ON_DATALOSS, DOWNLOAD_VERIFY_CERTIFICATES, the other DOWNLOAD_TLS settings,
    DOWNLOADER_CLIENT_TLS_* and, by the reactor's resolver, DNS_RESOLVER, DNS_TIMEOUT and DNSCACHE_*.

    Raises ValueError at the start for TLS versions that do not exist.
    """

    supports_per_request_bindaddress = True

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self._allow_private = settings.getbool("WEBFOUNTAIN_ALLOW_PRIVATE", True)
        self._timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
        self._tls = _make_ssl_context(settings)
        # Many servers end a body without closing TLS properly. The framing shows whether the body was cut.
        self._tls.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
        self._pool = ConnectionPool(self._tls_context)
        self._bodies = Session.of(crawler).bodies
        self._resolver = Resolver()
        self._fetcher = Fetcher(self._pool, Session.of(crawler), self._resolver.resolve, local=self._bind_address)
        self._context_factory = settings.getpriority("DOWNLOADER_CLIENTCONTEXTFACTORY") != 0
        self._scrapys: Any = None
        self._named: set[str] = set()
        """Hosts whose certificate was already compared with the host name (`warn_of_other_name`)."""
        crawler.signals.connect(self._abort, ABORT)

    async def download_request(self, request: Request) -> Response:
        """Return the response, or raise one of Scrapy's download exceptions."""
        flight = flight_of(request)
        if flight is not None and flight.own:
            return await self._own(request, flight)
        if request.meta.get("proxy") or (self._context_factory and request.url.startswith("https:")):
            return await self._by_scrapy(request)
        request.meta.setdefault("download_timeout", self._timeout)
        return await super().download_request(request)

    def _abort(self, word: ErrorWord, sites: Collection[str] | None) -> None:
        at = None if sites is None else {(each.host, each.port) for each in map(authority_of, sites)}
        self._pool.abort(word, at=at)

    async def close(self) -> None:
        """Close all connections."""
        self._resolver.close()
        self._pool.close()
        if self._scrapys is not None:
            await self._scrapys.close()

    def _tls_context(self) -> ssl.SSLContext:
        """Return the TLS context for connections; it verifies certificates only if the collection requires this."""
        terms = Session.of(self.crawler).terms
        if terms is not None and terms.verify_tls:
            check_certificates(self._tls)
        return self._tls

    async def _own(self, request: Request, flight: Flight) -> Response:
        extra = request.headers.to_tuple_list() if request.headers else ()
        flight.held_body = self._bodies.hold()
        fetched = await self._fetcher.fetch(flight.fetch, flight.terms, extra=extra, held=flight.held_body)
        if fetched.fetch.kind != "page":
            fetched = await Session.of(self.crawler).frontier.examiner.read_file(fetched)
        flight.fetched = fetched
        if fetched.error is not None:
            raise download_error(fetched.error, request.url)
        return FountainResponse(request.url, fetched=fetched, status=fetched.status, body=fetched.body, request=request)

    async def _by_scrapy(self, request: Request) -> Response:
        if self._scrapys is None:
            default = self.crawler.settings.getdict("DOWNLOAD_HANDLERS_BASE")["http"]
            self._scrapys = build_from_crawler(load_object(default), self.crawler)
        response: Response = await self._scrapys.download_request(request)
        return response

    # ------------------------------------------- methods that Scrapy's streaming calls

    @asynccontextmanager
    async def _make_request(self, request: Request, timeout: float) -> AsyncIterator[_StreamedAnswer]:
        """Send a project's request, and give the caller the answer before its body has arrived."""
        flight = flight_of(request)
        answer = _StreamedAnswer(request, timeout, may_send=None if flight is None else flight.terms.may_send)
        running = asyncio.create_task(self._send(request, answer))
        running.add_done_callback(answer.wake)
        try:
            await answer.begun()
            parts = urlparse_cached(request)
            if parts.scheme == "https" and (host := parts.hostname or "") not in self._named:
                self._named.add(host)
                warn_of_other_name(host, answer.certificate())
            yield answer
        finally:
            running.cancel()

    async def _send(self, request: Request, answer: _StreamedAnswer) -> None:
        """Send a request to the address that the frontier chose. If the frontier chose no address, look up the host
        with Twisted's resolver.
        """
        parts = urlparse_cached(request)
        if parts.scheme not in ("http", "https"):
            raise UnsupportedURLSchemeError(f"{request.url}: the scheme {parts.scheme!r} is not supported")
        site = f"{parts.scheme}://{parts.netloc}"
        authority = authority_of(site)
        flight = flight_of(request)
        local = normalize_bind_address(request.meta.get("bindaddress")) or self._bind_address
        allow_private = self._may_be_private() if flight is None else flight.terms.allow_private
        turn = None
        try:
            if flight is not None and flight.fetch.address is not None and site == flight.fetch.site:
                addresses: Sequence[str] = (flight.fetch.address, *flight.fetch.fallbacks)
                turn = functools.partial(_turn, flight)
            else:
                addresses = await reactor_addresses(authority.host)
            answer.endpoint = await self._pool.run(
                [authority.at(address, local) for address in allowed(addresses, allow_private=allow_private)],
                _wire(request, parts, authority.text),
                answer.exchange,
                repeatable=request.method in ("GET", "HEAD"),
                turn=turn,
            )
        except BadResponse as bad:
            answer.exchange.settle(bad.word)

    def _may_be_private(self) -> bool:
        """Return whether a request that bypassed the scheduler, such as one for a media file, may go to a private
        address.
        """
        terms = Session.of(self.crawler).terms
        return self._allow_private if terms is None else bool(terms.allow_private)

    @staticmethod
    def _extract_headers(response: _StreamedAnswer) -> Headers:
        headers = Headers()
        chunked = response.exchange.reader.length is None
        for name, value in response.exchange.reader.headers:
            if not (chunked and name == "content-length"):  # this header is optional here and need not be a number
                headers.appendlist(name, value.encode("latin-1"))
        return headers

    @staticmethod
    def _build_base_response_args(response: _StreamedAnswer, request: Request, headers: Headers) -> _BaseResponseArgs:
        reader, connection = response.exchange.reader, response.exchange.connection
        assert reader.status is not None
        assert connection is not None
        return {
            "status": reader.status,
            "url": request.url,
            "headers": headers,
            "certificate": response.certificate(),
            "ip_address": ipaddress.ip_address(connection.endpoint.address.partition("%")[0]),
            "protocol": reader.version,
        }

    @staticmethod
    def _iter_body_chunks(response: _StreamedAnswer) -> AsyncIterator[bytes]:
        return response.chunks()

    @staticmethod
    def _is_dataloss_exception(exc: Exception) -> bool:
        return isinstance(exc, ResponseDataLossError)

    def _log_tls_info(self, response: _StreamedAnswer, request: Request) -> None:
        connection = response.exchange.connection
        tls = None if connection is None else connection.tls()
        if tls is not None:
            _log_sslobj_debug_info(tls)


def _certificate(tls: ssl.SSLObject | None) -> Certificate | None:
    """Return the peer's certificate as an object of the type that Scrapy's HTTP/1.1 handler returns."""
    der = None if tls is None else tls.getpeercert(binary_form=True)
    return None if der is None else Certificate.load(der)


def _turn(flight: Flight, endpoint: Endpoint) -> float:
    return flight.terms.detour(flight.fetch, endpoint.address)


def _wire(request: Request, parts: Any, authority: str) -> bytes:
    """Return the bytes of an HTTP/1.1 request. Host and Content-Length are added; other headers are the project's."""
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


def warn_of_other_name(host: str, certificate: Certificate | None) -> None:
    """Log a warning if a certificate names another host, as Scrapy's own handler for HTTP/1.1 does."""
    if certificate is None:
        return
    # These imports take half a millisecond, which a project without TLS does not need.
    from cryptography.x509 import load_der_x509_certificate  # noqa: PLC0415
    from service_identity import cryptography as names  # noqa: PLC0415

    verify = names.verify_certificate_ip_address if is_address(host) else names.verify_certificate_hostname
    try:
        verify(load_der_x509_certificate(certificate.dump()), host)
    except (CertificateError, VerificationError) as error:
        logger.warning('Remote certificate is not valid for hostname "%s"; %s', host, error)


class FountainResponse(Response):
    """The response to a fetch of the fountain spider; `headers` is built only at its first use."""

    __slots__ = ("fetched",)

    def __init__(self, url: str, *, fetched: FetchResult | None = None, **kwargs: Any) -> None:
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
