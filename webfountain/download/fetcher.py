"""Fetch URLs with `Fetcher`, the entry point of this package.

If a server or the network fails, `FetchResult.error` is an error word, and no exception is raised.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from webfountain.download.bad_response import BadResponse
from webfountain.download.connection import Endpoint, Exchange
from webfountain.download.content_coding import ACCEPT_ENCODING, Body, check_codings
from webfountain.download.time_limits import TimeLimits
from webfountain.public_addresses import is_public_address
from webfountain.records import FetchResult
from webfountain.urls import path_start

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from webfountain.clock import Clock
    from webfountain.download.body_budget import HeldBody
    from webfountain.download.connection_pool import ConnectionPool
    from webfountain.download.http_reader import ResponseReader
    from webfountain.policy.tables import NetworkTable, PolitenessTable
    from webfountain.records import Fetch

__all__ = ["ROBOTS_BYTES", "Authority", "Fetcher", "Terms", "allowed", "authority_of", "terms_of"]

ROBOTS_BYTES: Final = 512_000
"""Maximum number of bytes that are read from a robots.txt file. RFC 9309, section 2.5, requires crawlers to read at
least 500 KiB.
"""

_public = functools.lru_cache(maxsize=65_536)(is_public_address)


class Authority(NamedTuple):
    """The parts of a URL that a connection needs: scheme, host and port."""

    host: str
    port: int
    tls: bool
    text: str
    """Host and port as in the URL, to be sent in the Host header."""

    def at(self, address: str, local: tuple[str, int] | None = None) -> Endpoint:
        return Endpoint(address, self.port, self.host, self.tls, local)


@functools.lru_cache(maxsize=16_384)
def authority_of(site: str) -> Authority:
    """Return the parts of a site's URL, ``scheme://host[:port]``."""
    parts = urlsplit(site)
    tls = parts.scheme == "https"
    return Authority(parts.hostname or "", parts.port or (443 if tls else 80), tls, parts.netloc.rpartition("@")[2])


def allowed(addresses: Iterable[str], *, allow_private: bool) -> list[str]:
    """Return those of `addresses` to which a crawl may connect, in order. If `allow_private` is False, only public
    addresses are allowed.

    Raises
    ------
    BadResponse
        "dns" if there are no addresses, "private-address" if none is public.
    """
    found = list(addresses)
    if not found:
        raise BadResponse("dns")
    if not allow_private:
        found = [address for address in found if _public(address)]
        if not found:
            raise BadResponse("private-address")
    return found


class Terms(NamedTuple):
    """A collection's rules for all fetches, in the form that `Fetcher` needs."""

    limits: TimeLimits
    max_bytes: int
    accept: frozenset[str]
    allow_private: bool
    verify_tls: bool
    headers: tuple[tuple[str, str], ...]
    head: str
    detour: Callable[[Fetch, str], float]
    """Function that returns for how many seconds a fetch must wait before it may use another address of its host."""
    may_send: Callable[[], bool] | None = None
    """Function that returns whether a request may be sent now; without it, every request may be sent."""


def terms_of(
    politeness: PolitenessTable,
    network: NetworkTable,
    detour: Callable[[Fetch, str], float],
    *,
    may_send: Callable[[], bool] | None = None,
) -> Terms:
    """Make the rules for all fetches from a collection's politeness and network tables."""
    headers = (
        ("User-Agent", politeness.user_agent),
        ("Accept", ", ".join(politeness.accept) + ", */*;q=0.1"),
        ("Accept-Encoding", ACCEPT_ENCODING),
    )
    return Terms(
        limits=TimeLimits(float(politeness.timeout), float(politeness.min_bytes_per_second)),
        max_bytes=int(politeness.max_bytes),
        accept=frozenset(kind.strip().lower() for kind in politeness.accept),
        allow_private=network.allow_private,
        verify_tls=network.verify_tls,
        headers=headers,
        head="".join(f"{name}: {value}\r\n" for name, value in headers),
        detour=detour,
        may_send=may_send,
    )


