"""Connections of the downloader: one exchange at a time on each, kept alive per site and address, watched as one.

Between the sockets and `http1`. The pool asks no name server and decides nothing about politeness: it connects to
the addresses that it is given, with the site's name in SNI, and asks before it uses another than the first. One timer
watches all exchanges, instead of several timers for each: a deadline for the whole, a least number of bytes in every
window of a body. Connections are counted before they are opened, so that the process never runs out of files.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import time
from collections import OrderedDict, deque
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from webfountain.download.http1 import BadResponse, ResponseReader

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from webfountain.download.budget import HeldBody
    from webfountain.download.http1 import ErrorWord

__all__ = [
    "Connection",
    "ConnectionPool",
    "Endpoint",
    "Exchange",
    "PoolStatistics",
    "Sink",
    "TimeLimits",
    "spare_files",
]

IDLE_S: Final = 30.0
"""A site may be asked again only every so many seconds; most servers wait for longer (nginx by default 75 s), and one
that does not closes the connection itself."""
MAX_IDLE: Final = 4096
"""Kept connections, 2 kB each: of some thousand sites that are asked in turn each finds its own."""
MAX_IDLE_TLS: Final = 512
"""Those of TLS among them, 0.3 MB each, for asyncio reads each through a buffer of 256 kB."""
MAX_IDLE_AT: Final = 32
"""Those to one address: a server of many sites has few places for connections, and somebody else needs them."""
TICK_S: Final = 0.25
ATTEMPT_S: Final = 1.0
"""When the next address of a host is tried while the one before has not answered. RFC 8305 section 5 allows 0.1 to
2 s; a person waits for 0.25, a crawler would rather not knock twice."""
COUNT_S: Final = 1.0
"""How often the open files are counted anew while more than half of those allowed are open."""
_NO_FILE: Final = frozenset({errno.EMFILE, errno.ENFILE})
_OWN_NETWORK: Final = frozenset({errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL})


class Endpoint(NamedTuple):
    """Where a connection leads. `host` is the name in SNI and certificate; two names never share a connection, for
    what stands before an address may have bound it to the site of the first. `local` is bound to, None: to any."""

    address: str
    port: int
    host: str
    tls: bool
    local: tuple[str, int] | None = None


class TimeLimits(NamedTuple):
    """How slow a peer may be: seconds for the whole exchange, and bytes a second in every window of its body.

    `least_rate` None: nothing but `timeout` counts, as with Scrapy's DOWNLOAD_TIMEOUT.
    """

    timeout: float
    least_rate: float | None

    @property
    def window(self) -> float:
        """Seconds over which the rate is judged: a page may stall for a while, not for ever."""
        return min(10.0, self.timeout / 3)


class Sink(Protocol):
    """What takes a response's body."""

    @property
    def taken(self) -> int:
        """Bytes that came so far, coded as they came."""

    @property
    def size(self) -> int:
        """Bytes of the body that are held so far."""

    @property
    def full(self) -> bool:
        """Whether nothing more is wanted: the exchange ends, and well."""

    def take(self, data: bytes) -> None:
        """Take the next bytes. Raises BadResponse."""

    def end(self) -> bytes:
        """The body, when all of it has come. Raises BadResponse."""


class PoolStatistics(NamedTuple):
    """A frozen snapshot: connections that are open or being opened, those of them that are kept for later, exchanges
    under way, and exchanges that wait until a file is free."""

    open: int
    kept: int
    active: int
    waiting: int


