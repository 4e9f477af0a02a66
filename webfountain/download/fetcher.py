"""From a `Fetch` to a `Fetched`: one conditional GET over the ant's own connections, within the policy's bounds.

Between the ant, which says what and which address, and the sockets of `connection`. It knows no Scrapy: the
download handler wraps it. It decides nothing about politeness, robots.txt or verdicts, and follows no redirect.
The web's misbehaviour comes back as a word in `Fetched.error`, never as an exception.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from webfountain.download.connection import Endpoint, Exchange, TimeLimits
from webfountain.download.decoding import ACCEPT_ENCODING, Body
from webfountain.download.http1 import BadResponse
from webfountain.policy.network import is_public_address
from webfountain.records import Fetched

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from webfountain.clock import Clock
    from webfountain.download.connection import ConnectionPool
    from webfountain.download.http1 import ResponseReader
    from webfountain.policy.tables import NetworkTable, PolitenessTable
    from webfountain.records import Fetch

__all__ = ["ROBOTS_BYTES", "Authority", "Fetcher", "Terms", "allowed", "authority_of", "terms_of"]

ROBOTS_BYTES: Final = 512_000
"""RFC 9309 section 2.5: at least 500 KiB of robots.txt count, what follows may be ignored."""


class Authority(NamedTuple):
    """Scheme, host and port of a URL, ready to connect."""

    host: str
    port: int
    tls: bool
    text: str
    """Host and port as they stand in the URL: the Host header."""

    def at(self, address: str, local: tuple[str, int] | None = None) -> Endpoint:
        """The endpoint of this authority at one of its addresses, bound to a local one or to any."""
        return Endpoint(address, self.port, self.host, self.tls, local)


@functools.lru_cache(maxsize=16_384)
def authority_of(site: str) -> Authority:
    """Where ``scheme://host[:port]`` leads."""
    parts = urlsplit(site)
    tls = parts.scheme == "https"
    return Authority(parts.hostname or "", parts.port or (443 if tls else 80), tls, parts.netloc.rpartition("@")[2])


_public = functools.lru_cache(maxsize=65_536)(is_public_address)


def allowed(addresses: Iterable[str], *, allow_private: bool) -> list[str]:
    """The addresses that a crawl may connect to, in order: all of them, or the public ones.

    Raises
    ------
    BadResponse
        "dns" when there are none, "private-address" when none is public.
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
    """What the collection says about every fetch, worked out once."""

    limits: TimeLimits
    max_bytes: int
    accept: frozenset[str]
    allow_private: bool
    headers: tuple[tuple[str, str], ...]
    head: str
    """`headers` as they go over the wire."""
    detour: Callable[[Fetch, str], float]
    """Seconds that a fetch must wait before it may ask another address of its host; 0.0 once it is its turn there."""


def terms_of(politeness: PolitenessTable, network: NetworkTable, detour: Callable[[Fetch, str], float]) -> Terms:
    """The terms of a collection's politeness and network tables."""
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
        headers=headers,
        head="".join(f"{name}: {value}\r\n" for name, value in headers),
        detour=detour,
    )


class Fetcher:
    """Makes fetches over one pool of connections. `resolve` is asked for a host that the fetch names no address of."""

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

    async def fetch(self, fetch: Fetch, terms: Terms, *, extra: Sequence[tuple[str, str]] = ()) -> Fetched:
        """Ask for one page, robots.txt or sitemap; `extra` are headers to send besides the terms' own, and
        in the place of those of the same name."""
        slash = fetch.url.find("/", 8)
        site = fetch.url[:slash]
        authority = authority_of(site)
        headers, data = _request(fetch, authority, fetch.url[slash:], terms, extra)
        exchange = Exchange(functools.partial(_begin, fetch.kind, terms), terms.limits)
        address = None
        try:
            # A robots.txt that redirects to another host has no address of that host yet.
            if fetch.address is not None and site == fetch.site:
                addresses: Sequence[str] = (fetch.address, *fetch.fallbacks)
            else:
                addresses = await self._resolve(authority.host)
            # Private ones are refused whoever named them: DNS may have been rebound.
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
    ) -> Fetched:
        now, seconds = self._clock.now(), time.monotonic() - exchange.started
        if exchange.error is not None:
            return Fetched(fetch, now, seconds, error=exchange.error, request_headers=headers, address=address)
        reader = exchange.reader
        return Fetched(
            fetch, now, seconds, reader.status, tuple(reader.headers), exchange.body, None, headers, address=address
        )


def _turn(terms: Terms, fetch: Fetch, endpoint: Endpoint) -> float:
    return terms.detour(fetch, endpoint.address)


def _request(
    fetch: Fetch, authority: Authority, target: str, terms: Terms, extra: Sequence[tuple[str, str]]
) -> tuple[tuple[tuple[str, str], ...], bytes]:
    """The request's headers as records and its head as bytes."""
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
    """Look at the head: whether the body is wanted, and how it is coded. Raises BadResponse."""
    encoding = content_type = ""
    for name, value in reader.headers:
        if name == "content-encoding":
            encoding = f"{encoding},{value}" if encoding else value
        elif name == "content-type" and not content_type:
            content_type = value
    if kind == "robots":
        return Body(encoding, limit=min(terms.max_bytes, ROBOTS_BYTES), truncate=True)
    if kind == "page" and reader.status == 200:
        _check_type(content_type, terms.accept)
    if reader.length is not None and reader.length > terms.max_bytes:
        raise BadResponse("too-large")
    return Body(encoding, limit=terms.max_bytes)


def _check_type(content_type: str, accept: frozenset[str]) -> None:
    """Raise BadResponse("content-type") for a type that the policy does not take; a missing one is taken."""
    kind = content_type.partition(";")[0].strip(" \t").lower()
    if kind and kind not in accept and f"{kind.partition('/')[0]}/*" not in accept and "*/*" not in accept:
        raise BadResponse("content-type")
