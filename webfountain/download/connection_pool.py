"""Run exchanges over a pool of kept and new connections.

The pool connects to given addresses, and sends the site's name in SNI. After a clean exchange, the connection is kept
for the next exchange with the same endpoint (`IdleConnections`).
"""

from __future__ import annotations

import asyncio
import errno
import ssl
import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from webfountain.download.connection import Connection
from webfountain.download.file_limit import FileLimit, spare_files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from webfountain.download.bad_response import ErrorWord
    from webfountain.download.connection import Endpoint, Exchange

__all__ = ["ConnectionPool", "IdleConnections", "PoolStatistics"]

TICK_S: Final = 0.25
ATTEMPT_S: Final = 1.0
"""If an address of a host does not answer within this time, in seconds, the next one is tried."""
_NO_FILE: Final = frozenset({errno.EMFILE, errno.ENFILE})
_OWN_NETWORK: Final = frozenset({errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL})

IDLE_S: Final = 30.0
"""Seconds for which an idle connection is kept."""
MAX_IDLE: Final = 4096
"""Maximum number of idle connections, 2 kB each."""
MAX_IDLE_TLS: Final = 512
"""Maximum number of idle TLS connections, 0.3 MB each."""
MAX_IDLE_AT: Final = 32
"""Maximum number of idle connections to one address, because a server may accept only a limited number of
connections.
"""


class PoolStatistics(NamedTuple):
    """Counts of connections (`open` and `kept`) and of exchanges (`active` and `waiting`). `open` includes connections
    that are being opened, and `kept` counts idle connections.
    """

    open: int
    kept: int
    active: int
    waiting: int


class ConnectionPool:
    """All connections of a downloader.

    `tls` makes the context of TLS connections when the first one is opened. `spare` returns how many more connections
    may be opened now.
    """

    def __init__(self, tls: Callable[[], ssl.SSLContext], *, spare: Callable[[], int] | None = None) -> None:
        self._tls_context = tls
        self._tls: ssl.SSLContext | None = None
        self._files = FileLimit(spare or spare_files)
        self._idle = IdleConnections()
        self._active: set[Exchange] = set()
        self._timer: asyncio.TimerHandle | None = None

    def statistics(self) -> PoolStatistics:
        return PoolStatistics(self._files.open, len(self._idle), len(self._active), self._files.waiting)

    async def run(
        self,
        endpoints: Sequence[Endpoint],
        data: bytes,
        exchange: Exchange,
        *,
        repeatable: bool,
        turn: Callable[[Endpoint], float] | None = None,
    ) -> Endpoint:
        """Send `data`, wait until `exchange` is done, and return the endpoint that was used. After a failure,
        `exchange.error` is set.

        The first of `endpoints` is the one that the frontier chose. If the first endpoint does not answer, the other
        endpoints are tried, each `ATTEMPT_S` after the one before (RFC 8305). `turn` returns the seconds until the
        politeness rules allow a request to an endpoint other than the first. Before the pool tries another endpoint, it
        waits until `turn` returns 0. If the peer closes a kept connection without an answer, a `repeatable` request is
        sent once more, over a new connection (RFC 9112, section 9.3.1).
        """
        self._active.add(exchange)
        self._check_soon()
        try:
            kept = self._idle.take(endpoints[0])
            if kept is not None:
                exchange.time.start()
                kept.send(data, exchange)
                await exchange.done
                if exchange.error != "cut" or exchange.answered or exchange.aborted or not repeatable:
                    return kept.endpoint
                exchange.again()
            return await self._run_fresh(endpoints, data, exchange, turn)
        finally:
            self._active.discard(exchange)
            if exchange.connection is not None and exchange.connection.exchange is exchange:
                exchange.connection.abort()  # cancelled by the caller, and `done` is cancelled too

    def keep(self, connection: Connection) -> None:
        """Keep a connection for another exchange."""
        if self._files.waiting:  # another connection waits for its file
            connection.abort()
        else:
            self._idle.add(connection, at=time.monotonic())

    def drop(self, connection: Connection) -> None:
        """Remove a connection from the idle connections, if it is among them."""
        self._idle.discard(connection)

    def closed(self) -> None:
        """Record that a connection was closed, so that another one may be opened."""
        self._files.release()

    def abort(self, word: ErrorWord = "cut", *, at: Collection[tuple[str, int]] | None = None) -> None:
        """End all exchanges with the error `word`, including those that wait for a connection. If `at` is given, end
        only those that have a connection to one of these hosts and ports.
        """
        for exchange in list(self._active):
            connection = exchange.connection
            if at is None or (connection is not None and (connection.endpoint.host, connection.endpoint.port) in at):
                exchange.aborted = True
                exchange.end(word)
        if at is None:
            self._files.admit_all()

    def close(self) -> None:
        """End all exchanges and close all connections."""
        self.abort()
        if self._timer is not None:
            self._timer.cancel()
        self._idle.close()

    # ------------------------------------------------------------ connecting

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
                await _await_turn(connection.endpoint, turn, exchange)
        except TimeoutError:
            exchange.settle("timeout")
        except OSError as error:
            exchange.settle(_word_of(error), error)
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
        """Return a connection to the first address that answers, or raise the first attempt's error."""
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
                attempt.add_done_callback(_close_late)
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

    async def _reserve(self, exchange: Exchange) -> None:
        """Wait until the connection may open a file, then start the clock of the exchange.

        Raises OSError if the exchange ends during the wait.
        """
        free = self._files.reserve()
        if free is None:
            return
        self._idle.close_oldest()
        exchange.time.stop()
        try:
            await free
        except asyncio.CancelledError:
            self._files.withdraw(free)
            raise
        if exchange.done.done():
            self._files.release()
            raise OSError(errno.ECANCELED, "the exchange was cancelled while it waited for a file descriptor")
        exchange.time.start()

    async def _connect_counted(self, endpoint: Endpoint, exchange: Exchange) -> Connection:
        """Open a connection that is already counted in `FileLimit`."""
        connection: Connection | None = None

        def made() -> Connection:
            nonlocal connection
            connection = Connection(self, endpoint)
            return connection

        try:
            async with asyncio.timeout(exchange.time.left()):
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
                self._files.refuse()
            if connection is None or connection.transport is None:  # otherwise `connection_lost` counts it
                self._files.release()
            raise

    # -------------------------------------------------------------- checking

    def _check_soon(self, seconds: float = TICK_S) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._check)

    def _check(self) -> None:
        """End exchanges that are too slow, and close connections that have been idle for too long."""
        self._timer = None
        now = time.monotonic()
        soonest = now + TICK_S
        for exchange in list(self._active):
            word = exchange.late(now)
            if word is not None:
                exchange.end(word)
            elif exchange.time.deadline < soonest:
                soonest = exchange.time.deadline
        self._idle.close_old(now)
        self._files.recount()
        if self._active or self._idle:
            self._check_soon(soonest - now)