class Exchange:
    """One request and what comes back. `done` is resolved once; then read `error`, or `reader` and `body`.

    `begin` is called when the head is complete; it returns the sink that will take the body, or raises BadResponse to
    cut the response there. The time runs from `start`, which the pool calls when the request's turn has come.
    `may_send` is asked right before the request is written: an exchange that it refuses ends as "lapsed".
    `held` is the body's place in the budget of bodies; its owner releases it once an exchange has ended well.
    """

    __slots__ = (
        "_begin",
        "_held",
        "_left_s",
        "_limits",
        "_paused_at",
        "_window_end",
        "_window_taken",
        "aborted",
        "answered",
        "body",
        "cause",
        "connection",
        "deadline",
        "done",
        "error",
        "may_send",
        "reader",
        "sink",
        "started",
    )

    def __init__(
        self,
        begin: Callable[[ResponseReader], Sink],
        limits: TimeLimits,
        *,
        head_only: bool = False,
        may_send: Callable[[], bool] | None = None,
        held: HeldBody | None = None,
    ) -> None:
        self._begin = begin
        self._held = held
        self._limits = limits
        self._paused_at = self._left_s = 0.0
        self.may_send = may_send
        self._window_end = 0.0
        self._window_taken = 0
        self.reader = ResponseReader(head_only=head_only)
        self.sink: Sink | None = None
        self.body = b""
        self.error: ErrorWord | None = None
        self.cause: BaseException | None = None
        """What the operating system said when the connection failed; None when the peer closed it in good order."""
        self.answered = False
        self.aborted = False
        self.connection: Connection | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.start()

    def start(self) -> None:
        """Let the time run from now."""
        self.started = time.monotonic()
        self.deadline = self.started + self._limits.timeout

    def ask(self) -> None:
        """The request goes out."""
        if self._held is not None:
            self._held.ask(self)

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
        complete = reader.complete or self.sink.full
        if body and self._held is not None and not complete:
            self._held.grow(self.sink.size)
        return complete

    def pause(self) -> None:
        """Stop reading, and the clock: the server cannot be quick while nobody reads."""
        self._paused_at = time.monotonic()
        self._left_s, self.deadline = self.deadline - self._paused_at, inf
        self._window_end = inf
        if self.connection is not None and self.connection.usable():
            assert self.connection.transport is not None
            self.connection.transport.pause_reading()

    def resume(self) -> None:
        """Go on reading; the pause counts neither against the time for the whole nor as the server's slowness."""
        now = time.monotonic()
        self.started += now - self._paused_at
        self.deadline = now + self._left_s
        self._window_end = 0.0
        if self.connection is not None and self.connection.usable():
            assert self.connection.transport is not None
            self.connection.transport.resume_reading()

    def settle(self, error: ErrorWord | None, cause: BaseException | None = None) -> None:
        """Resolve `done`, once; a second end of the same exchange has no effect."""
        if self.done.done():
            if self._held is not None and self.done.cancelled():
                self._held.release()
            return
        self.error, self.cause = error, cause
        if error is None and self.sink is not None:
            try:
                self.body = self.sink.end()
            except BadResponse as bad:
                self.error = bad.word
        if self._held is not None:
            if self.error is None:
                self._held.land(len(self.body))
            else:
                self._held.release()
        self.done.set_result(None)

    def late(self, now: float) -> ErrorWord | None:
        """The word for being too slow at `now` (monotonic seconds), None while all is well.

        A peer that does not answer is "timeout"; one that answers, too slowly or for too long, is "too-slow".
        """
        rate = self._limits.least_rate
        if now >= self.deadline:
            return "timeout" if self.sink is None or rate is None else "too-slow"
        if self.sink is None or rate is None or now < self._window_end:
            return None
        taken, window = self.sink.taken, self._limits.window
        if self._window_end and taken - self._window_taken < rate * window:
            return "too-slow"
        self._window_end, self._window_taken = now + window, taken
        return None

    def again(self) -> None:
        """Make ready for a second connection, when the first was closed before it answered."""
        self.error = self.cause = None
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
        if exchange.may_send is not None and not exchange.may_send():
            self.end("lapsed")
            return
        exchange.ask()
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
        self.end("cut", exc)
        self._pool.closed()

    def end(self, error: ErrorWord | None, cause: BaseException | None = None) -> None:
        """End the exchange, if one runs; keep the connection only when it is in step."""
        exchange, self.exchange = self.exchange, None
        reusable = False
        if exchange is not None:
            reader = exchange.reader
            exchange.settle(error, cause)
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

    def tls(self) -> ssl.SSLObject | None:
        """What TLS knows of the peer, None for plain text."""
        return None if self.transport is None else self.transport.get_extra_info("ssl_object")

    def usable(self) -> bool:
        """Whether the peer has not closed meanwhile, as far as is known here."""
        return self.transport is not None and not self.transport.is_closing()


