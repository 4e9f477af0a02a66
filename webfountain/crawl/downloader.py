"""Scrapy's downloader, its middlewares and its handler for http and https, over our own connections.

The download handler for http and https: Scrapy's door to `Fetcher` and `connection`. Two ways through. Our own
fetches (pages, robots.txt, sitemaps) take the cheapest: no header objects, no guess of a response class, the content
coding undone. Requests of another project's spiders take the way of Scrapy's own streaming handlers
(`BaseStreamingDownloadHandler`: signals, DOWNLOAD_MAXSIZE and WARNSIZE, data loss, StopDownload, the response class,
the log lines are its code), over our connections: endless heads are cut, private addresses refused, the address is
the one that politeness was counted for. What that cannot do (a proxy, a DOWNLOADER_CLIENTCONTEXTFACTORY) is passed to
the handler that Scrapy has by default.

TLS certificates are not verified unless DOWNLOAD_VERIFY_CERTIFICATES is set, as in Scrapy: a page behind an
expired certificate is still a page, and a crawl sends no secrets. Private addresses are refused unless the
collection (`network.allow_private`) allows them, after DNS and for every redirect; without a collection file
WEBFOUNTAIN_ALLOW_PRIVATE decides, which is on: an existing project is trusted to mean the hosts it names.

Host names of another project's requests are resolved as Scrapy resolves them: by what it installed in the reactor.
That is the class of DNS_RESOLVER (by default one that knows IPv4 alone, waits for DNS_TIMEOUT and caches), or
whatever the project put in its place. Our own crawls ask the system (`webfountain.download`).

Scrapy's downloader without a second politeness: what the ant hands out goes straight to the download handler. The ant
has decided when a site is asked; Scrapy's per-domain slots, their queues and timers would only cost time here (0.06
ms a page). Downloader middlewares run as ever. What bypasses the scheduler (files and images,
`engine.download_async`) takes Scrapy's way, with the project's DOWNLOAD_DELAY and concurrency; so does a request
whose slot DOWNLOAD_SLOTS has rules for. Set as DOWNLOADER by `webfountain.settings` and by the add-on.

The downloader middlewares: one lands fetches, each exactly once, one ends those that the ant refused. Landing is
innermost of the chain, so that it sees the answer before Scrapy's retry and redirect middlewares turn it into another
request: a 503 slows the site down although it is retried, a redirect is an answer of its own. What never reached the
download handler (another middleware refused or answered) lands when the engine is done with it. Conditional headers
are the fetcher's business, verdicts the spider's side.

Refusing stands where Scrapy's middleware for robots.txt does, before those that would work for the request; only the
add-on installs it. What it says of a host without an address goes through Scrapy's retry middleware as ever. Beside
it stands Scrapy's own middleware for robots.txt, for requests that never were the ant's.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import logging
import ssl
from collections import defaultdict, deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.handlers._base_streaming import BaseStreamingDownloadHandler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers, Response
from scrapy.utils._download_handlers import normalize_bind_address
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.reactor import is_reactor_installed
from scrapy.utils.ssl import _log_sslobj_debug_info, _make_ssl_context
from twisted.internet.ssl import Certificate

from webfountain.clock import SystemClock
from webfountain.crawl.flight import flight_of, replaced
from webfountain.crawl.session import Session
from webfountain.download import Fetcher, Resolver, addresses_of, allowed, authority_of, is_address
from webfountain.download.connection import ConnectionPool, Exchange, TimeLimits
from webfountain.download.http1 import BadResponse
from webfountain.records import Fetched

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Self

    from scrapy import Spider
    from scrapy.core.downloader.handlers._base_streaming import _BaseResponseArgs
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IAddress, IHostResolution

    from webfountain.crawl.flight import Flight
    from webfountain.download.connection import Endpoint
    from webfountain.download.http1 import ErrorWord, ResponseReader

__all__ = [
    "ABORT",
    "BesideMiddleware",
    "FountainDownloadHandler",
    "FountainDownloader",
    "FountainResponse",
    "LandingMiddleware",
    "RefusingMiddleware",
    "download_error",
    "error_word",
    "reactor_addresses",
]

logger = logging.getLogger(__name__)


class _Addresses:
    """Twisted's IResolutionReceiver: what the reactor's resolver says, until it says that this was all."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def resolutionBegan(self, resolution: IHostResolution) -> None:  # noqa: N802 (Twisted's name)
        """It has begun."""

    def addressResolved(self, address: IAddress) -> None:  # noqa: N802
        """One address."""
        self.found.append(address.host)

    def resolutionComplete(self) -> None:  # noqa: N802
        """There are no more."""
        if not self.complete.done():
            self.complete.set_result(None)


