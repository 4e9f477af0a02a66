"""Connections of the downloader: one exchange at a time on each, kept alive per site and address, watched as one.

Between the sockets and `http1`. The pool asks no name server and decides nothing about politeness: it connects
to the address it is given, with the site's name in SNI. One timer watches all exchanges, instead of several
timers for each: a deadline until the head is complete, then a least number of bytes in every window.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from webfountain.download.http1 import BadResponse, ResponseReader

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from webfountain.download.decoding import Body
    from webfountain.download.http1 import ErrorWord

__all__ = ["Connection", "ConnectionPool", "Endpoint", "Exchange", "Pace"]

IDLE_SECONDS: Final = 10.0
MAX_IDLE: Final = 512
TICK: Final = 0.25
_OWN_NETWORK: Final = frozenset({errno.ENETUNREACH, errno.ENETDOWN, errno.EMFILE, errno.ENFILE})


class Endpoint(NamedTuple):
    """Where a connection leads. `tls` is the host name for SNI and certificate, None for plain text."""

    address: str
    port: int
    tls: str | None


class Pace(NamedTuple):
    """How slow a peer may be: seconds until the head is complete, then bytes a second in every window.

    `least_rate` None: `timeout` is for the whole response, as Scrapy's DOWNLOAD_TIMEOUT is.
    """

    timeout: float
    least_rate: float | None

    @property
    def window(self) -> float:
        """Seconds over which the rate is judged: a page may stall for a while, not for ever."""
        return min(10.0, self.timeout / 3)


class Exchange:
    """One request and what comes back. `done` is resolved once; then read `error`, or `reader` and `body`.

    `begin` is called when the head is complete; it returns the `Body` that will take the bytes, or raises
    BadResponse to cut the response there.
    """

    __slots__ = (
        "_begin",
        "_pace",
        "_window_end",
        "_window_taken",
        "aborted",
        "answered",
        "body",
        "connection",
        "deadline",
        "done",
        "error",
        "reader",
        "sink",
    )

    def __init__(
        self, begin: Callable[[ResponseReader], Body], *, pace: Pace, started: float, head_only: bool = False
    ) -> None:
        self._begin = begin
        self._pace = pace
        self._window_end = 0.0
        self._window_taken = 0
        self.deadline = started + pace.timeout
        self.reader = ResponseReader(head_only=head_only)
        self.sink: Body | None = None
        self.body = b""
        self.error: ErrorWord | None = None
        self.answered = False
        self.aborted = False
        self.connection: Connection | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def feed(self, data: bytes) -> bool:
        """Take bytes from the peer; True when the response is complete. Raises BadResponse."""
        self.answered = True
        reader = self.reader
        body = reader.feed(data)
        if reader.status is None:
            return False
        if self.sink is None:
            self.sink = self._begin(reader)
        if body:
            self.sink.take(body)
        return reader.complete or self.sink.full

    def settle(self, error: ErrorWord | None) -> None:
        """Resolve `done`, once; a second end of the same exchange has no effect."""
        if self.done.done():
            return
        self.error = error
        if error is None and self.sink is not None:
            try:
                self.body = self.sink.end()
            except BadResponse as bad:
                self.error = bad.word
        self.done.set_result(None)

    def late(self, now: float) -> ErrorWord | None:
        """The word for being too slow at `now` (monotonic seconds), None while all is well."""
        rate = self._pace.least_rate
        if self.sink is None or rate is None:
            return "timeout" if now >= self.deadline else None
        if now < self._window_end:
            return None
        taken, window = self.sink.taken, self._pace.window
        if self._window_end and taken - self._window_taken < rate * window:
            return "too-slow"
        self._window_end, self._window_taken = now + window, taken
        return None

    def again(self) -> None:
        """Make ready for a second connection, when the first was closed before it answered."""
        self.error = None
        self.done = asyncio.get_running_loop().create_future()


class Connection(asyncio.Protocol):
    """A connection to one endpoint. It carries one exchange at a time and tells the pool when it is free."""

    __slots__ = ("_pool", "endpoint", "exchange", "idle_since", "transport")

    def __init__(self, pool: ConnectionPool, endpoint: Endpoint) -> None:
        self._pool = pool
        self.endpoint = endpoint
        self.exchange: Exchange | None = None
        self.idle_since = 0.0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def send(self, data: bytes, exchange: Exchange) -> None:
        """Start an exchange."""
        assert self.transport is not None
        self.exchange = exchange
        exchange.connection = self
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        exchange = self.exchange
        if exchange is None:  # nothing was asked: the peer is out of step
            self.abort()
            return
        try:
            complete = exchange.feed(data)
        except BadResponse as bad:
            self.end(bad.word)
            return
        if complete:
            self.end(None)

    def eof_received(self) -> None:
        if self.exchange is None:
            return
        try:
            self.exchange.reader.eof()
        except BadResponse as bad:
            self.end(bad.word)
        else:
            self.end(None if self.exchange.sink is not None else "cut")

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.end("cut")

    def end(self, error: ErrorWord | None) -> None:
        """End the exchange, if one runs; keep the connection only when it is in step."""
        exchange, self.exchange = self.exchange, None
        reusable = False
        if exchange is not None:
            reader = exchange.reader
            exchange.settle(error)
            reusable = exchange.error is None and reader.complete and reader.keep_alive and not reader.rest
        if reusable:
            self._pool.keep(self)
        else:
            self.abort()

    def abort(self) -> None:
        """Close at once, unsent bytes are dropped."""
        self._pool.drop(self)
        if self.transport is not None:
            self.transport.abort()

    def certificate(self) -> bytes | None:
        """The peer's certificate in DER, None without TLS."""
        tls = None if self.transport is None else self.transport.get_extra_info("ssl_object")
        return None if tls is None else cast("bytes | None", tls.getpeercert(binary_form=True))

    def usable(self) -> bool:
        """Whether the peer has not closed meanwhile, as far as is known here."""
        return self.transport is not None and not self.transport.is_closing()