class ConnectionPool:
    """All connections of a downloader.

    `tls` makes the context of all TLS connections when the first is needed. `spare` tells how many more connections
    may be opened now; the rest waits.

    Invariant: a connection is in `_idle` exactly while it has no exchange and may be used again; in each of its
    `_orders` too, the longest idle first.
    Invariant: `_open` counts the connections whose file is open or about to be.
    """

    def __init__(self, tls: Callable[[], ssl.SSLContext], *, spare: Callable[[], int] | None = None) -> None:
        self._tls_context = tls
        self._tls: ssl.SSLContext | None = None
        self._spare = spare or spare_files
        self._idle: dict[Endpoint, list[Connection]] = {}
        self._order: OrderedDict[Connection, None] = OrderedDict()
        self._order_tls: OrderedDict[Connection, None] = OrderedDict()
        self._order_at: dict[str, OrderedDict[Connection, None]] = {}
        self._active: set[Exchange] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._open = 0
        self._most = 0
        self._counted_at = -COUNT_S
        self._waiting: deque[asyncio.Future[None]] = deque()

    def statistics(self) -> PoolStatistics:
        """How many connections and exchanges there are."""
        return PoolStatistics(self._open, len(self._order), len(self._active), len(self._waiting))

    async def run(
        self,
        endpoints: Sequence[Endpoint],
        data: bytes,
        exchange: Exchange,
        *,
        repeatable: bool,
        turn: Callable[[Endpoint], float] | None = None,
    ) -> Endpoint:
        """Send `data` and wait until `exchange` is done, with a word in `error` when it failed.

        The first of `endpoints` is the one whose turn it is. Where it does not answer, the others are tried, each
        `ATTEMPT_S` after the one before (RFC 8305); before anything is sent to one of them, `turn` says how many
        seconds it must wait, until it says 0. A kept connection that the peer closed before it answered is replaced
        once, when the request is `repeatable` (RFC 9112 section 9.3.1). Returns the endpoint that was asked.
        """
        self._active.add(exchange)
        self._check_soon()
        try:
            kept = self._take(endpoints[0])
            if kept is not None:
                exchange.start()
                kept.send(data, exchange)
                await exchange.done
                if exchange.error != "cut" or exchange.answered or exchange.aborted or not repeatable:
                    return kept.endpoint
                exchange.again()
            return await self._run_fresh(endpoints, data, exchange, turn)
        finally:
            self._active.discard(exchange)
            if exchange.connection is not None and exchange.connection.exchange is exchange:
                exchange.connection.abort()  # cancelled from outside, and `done` with it

    def keep(self, connection: Connection) -> None:
        """Take back a connection that may serve again."""
        if self._waiting:  # its file is wanted
            connection.abort()
            return
        connection.idle_since = time.monotonic()
        self._idle.setdefault(connection.endpoint, []).append(connection)
        self._order_at.setdefault(connection.endpoint.address, OrderedDict())
        orders = self._orders(connection.endpoint)
        for order, _ in orders:
            order[connection] = None
        for order, most in orders:
            if len(order) > most:
                next(iter(order)).abort()

    def drop(self, connection: Connection) -> None:
        """Forget a connection, if it was kept."""
        if connection in self._order:
            for order, _ in self._orders(connection.endpoint):
                order.pop(connection, None)
            if not self._order_at[connection.endpoint.address]:
                del self._order_at[connection.endpoint.address]
            waiting = self._idle[connection.endpoint]
            waiting.remove(connection)
            if not waiting:
                del self._idle[connection.endpoint]

    def _orders(self, endpoint: Endpoint) -> list[tuple[OrderedDict[Connection, None], int]]:
        """The orders in which its connections stand while they are kept, the narrowest first, and their bounds."""
        orders = [(self._order_at[endpoint.address], MAX_IDLE_AT)]
        if endpoint.tls:
            orders.append((self._order_tls, MAX_IDLE_TLS))
        return [*orders, (self._order, MAX_IDLE)]

    def closed(self) -> None:
        """A connection that was counted has no file any more: the next that waits may open one."""
        self._open -= 1
        self._admit()

    def abort(self) -> None:
        """End all exchanges as cut, for good."""
        for exchange in list(self._active):
            exchange.aborted = True
            self._end(exchange, "cut")
        self._admit(len(self._waiting))  # to find their exchanges ended

    def close(self) -> None:
        """End all exchanges, close all connections."""
        self.abort()
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._order):
            connection.abort()

    # ------------------------------------------------------------ connecting

    def _take(self, endpoint: Endpoint) -> Connection | None:
        while waiting := self._idle.get(endpoint):
            connection = waiting[-1]
            self.drop(connection)
            if connection.usable():
                return connection
        return None

    async def _run_fresh(
        self,
        endpoints: Sequence[Endpoint],
        data: bytes,
        exchange: Exchange,
        turn: Callable[[Endpoint], float] | None,
    ) -> Endpoint:
        connection: Connection | None = None
        try:
            if len(endpoints) == 1:
                connection = await self._connect(endpoints[0], exchange)
            else:
                connection = await self._race(endpoints, exchange)
            if connection.endpoint is not endpoints[0] and turn is not None:
                await self._await_turn(connection.endpoint, turn, exchange)
        except TimeoutError:
            exchange.settle("timeout")
        except OSError as error:  # TLS and certificate errors among them
            exchange.settle("network" if error.errno in _OWN_NETWORK else "connect", error)
        if connection is None:
            return endpoints[0]
        if exchange.done.done() or not connection.usable():
            connection.abort()
            exchange.settle("cut")
        else:
            connection.send(data, exchange)
            await exchange.done
        return connection.endpoint

    async def _race(self, endpoints: Sequence[Endpoint], exchange: Exchange) -> Connection:
        """The first address that answers, of several tried one after the other. Raises what the first one raised."""
        untried = deque(endpoints)
        attempts: list[asyncio.Task[Connection]] = []
        under_way: set[asyncio.Task[Connection]] = set()
        try:
            while untried or under_way:
                if untried:
                    attempts.append(asyncio.create_task(self._connect(untried.popleft(), exchange)))
                    under_way.add(attempts[-1])
                wait_s = ATTEMPT_S if untried else None
                done, under_way = await asyncio.wait(under_way, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
                for attempt in done:
                    if attempt.exception() is None:
                        under_way |= done - {attempt}
                        return attempt.result()
            return attempts[0].result()
        finally:
            for attempt in under_way:
                attempt.add_done_callback(_unwanted)
                attempt.cancel()

    async def _connect(self, endpoint: Endpoint, exchange: Exchange) -> Connection:
        if endpoint.tls and self._tls is None:
            self._tls = self._tls_context()
        while True:
            await self._reserve(exchange)
            try:
                return await self._connect_counted(endpoint, exchange)
            except OSError as error:
                if error.errno not in _NO_FILE:
                    raise

    async def _connect_counted(self, endpoint: Endpoint, exchange: Exchange) -> Connection:
        """Open a connection whose file is counted already."""
        connection: Connection | None = None

        def made() -> Connection:
            nonlocal connection
            connection = Connection(self, endpoint)
            return connection

        try:
            async with asyncio.timeout(max(0.0, exchange.deadline - time.monotonic())):
                _, opened = await asyncio.get_running_loop().create_connection(
                    made,
                    endpoint.address,
                    endpoint.port,
                    ssl=self._tls if endpoint.tls else None,
                    server_hostname=endpoint.host if endpoint.tls else None,
                    local_addr=endpoint.local,
                )
                return opened
        except BaseException as error:
            if isinstance(error, OSError) and error.errno in _NO_FILE:
                # Somebody else took the reserve since files were counted: wait until they are counted again.
                self._most, self._counted_at = self._open - 1, time.monotonic()
            if connection is None or connection.transport is None:  # else `connection_lost` will count it
                self.closed()
            raise

    @staticmethod
    async def _await_turn(endpoint: Endpoint, turn: Callable[[Endpoint], float], exchange: Exchange) -> None:
        """Wait until politeness lets another address than the first be asked; the time runs from then."""
        while not exchange.done.done() and (wait := turn(endpoint)) > 0:
            await asyncio.sleep(min(wait, TICK_S))
        exchange.start()

    # ----------------------------------------------------------------- files

    async def _reserve(self, exchange: Exchange) -> None:
        """Wait until a file may be opened for a connection, and count it; the exchange's time runs from then.

        Raises OSError when the exchange was ended meanwhile.
        """
        if self._open >= self._most:
            self._count()
        if self._open < self._most and not self._waiting:
            self._open += 1
            return
        if self._order:
            next(iter(self._order)).abort()  # the longest idle: its file comes free
        free = asyncio.get_running_loop().create_future()
        self._waiting.append(free)
        exchange.deadline = inf
        try:
            await free
        except asyncio.CancelledError:
            self._waiting.remove(free) if free.cancelled() else self.closed()
            raise
        if exchange.done.done():
            self.closed()
            raise OSError(errno.ECANCELED, "the exchange was ended while it waited for a file")
        exchange.start()

    def _admit(self, most: int = 0) -> None:
        """Let those go on for whom there is a file, or `most` of them whether there is or not."""
        while self._waiting and (self._open < self._most or most > 0):
            self._open += 1
            most -= 1
            self._waiting.popleft().set_result(None)

    def _count(self) -> None:
        now = time.monotonic()
        if now - self._counted_at >= COUNT_S:
            self._counted_at = now
            # One connection always, or nothing would ever be asked: then it is the system that says no.
            self._most = max(1, self._open + self._spare())

    # ----------------------------------------------------------------- watch

    def _check_soon(self, seconds: float = TICK_S) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._check_exchanges)

    def _check_exchanges(self) -> None:
        """Cut what is too slow, close what was idle too long; runs only while there is something to watch."""
        self._timer = None
        now = time.monotonic()
        soonest = now + TICK_S
        for exchange in list(self._active):
            word = exchange.late(now)
            if word is not None:
                self._end(exchange, word)
            elif exchange.deadline < soonest:
                soonest = exchange.deadline
        while self._order and (oldest := next(iter(self._order))).idle_since < now - IDLE_S:
            oldest.abort()
        if self._waiting or 2 * self._open > self._most:
            self._count()
            self._admit()
        if self._active or self._order:
            self._check_soon(soonest - now)

    @staticmethod
    def _end(exchange: Exchange, word: ErrorWord) -> None:
        connection = exchange.connection
        if connection is not None and connection.exchange is exchange:
            connection.end(word)
        else:
            exchange.settle(word)


def _unwanted(attempt: asyncio.Task[Connection]) -> None:
    """An attempt that another one overtook came to its end: close what it opened."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().abort()


def spare_files() -> int:
    """How many more files the process may open for connections: its limit, less those open now and a reserve.

    The reserve is for all else that opens files without asking: the store, WARC files, name servers' sockets.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return 1 << 20
    reserve = min(160, limit // 4)
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return limit - reserve - len(os.listdir(folder))
        except OSError:
            continue
    return limit - reserve - 128