class Fetcher:
    """Fetches URLs over one pool of connections. `resolve` finds the addresses of a host if the fetch has none."""

    def __init__(
        self,
        pool: ConnectionPool,
        clock: Clock,
        resolve: Callable[[str], Awaitable[Sequence[str]]],
        *,
        local: tuple[str, int] | None = None,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._resolve = resolve
        self._local = local

    async def fetch(
        self,
        fetch: Fetch,
        terms: Terms,
        *,
        extra: Sequence[tuple[str, str]] = (),
        held: HeldBody | None = None,
    ) -> FetchResult:
        """Request a page, robots.txt file or sitemap. The `extra` headers replace headers of the same name. `held`
        counts the body in the budget until the caller releases it.
        """
        slash = path_start(fetch.url)
        site = fetch.url[:slash]
        authority = authority_of(site)
        headers, data = _request(fetch, authority, fetch.url[slash:], terms, extra)
        begin = functools.partial(_begin, fetch.kind, terms)
        exchange = Exchange(begin, terms.limits, may_send=terms.may_send, held=held)
        address = None
        try:
            # If robots.txt redirects to another host, the address of that host is still unknown.
            if fetch.address is not None and site == fetch.site:
                addresses: Sequence[str] = (fetch.address, *fetch.fallbacks)
            else:
                addresses = await self._resolve(authority.host)
            # Private addresses are refused whatever their source, because DNS may have been rebound.
            endpoints = [
                authority.at(each, self._local) for each in allowed(addresses, allow_private=terms.allow_private)
            ]
            turn = functools.partial(_turn, terms, fetch) if fetch.fallbacks and site == fetch.site else None
            address = (await self._pool.run(endpoints, data, exchange, repeatable=True, turn=turn)).address
        except BadResponse as bad:
            exchange.error = bad.word
        return self._fetched(fetch, exchange, headers, address)

    def _fetched(
        self, fetch: Fetch, exchange: Exchange, headers: tuple[tuple[str, str], ...], address: str | None
    ) -> FetchResult:
        now, seconds = self._clock.now(), time.monotonic() - exchange.time.started
        if exchange.error is not None:
            return FetchResult(fetch, now, seconds, error=exchange.error, request_headers=headers, address=address)
        reader = exchange.reader
        return FetchResult(
            fetch, now, seconds, reader.status, tuple(reader.headers), exchange.body, None, headers, address=address
        )


def _turn(terms: Terms, fetch: Fetch, endpoint: Endpoint) -> float:
    return terms.detour(fetch, endpoint.address)


def _request(
    fetch: Fetch, authority: Authority, target: str, terms: Terms, extra: Sequence[tuple[str, str]]
) -> tuple[tuple[tuple[str, str], ...], bytes]:
    """Return the headers of a request, and its complete head as bytes."""
    own = terms.headers
    if extra:
        names = {name.lower() for name, _ in extra}
        own = tuple((name, value) for name, value in own if name.lower() not in names)
    more = [*extra]
    if fetch.etag:
        more.append(("If-None-Match", fetch.etag))
    if fetch.last_modified:
        more.append(("If-Modified-Since", fetch.last_modified))
    tail = "".join(f"{name}: {value}\r\n" for name, value in more) if more else ""
    usual = terms.head if own is terms.headers else "".join(f"{name}: {value}\r\n" for name, value in own)
    head = f"GET {target} HTTP/1.1\r\nHost: {authority.text}\r\n{usual}{tail}\r\n"
    return (("Host", authority.text), *own, *more), head.encode("latin-1", "replace")


def _begin(kind: str, terms: Terms, reader: ResponseReader) -> Body:
    """Return an object that decodes a response's body. Raise BadResponse if the body is not wanted or cannot be
    decoded.
    """
    encoding = content_type = ""
    for name, value in reader.headers:
        if name == "content-encoding":
            encoding = f"{encoding},{value}" if encoding else value
        elif name == "content-type" and not content_type:
            content_type = value
    if encoding and reader.status == 200:
        check_codings(encoding)
    if kind == "robots":
        return Body(encoding, limit=min(terms.max_bytes, ROBOTS_BYTES), truncate=True)
    if kind == "page" and reader.status == 200:
        _check_type(content_type, terms.accept)
    if reader.length is not None and reader.length > terms.max_bytes:
        raise BadResponse("too-large")
    return Body(encoding, limit=terms.max_bytes)


def _check_type(content_type: str, accept: frozenset[str]) -> None:
    """Raise BadResponse("content-type") if the policy does not accept the content type."""
    kind = content_type.partition(";")[0].strip(" \t").lower()
    if kind and kind not in accept and f"{kind.partition('/')[0]}/*" not in accept and "*/*" not in accept:
        raise BadResponse("content-type")