class ConnectionPool:
    """All connections of a downloader.

    Invariant: a connection is in `_idle` exactly while it has no exchange and may be used again.
    """

    def __init__(self, tls: Callable[[], ssl.SSLContext]) -> None:
        self._tls_context = tls
        self._tls: ssl.SSLContext | None = None
        self._idle: dict[Endpoint, list[Connection]] = {}
        self._order: OrderedDict[Connection, None] = OrderedDict()
        self._active: set[Exchange] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, endpoint: Endpoint, data: bytes, exchange: Exchange, *, repeatable: bool) -> None:
        """Send `data` and wait until `exchange` is done, with a word in `error` when it failed.

        A kept connection that the peer closed before it answered is replaced once, when the request is
        `repeatable` (RFC 9112 section 9.3.1).
        """
        self._active.add(exchange)
        self._watch_soon()
        try:
            kept = self._take(endpoint)
            if kept is not None:
                kept.send(data, exchange)
                await exchange.done
                if exchange.error != "cut" or exchange.answered or exchange.aborted or not repeatable:
                    return
                exchange.again()
            await self._connect(endpoint, data, exchange)
        finally:
            self._active.discard(exchange)
            if not exchange.done.done() and exchange.connection is not None:
                exchange.connection.abort()  # cancelled from outside

    def keep(self, connection: Connection) -> None:
        """Take back a connection that may serve again."""
        connection.idle_since = time.monotonic()
        self._idle.setdefault(connection.endpoint, []).append(connection)
        self._order[connection] = None
        if len(self._order) > MAX_IDLE:
            next(iter(self._order)).abort()

    def drop(self, connection: Connection) -> None:
        """Forget a connection, if it was kept."""
        if connection in self._order:
            del self._order[connection]
            waiting = self._idle[connection.endpoint]
            waiting.remove(connection)
            if not waiting:
                del self._idle[connection.endpoint]

    def abort(self) -> None:
        """End all exchanges as cut, for good."""
        for exchange in list(self._active):
            exchange.aborted = True
            self._end(exchange, "cut")

    def close(self) -> None:
        """End all exchanges, close all connections."""
        self.abort()
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._order):
            connection.abort()

    def _take(self, endpoint: Endpoint) -> Connection | None:
        while waiting := self._idle.get(endpoint):
            connection = waiting[-1]
            self.drop(connection)
            if connection.usable():
                return connection
        return None

    async def _connect(self, endpoint: Endpoint, data: bytes, exchange: Exchange) -> None:
        try:
            connection = await self._open(endpoint, exchange.deadline - time.monotonic())
        except TimeoutError:
            exchange.settle("timeout")
        except OSError as error:  # TLS and certificate errors among them
            exchange.settle("network" if error.errno in _OWN_NETWORK else "connect")
        else:
            if exchange.done.done():
                connection.abort()
                return
            connection.send(data, exchange)
            await exchange.done

    async def _open(self, endpoint: Endpoint, seconds: float) -> Connection:
        if endpoint.tls is not None and self._tls is None:
            self._tls = self._tls_context()
        async with asyncio.timeout(max(0.0, seconds)):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(self, endpoint),
                endpoint.address,
                endpoint.port,
                ssl=None if endpoint.tls is None else self._tls,
                server_hostname=endpoint.tls,
            )
        return connection

    def _watch_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK, self._watch)

    def _watch(self) -> None:
        """Cut what is too slow, close what was idle too long; runs only while there is something to watch."""
        self._timer = None
        now = time.monotonic()
        for exchange in list(self._active):
            word = exchange.late(now)
            if word is not None:
                self._end(exchange, word)
        while self._order and (oldest := next(iter(self._order))).idle_since < now - IDLE_SECONDS:
            oldest.abort()
        if self._active or self._order:
            self._watch_soon()

    @staticmethod
    def _end(exchange: Exchange, word: ErrorWord) -> None:
        connection = exchange.connection
        if connection is not None and connection.exchange is exchange:
            connection.end(word)
        else:
            exchange.settle(word)
