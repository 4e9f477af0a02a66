"""HTTP on asyncio, without Scrapy: one conditional GET at a time and many at once, within the policy's bounds.

**Life of a fetch.** The frontier hands out a `Fetch` when politeness allows, with the address that it was counted for.
`Fetcher` looks whether that address (or, for a file on another host, what its resolver finds) may be asked at all,
writes the request and makes an `Exchange`. `connection` runs it over a connection that is kept, or opens one. `http1`
cuts the bytes that come into head and body; when the head is complete the fetcher sees whether the body is wanted, and
its `Body` takes it. The exchange ends with the body, or with one word for why there is none; either makes a `Fetched`.

**Life of a connection.** It belongs to one endpoint: address, port, host name, plain or TLS.

1. *Counted.* Before its file is opened it has a place among those that RLIMIT_NOFILE leaves room for; where there is
   none the longest idle one is closed and the exchange waits, and its time with it.
2. *Opened*, within the exchange's time. Where the first address does not answer, the host's others are tried one after
   the other; the request goes to one of them only once the frontier says that its turn there has come.
3. *Busy* with one exchange. One timer looks at all of them: `timeout` for the whole, `min_bytes_per_second` within.
   A body that is too much, a head without end, a coding that lies end the exchange at once, and the connection.
   While the crawl holds as many bodies as `budget` allows, its connections do not read, and their time stands still.
4. *Kept*, if the response ended as it was framed, without a byte too many, and the peer did not say close: for half
   a minute, while nobody waits for a file. Bytes that come unasked end it. If the peer closes it just when the next
   request goes out, that one is sent again over a new connection, once.
5. *Closed*: always at once; nothing that was not asked for is read.

Nothing here knows Scrapy, a store or a clock but the monotonic one: what politeness is, which redirect is followed,
what a status means is decided by those who call. The way of a project's own request through Scrapy's code, over the
same connections, is told in `webfountain.crawl.downloader`.

`Fetcher`, between the ant, which says what and which address, and the sockets of `connection`, is the door. The web's
misbehaviour comes back as a word in `Fetched.error`, never as an exception.

`Resolver` makes addresses of host names, many at a time, outside the loop thread; answers are kept for some minutes. A
site that joined the active list waits for its addresses, by which politeness is counted (`ask`); a fetch that leaves
its site, as a redirected robots.txt does, waits for them itself (`resolve`).
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from webfountain.download.connection import Endpoint, Exchange, TimeLimits
from webfountain.download.http1 import ACCEPT_ENCODING, BadResponse, Body
from webfountain.records import Fetched
from webfountain.urls import is_public_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from webfountain.clock import Clock
    from webfountain.download.budget import HeldBody
    from webfountain.download.connection import ConnectionPool
    from webfountain.download.http1 import ResponseReader
    from webfountain.policy import NetworkTable, PolitenessTable
    from webfountain.records import Fetch

__all__ = [
    "ROBOTS_BYTES",
    "Authority",
    "Fetcher",
    "Resolver",
    "Terms",
    "addresses_of",
    "allowed",
    "authority_of",
    "is_address",
    "terms_of",
]

THREADS: Final = 32
"""Names asked for at once: a name server that does not answer holds a thread for some seconds."""
LIFE_S: Final = 300.0
_KEPT: Final = 50_000


class Resolver:
    """`lookup` finds the addresses of a host name, none where it has none; by default the system's resolver does."""

    def __init__(self, lookup: Callable[[str], Awaitable[Sequence[str]]] | None = None) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="webfountain-dns")
        self._lookup = lookup or self._ask_system
        self._known: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, hosts: Sequence[str], tell: Callable[[str, Sequence[str]], None]) -> None:
        """Find the addresses of `hosts`; `tell(host, addresses)` is called for each, at once where they are known."""
        for host in hosts:
            addresses = (host,) if is_address(host) else self._kept(host)
            if addresses:
                tell(host, addresses)
                continue
            task = asyncio.get_running_loop().create_task(self._ask(host, tell))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def resolve(self, host: str) -> tuple[str, ...]:
        """The addresses of a host, the best first; none where it has none."""
        addresses = (host,) if is_address(host) else self._kept(host)
        if not addresses:
            addresses = tuple(await self._lookup(host))
            self._known[host] = (time.monotonic(), addresses)
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return addresses

    def close(self) -> None:
        """Forget what was asked; threads that still wait for a name server end by themselves."""
        for task in self._tasks:
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _kept(self, host: str) -> tuple[str, ...]:
        since, addresses = self._known.get(host, (0.0, ()))
        return addresses if time.monotonic() - since < LIFE_S else ()

    async def _ask(self, host: str, tell: Callable[[str, Sequence[str]], None]) -> None:
        tell(host, await self.resolve(host))

    async def _ask_system(self, host: str) -> tuple[str, ...]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, addresses_of, host)


def addresses_of(host: str) -> tuple[str, ...]:
    """All addresses of a host name, IPv4 first: many names have an IPv6 address that nothing answers at."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_address(host: str) -> bool:
    """Whether a host, without brackets, is an address already."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


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
    may_send: Callable[[], bool] | None = None
    """Asked right before a request goes out; None: it always may."""


def terms_of(
    politeness: PolitenessTable,
    network: NetworkTable,
    detour: Callable[[Fetch, str], float],
    *,
    may_send: Callable[[], bool] | None = None,
) -> Terms:
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
        may_send=may_send,
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

    async def fetch(
        self,
        fetch: Fetch,
        terms: Terms,
        *,
        extra: Sequence[tuple[str, str]] = (),
        held: HeldBody | None = None,
    ) -> Fetched:
        """Ask for one page, robots.txt or sitemap; `extra` are headers to send besides the terms' own, and
        in the place of those of the same name. `held` counts the body, until the caller releases it."""
        slash = fetch.url.find("/", 8)
        site = fetch.url[:slash]
        authority = authority_of(site)
        headers, data = _request(fetch, authority, fetch.url[slash:], terms, extra)
        begin = functools.partial(_begin, fetch.kind, terms)
        exchange = Exchange(begin, terms.limits, may_send=terms.may_send, held=held)
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
