"""A frontier for a user's own crawler: the frontier chooses the URLs and the times, and the crawler fetches without
Scrapy.

::

    async with webfountain.open_frontier("rocksdb://news", policy="news.toml") as frontier:
        async for lease in frontier.leases():
            status, headers, body = await fetch(lease.url)      # with any HTTP client
            await lease.settle(status, headers=headers, body=body)

A lease is the right to request one URL now: a page, a robots.txt or a sitemap. A URL whose lease was not settled is
leased again after a restart. Fetch and settle each lease in its own task, so that one slow answer does not block the
others.

Many processes may share a store on a server. If a process cannot reach the server for too long, its leases become void
(`is_void`), because other processes may crawl the sites.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from webfountain.config import FountainConfig
from webfountain.crawl.builder import build_own
from webfountain.crawl.worker_thread import POLL_S, Worker
from webfountain.download.bad_response import BadResponse
from webfountain.download.fetcher import allowed
from webfountain.download.resolver import Resolver
from webfountain.errors import InputError, WebfountainError
from webfountain.frontier.cluster.term import TermGuard
from webfountain.history.record_loop import RecordLoop
from webfountain.history.recorder import Recorder
from webfountain.metrics import Metrics
from webfountain.records import FetchResult
from webfountain.store.locations import folder_of, is_shared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Container, Sequence
    from pathlib import Path
    from types import TracebackType

    from webfountain.crawl.builder import FrontierSetup
    from webfountain.records import Fetch
    from webfountain.store.contract import FrontierStore

__all__ = ["LeasedUrl", "OpenFrontier", "open_frontier"]

_T = TypeVar("_T")
FetchError = Literal["dns", "connect", "tls", "certificate", "timeout", "too-large", "cut", "bad-response", "network"]
"""The reason why a request got no answer. Each failed attempt to reach a site makes the next attempt wait longer."""
_VOID: Final = "lapsed"


class LeasedUrl:
    """The right to request one URL until the caller settles the lease."""

    def __init__(self, fetch: Fetch, frontier: OpenFrontier) -> None:
        self._fetch = fetch
        self._frontier = frontier
        self._began = time.monotonic()
        self.is_void = False
        """True if another process may crawl the site now. If `is_void` is True, the caller must cancel the request and
        settle the lease; the frontier ignores the result."""

    @property
    def url(self) -> str:
        """The URL to request."""
        return self._fetch.url

    @property
    def site(self) -> str:
        """The site of the URL."""
        return self._fetch.site

    @property
    def kind(self) -> str:
        """The kind of URL: `page`, `robots` or `sitemap`. Robots.txt files and sitemaps are requested and settled like
        pages."""
        return self._fetch.kind

    @property
    def address(self) -> str | None:
        """The IP address of the site, to which the caller must connect, because politeness is counted per address."""
        return self._fetch.address

    @property
    def conditions(self) -> dict[str, str]:
        """Headers that make the request conditional, so that the server may answer 304 (not modified)."""
        pairs = (("If-None-Match", self._fetch.etag), ("If-Modified-Since", self._fetch.last_modified))
        return {name: value for name, value in pairs if value is not None}

    async def settle(
        self,
        status: int,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        links: Sequence[str] = (),
        seconds: float | None = None,
    ) -> str | None:
        """Tell the frontier how the server answered the request. Return the page's outcome as a word (new, changed,
        same, gone, failed, …).

        Parameters
        ----------
        body : after content decoding
        links : further links that are not in the page's HTML; they may be out of scope
        seconds : duration of the request; by default the time since the lease was given

        Raises
        ------
        InputError
            when the lease has already been settled.
        """
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        given = tuple((name.lower(), value) for name, value in pairs)
        fetched = self._fetched(seconds, status=status, headers=given, body=body)
        return await self._frontier.land(fetched, links)

    async def fail(self, error: FetchError, *, seconds: float | None = None) -> str | None:
        """Tell the frontier why the request got no answer. The frontier offers the URL again later."""
        return await self._frontier.land(self._fetched(seconds, error=error), ())

    def _fetched(
        self,
        seconds: float | None,
        *,
        status: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        body: bytes = b"",
        error: str | None = None,
    ) -> FetchResult:
        took = time.monotonic() - self._began if seconds is None else seconds
        if self.is_void:
            status, headers, body, error = None, (), b"", _VOID
        return FetchResult(
            self._fetch, self._frontier.now(), took, status=status, headers=headers, body=body, error=error,
            address=self._fetch.address,
        )  # fmt: skip


class OpenFrontier:
    """An open frontier, made by `open_frontier`."""

    def __init__(self, config: FountainConfig, policy: str) -> None:
        self._config = config
        self._policy = policy
        self._metrics = Metrics()
        self._built: FrontierSetup | None = None
        self._stirred = asyncio.Event()
        self._error: WebfountainError | None = None
        self._open: dict[int, LeasedUrl] = {}
        self._guard: TermGuard | None = None
        self._worker = Worker(before_batch=lambda: None, absorbed=self._stirred.set, failed=self._fail)
        self._resolver = Resolver()
        self._loop: RecordLoop | None = None
        self._recording: asyncio.Task[None] | None = None

    async def __aenter__(self) -> OpenFrontier:
        build = partial(build_own, self._config, self._policy, self._metrics)
        try:
            self._built = built = await self._worker.call(build)
        except BaseException:
            self._worker.shut()
            raise
        load_seeds = partial(built.seeds, built.collection)
        take = built.frontier.work.take
        self._worker.start(built.frontier, load_seeds, take, compare_clock=built.compare_clock)
        if (heart := built.frontier.heart) is not None:
            self._guard = TermGuard(heart.term.left_s, self._void)
            self._guard.start()
        recorder = Recorder(built.frontier, self._metrics, now=built.frontier.now)
        self._loop = RecordLoop(recorder, self._with_store, folder_of(self._config.store))
        self._recording = asyncio.create_task(self._loop.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        built = self._opened()
        assert self._recording is not None
        assert self._loop is not None
        if self._guard is not None:
            self._guard.stop()
        self._recording.cancel()
        with suppress(asyncio.CancelledError):
            await self._recording
        built.frontier.stop()
        self._resolver.close()
        try:
            await self._worker.end()
            await self._with_store(self._loop.end)
            await self._worker.call(built.frontier.close)
        finally:
            self._worker.shut()

    async def leases(self) -> AsyncIterator[LeasedUrl]:
        """Yield each URL as soon as politeness allows a request.

        The iteration ends only at a limit, such as `max_pages`.

        Raises
        ------
        WebfountainError
            when store or disk fail. URLs that are not settled come back at the next start.
        """
        frontier = self._opened().frontier
        while frontier.finish_reason() is None:
            if self._error is not None:
                raise self._error
            self._stirred.clear()
            if lost := frontier.sites.departures.take_lost():
                self._void(lost)
            self._resolver.ask(frontier.sites.addresses.unresolved(), self._take_addresses)
            fetch = frontier.next()
            if fetch is None:
                await self._rest()
                continue
            self._open[fetch.id] = lease = LeasedUrl(fetch, self)
            yield lease

    async def land(self, fetched: FetchResult, links: Sequence[str]) -> str | None:
        """Settle a lease with the result of its request. Return the page's outcome as a word, or None if the URL is a
        robots.txt or a sitemap."""
        frontier = self._opened().frontier
        if fetched.fetch.id not in self._open:
            raise InputError(f"{fetched.fetch.url}: this lease has already been settled")
        del self._open[fetched.fetch.id]
        if fetched.error == _VOID:
            frontier.landed(fetched)
            if fetched.fetch.kind == "page":
                frontier.give_back(fetched.fetch)
            return None
        fetched = await frontier.examiner.read_file(fetched)
        frontier.landed(fetched)
        outcome = None
        if fetched.fetch.kind == "page":
            visit = frontier.examiner.examine_at_once(fetched) or await frontier.examiner.examine_apart(fetched)
            frontier.finish(visit)
            outcome = visit.kind
            if links:
                await self._worker.call(partial(self._discover, fetched.fetch, links))
        self._worker.stir()
        self._stirred.set()
        return outcome

    def now(self) -> float:
        """Time of the frontier's clock, UTC seconds."""
        return self._opened().frontier.now()

    def _discover(self, fetch: Fetch, links: Sequence[str]) -> None:
        """Add to the store the links that the caller found."""
        frontier = self._opened().frontier
        assert fetch.lease is not None
        frontier.worker.entrance.discover(links, fetch.lease.record, at=frontier.now())

    def _take_addresses(self, host: str, addresses: Sequence[str]) -> None:
        """Pass the addresses of a host to the frontier, except those that the policy forbids."""
        built = self._opened()
        try:
            found = allowed(addresses, allow_private=built.collection.network.allow_private)
            error = None
        except BadResponse as refused:
            found, error = [], refused.word
        built.frontier.resolved(host, found, error=error)
        self._stirred.set()

    async def _rest(self) -> None:
        """Wait until a lease ends or a URL is due, but only for a short time."""
        frontier = self._opened().frontier
        wait_s = min(max(frontier.wake_at() - frontier.now(), 0.001), POLL_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._stirred.wait()

    async def _with_store(self, function: Callable[[FrontierStore], _T]) -> _T:
        return await self._worker.call(partial(self._opened().frontier.worker.on_store, function))

    def _void(self, sites: Container[str] | None = None) -> None:
        """Mark the open leases of some sites, or of all sites, as void."""
        for lease in self._open.values():
            lease.is_void |= sites is None or lease.site in sites

    def _fail(self, error: WebfountainError) -> None:
        self._error = error
        self._stirred.set()

    def _opened(self) -> FrontierSetup:
        if self._built is None:
            raise InputError("open the frontier with `async with`")
        return self._built


def open_frontier(
    store: str,
    *,
    policy: str | Path,
    repository: str | Path | None = None,
    until_idle: bool = False,
    max_pages: int | None = None,
) -> OpenFrontier:
    """Open the frontier of a collection in this process, with `async with`.

    Parameters
    ----------
    store : ``rocksdb://folder``, or a server that many processes share: ``redis://host:port/0``
    policy : the policy file
    repository : folder of the copies; by default the folder of the store; required with a server
    until_idle : end when nothing is in flight and no new URL comes due within 60 s
    max_pages : end after this number of settled fetches

    Raises
    ------
    InputError, StoreError
        (by `async with`) when policy or store cannot be used.
    """
    if is_shared(store) and repository is None:
        raise InputError(f"store {store!r} is on a server; give a folder for the copies (repository=)")
    settings = {
        "WEBFOUNTAIN_STORE": store,
        "WEBFOUNTAIN_REPOSITORY": None if repository is None else str(repository),
        "WEBFOUNTAIN_UNTIL_IDLE": until_idle,
        "WEBFOUNTAIN_MAX_PAGES": max_pages,
    }
    return OpenFrontier(FountainConfig.from_mapping(settings), str(policy))