async def _await_turn(endpoint: Endpoint, turn: Callable[[Endpoint], float], exchange: Exchange) -> None:
    """Wait until the politeness rules allow a request to this address, then start the clock of the exchange."""
    while not exchange.done.done() and (wait := turn(endpoint)) > 0:
        await asyncio.sleep(min(wait, TICK_S))
    exchange.time.start()


def _close_late(attempt: asyncio.Task[Connection]) -> None:
    """Close a connection that was opened after another attempt had succeeded."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().abort()


def _word_of(error: OSError) -> ErrorWord:
    """Return the error word for a connection that could not be opened."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "certificate"
    if isinstance(error, ssl.SSLError):
        return "tls"
    return "network" if error.errno in _OWN_NETWORK else "connect"


class IdleConnections:
    """The idle connections."""

    def __init__(self) -> None:
        # Each idle connection is in _by_endpoint and in each of its _orders, which begin with the longest idle one.
        self._by_endpoint: dict[Endpoint, list[Connection]] = {}
        self._all: OrderedDict[Connection, None] = OrderedDict()
        self._tls: OrderedDict[Connection, None] = OrderedDict()
        self._at_address: dict[str, OrderedDict[Connection, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: Connection, *, at: float) -> None:
        """Add a connection that has been idle since `at` (monotonic seconds)."""
        connection.idle_since = at
        self._by_endpoint.setdefault(connection.endpoint, []).append(connection)
        self._at_address.setdefault(connection.endpoint.address, OrderedDict())
        orders = self._orders(connection.endpoint)
        for order, _ in orders:
            order[connection] = None
        for order, most in orders:
            if len(order) > most:
                next(iter(order)).abort()

    def take(self, endpoint: Endpoint) -> Connection | None:
        """Remove and return the most recently used connection to an endpoint, or None."""
        while kept := self._by_endpoint.get(endpoint):
            connection = kept[-1]
            self.discard(connection)
            if connection.usable():
                return connection
        return None

    def discard(self, connection: Connection) -> None:
        """Remove a connection, if it is among the idle connections."""
        if connection not in self._all:
            return
        endpoint = connection.endpoint
        for order, _ in self._orders(endpoint):
            order.pop(connection, None)
        if not self._at_address[endpoint.address]:
            del self._at_address[endpoint.address]
        kept = self._by_endpoint[endpoint]
        kept.remove(connection)
        if not kept:
            del self._by_endpoint[endpoint]

    def close_oldest(self) -> None:
        """Close the connection that has been idle longest, if there is one, to free its file."""
        if self._all:
            next(iter(self._all)).abort()

    def close_old(self, now: float) -> None:
        """Close the connections that have been idle for more than `IDLE_S` at `now` (monotonic seconds)."""
        while self._all and (oldest := next(iter(self._all))).idle_since < now - IDLE_S:
            oldest.abort()

    def close(self) -> None:
        for connection in list(self._all):
            connection.abort()

    def _orders(self, endpoint: Endpoint) -> list[tuple[OrderedDict[Connection, None], int]]:
        """Return the dictionaries that contain the idle connections to an endpoint, each with its maximum size."""
        orders = [(self._at_address[endpoint.address], MAX_IDLE_AT)]
        if endpoint.tls:
            orders.append((self._tls, MAX_IDLE_TLS))
        return [*orders, (self._all, MAX_IDLE)]