async def reactor_addresses(host: str) -> tuple[str, ...]:
    """The addresses of a host name, IPv4 first, by the reactor's resolver; none where it has none."""
    if is_address(host):
        return (host,)
    if not is_reactor_installed():
        return await asyncio.to_thread(addresses_of, host)
    from twisted.internet import reactor  # noqa: PLC0415 (importing it installs one)

    addresses = _Addresses()
    try:
        reactor.nameResolver.resolveHostName(addresses, host)
    except UnicodeError:
        return ()
    await addresses.complete
    return tuple(sorted(dict.fromkeys(addresses.found), key=lambda address: ":" in address))


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
ABORT: Final = object()
"""Signal: end all downloads at once (the crawl stops)."""


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


class FountainDownloadHandler(BaseStreamingDownloadHandler["_Answer"]):
    """Settings read: WEBFOUNTAIN_ALLOW_PRIVATE, DOWNLOAD_BIND_ADDRESS, DOWNLOAD_TIMEOUT, DOWNLOAD_MAXSIZE,
    DOWNLOAD_WARNSIZE, DOWNLOAD_FAIL_ON_DATALOSS, DOWNLOAD_VERIFY_CERTIFICATES, the other DOWNLOAD_TLS settings and
    DOWNLOADER_CLIENT_TLS_*; the reactor's resolver, and so DNS_RESOLVER, DNS_TIMEOUT, DNSCACHE_*.

    Raises ValueError at the start for TLS versions that do not exist.
    """

    supports_per_request_bindaddress = True

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self._allow_private = settings.getbool("WEBFOUNTAIN_ALLOW_PRIVATE", True)
        self._timeout = settings.getfloat("DOWNLOAD_TIMEOUT")
        context = _make_ssl_context(settings)
        # Many servers end a body without the closing record; the framing tells whether it was cut.
        context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
        self._pool = ConnectionPool(lambda: context)
        self._bodies = Session.of(crawler).bodies
        self._resolver = Resolver()
        self._fetcher = Fetcher(self._pool, SystemClock(), self._resolver.resolve, local=self._bind_address)
        self._context_factory = settings.getpriority("DOWNLOADER_CLIENTCONTEXTFACTORY") != 0
        self._scrapys: Any = None
        crawler.signals.connect(self._pool.abort, ABORT)

    async def download_request(self, request: Request) -> Response:
        """The response, or one of Scrapy's download exceptions."""
        flight = flight_of(request)
        if flight is not None and flight.own:
            return await self._own(request, flight)
        if request.meta.get("proxy") or (self._context_factory and request.url.startswith("https:")):
            return await self._by_scrapy(request)
        request.meta.setdefault("download_timeout", self._timeout)
        return await super().download_request(request)

    async def close(self) -> None:
        """Close all connections."""
        self._resolver.close()
        self._pool.close()
        if self._scrapys is not None:
            await self._scrapys.close()

    async def _own(self, request: Request, flight: Flight) -> Response:
        extra = request.headers.to_tuple_list() if request.headers else ()
        flight.held_body = self._bodies.hold()
        fetched = await self._fetcher.fetch(flight.fetch, flight.terms, extra=extra, held=flight.held_body)
        if fetched.fetch.kind != "page":
            fetched = await flight.landing.read_file(fetched)
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

    # ------------------------------------------- what Scrapy's streaming asks

    @asynccontextmanager
    async def _make_request(self, request: Request, timeout: float) -> AsyncIterator[_Answer]:
        """Send a project's request; what comes back is read while the block runs."""
        flight = flight_of(request)
        answer = _Answer(request, timeout, may_send=None if flight is None else flight.terms.may_send)
        running = asyncio.create_task(self._send(request, answer))
        running.add_done_callback(answer.wake)
        try:
            await answer.begun()
            yield answer
        finally:
            running.cancel()

    async def _send(self, request: Request, answer: _Answer) -> None:
        """Ask the address that politeness was counted for, or those that the reactor's resolver finds."""
        parts = urlparse_cached(request)
        if parts.scheme not in ("http", "https"):
            raise UnsupportedURLSchemeError(f"{parts.scheme}: {request.url}")
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
        """What holds for a request that no flight carries: media, robots.txt of Scrapy's own middleware."""
        terms = Session.of(self.crawler).terms
        return self._allow_private if terms is None else bool(terms.allow_private)

    @staticmethod
    def _extract_headers(response: _Answer) -> Headers:
        headers = Headers()
        chunked = response.exchange.reader.length is None
        for name, value in response.exchange.reader.headers:
            if not (chunked and name == "content-length"):  # it says nothing, and need not be a number
                headers.appendlist(name, value.encode("latin-1"))
        return headers

    @staticmethod
    def _build_base_response_args(response: _Answer, request: Request, headers: Headers) -> _BaseResponseArgs:
        reader, connection = response.exchange.reader, response.exchange.connection
        assert reader.status is not None
        assert connection is not None
        return {
            "status": reader.status,
            "url": request.url,
            "headers": headers,
            "certificate": _certificate(connection.tls()),
            "ip_address": ipaddress.ip_address(connection.endpoint.address.partition("%")[0]),
            "protocol": reader.version,
        }

    @staticmethod
    def _iter_body_chunks(response: _Answer) -> AsyncIterator[bytes]:
        return response.chunks()

    @staticmethod
    def _is_dataloss_exception(exc: Exception) -> bool:
        return isinstance(exc, ResponseDataLossError)

    def _log_tls_info(self, response: _Answer, request: Request) -> None:
        connection = response.exchange.connection
        tls = None if connection is None else connection.tls()
        if tls is not None:
            _log_sslobj_debug_info(tls)


class _Answer:
    """What comes back to one request of another project: the exchange, and its body piece by piece."""

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

    def _begin(self, _: ResponseReader) -> _Answer:
        self._news.set()
        return self

    @property
    def size(self) -> int:
        """What waits to be read."""
        return sum(map(len, self._pieces))

    def take(self, data: bytes) -> None:
        """A piece of the body, in its coding."""
        self.taken += len(data)
        self._pieces.append(data)
        self._news.set()

    def end(self) -> bytes:
        """The pieces are read as they come."""
        return b""

    def wake(self, running: asyncio.Task[None]) -> None:
        """The exchange ended, however."""
        self._running = running
        self._news.set()

    async def begun(self) -> None:
        """Wait until the head is there. Raises why it will not come."""
        while self.exchange.sink is None:
            await self._news.wait()
            self._news.clear()
            if self._running is not None and self.exchange.sink is None:
                self._raise(self._running)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body; raises ResponseDataLossError where the peer closed before its end."""
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self._running is not None:
                break
            await self._news.wait()
            self._news.clear()
        if self.exchange.error is not None or self._running.cancelled() or self._running.exception():
            self._raise(self._running)

    def _raise(self, running: asyncio.Task[None]) -> NoReturn:
        """What went wrong, as Scrapy's middlewares know it."""
        running.result()
        word, cause = self.exchange.error or "cut", self.exchange.cause
        if word == "timeout":
            raise DownloadTimeoutError(f"Getting {self._url} took longer than {self._timeout} seconds.")
        if word == "cut" and (cause is not None or self.exchange.aborted):
            raise DownloadFailedError(f"{cause or 'the crawl stops'}: {self._url}") from cause
        raise download_error(word, self._url) from cause


def _turn(flight: Flight, endpoint: Endpoint) -> float:
    return flight.terms.detour(flight.fetch, endpoint.address)


def _certificate(tls: ssl.SSLObject | None) -> Certificate | None:
    """The peer's certificate, as Scrapy's handler for HTTP/1.1 gives it."""
    der = None if tls is None else tls.getpeercert(binary_form=True)
    return None if der is None else Certificate.load(der)


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
