"""Carry exchanges (one request and its response each) over a connection to an endpoint.

A connection carries one exchange at a time. After an exchange that ends cleanly, the connection goes back to the pool;
after any other, it is closed.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from webfountain.download.bad_response import BadResponse
from webfountain.download.http_reader import ResponseReader
from webfountain.download.time_limits import ExchangeTime

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.download.bad_response import ErrorWord
    from webfountain.download.body_budget import HeldBody
    from webfountain.download.time_limits import TimeLimits

__all__ = ["Connection", "ConnectionOwner", "Endpoint", "Exchange", "Sink", "check_certificates"]

logger = logging.getLogger(__name__)


class Endpoint(NamedTuple):
    """The other end of a connection: address, port, host name, and plain or TLS.

    `host` is the name in SNI and in the certificate. Two host names never share a connection, because a proxy may send
    all requests of a connection to the host of the first request. `local` is the local address to bind to, or None for
    any.
    """

    address: str
    port: int
    host: str
    tls: bool
    local: tuple[str, int] | None = None


class Sink(Protocol):
    @property
    def taken(self) -> int:
        """Number of bytes received so far, before decoding."""

    @property
    def size(self) -> int:
        """Number of decoded bytes in memory."""

    @property
    def full(self) -> bool:
        """Return whether enough of the body was received to end the exchange successfully."""

    def take(self, data: bytes) -> None:
        """Add the next bytes of the body. Raise BadResponse if `data` cannot be used."""

    def end(self) -> bytes:
        """Return the complete body. Raise BadResponse if the body is incomplete."""


class Exchange:
    """One request and its response. The future `done` is resolved when `error` has been set or, after a success, when
    `reader` and `body` are complete.

    `begin` is called when the head of the response is complete. `begin` returns the sink for the body, or raises
    BadResponse if the body is not wanted. `may_send` is called just before the request is written. If `may_send`
    returns False, the exchange ends with the error "lapsed". `held` is the body's entry in the budget, which the caller
    releases after a success.
    """

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
        self.may_send = may_send
        self.reader = ResponseReader(head_only=head_only)
        self.sink: Sink | None = None
        self.body = b""
        self.error: ErrorWord | None = None
        self.cause: BaseException | None = None
        """The system's error if the connection failed, or None if the peer closed the connection normally."""
        self.answered = False
        self.aborted = False
        self.connection: Connection | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.time = ExchangeTime(limits)

    def mark_sent(self) -> None:
        """Record in the budget that the request was sent."""
        if self._held is not None:
            self._held.ask(self)

    def feed(self, data: bytes) -> bool:
        """Process bytes from the peer, and return whether the response is complete. Raises BadResponse if the response
        cannot be used.
        """
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
        """Stop reading, and pause the clock of this exchange."""
        self.time.pause()
        if self.connection is not None and self.connection.usable():
            assert self.connection.transport is not None
            self.connection.transport.pause_reading()

    def resume(self) -> None:
        """Resume reading, and resume the clock of this exchange."""
        self.time.resume()
        if self.connection is not None and self.connection.usable():
            assert self.connection.transport is not None
            self.connection.transport.resume_reading()

    def late(self, now: float) -> ErrorWord | None:
        """Return an error word if the exchange is too slow at `now` (monotonic seconds), else None."""
        return self.time.late(now, None if self.sink is None else self.sink.taken)

    def settle(self, error: ErrorWord | None, cause: BaseException | None = None) -> None:
        """Resolve `done` with an error word or with success. Only the first call has an effect."""
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

    def end(self, word: ErrorWord) -> None:
        """End the exchange with the error `word`, and close its connection."""
        connection = self.connection
        if connection is not None and connection.exchange is self:
            connection.end(word)
        else:
            self.settle(word)

    def again(self) -> None:
        """Prepare the exchange for another attempt over a new connection."""
        self.error = self.cause = None
        self.done = asyncio.get_running_loop().create_future()


class ConnectionOwner(Protocol):
    """The owner of connections, which counts them and keeps them between exchanges."""

    def keep(self, connection: Connection) -> None:
        """Keep a connection for another exchange."""

    def drop(self, connection: Connection) -> None:
        """Remove a connection from the idle connections, if it is among them."""

    def closed(self) -> None:
        """Record that a connection was closed, so that another one may be opened."""


class Connection(asyncio.Protocol):
    __slots__ = ("_owner", "endpoint", "exchange", "idle_since", "transport")

    def __init__(self, owner: ConnectionOwner, endpoint: Endpoint) -> None:
        self._owner = owner
        self.endpoint = endpoint
        self.exchange: Exchange | None = None
        self.idle_since = 0.0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def send(self, data: bytes, exchange: Exchange) -> None:
        """Start an exchange on the connection."""
        assert self.transport is not None
        self.exchange = exchange
        exchange.connection = self
        if exchange.may_send is not None and not exchange.may_send():
            self.end("lapsed")
            return
        exchange.mark_sent()
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        exchange = self.exchange
        if exchange is None:  # no exchange is running, so the peer is out of step
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
        self._owner.closed()

    def end(self, error: ErrorWord | None, cause: BaseException | None = None) -> None:
        """End the current exchange, if there is one, then keep the connection or close it."""
        exchange, self.exchange = self.exchange, None
        reusable = False
        if exchange is not None:
            reader = exchange.reader
            exchange.settle(error, cause)
            reusable = exchange.error is None and reader.complete and reader.keep_alive and not reader.rest
        if reusable:
            self._owner.keep(self)
        else:
            self.abort()

    def abort(self) -> None:
        """Close the connection at once, without sending the rest of the request."""
        self._owner.drop(self)
        if self.transport is not None:
            self.transport.abort()

    def tls(self) -> ssl.SSLObject | None:
        """Return the TLS object of the connection, or None for plain HTTP."""
        return None if self.transport is None else self.transport.get_extra_info("ssl_object")

    def usable(self) -> bool:
        """Return whether the connection seems open."""
        return self.transport is not None and not self.transport.is_closing()


def check_certificates(context: ssl.SSLContext) -> None:
    """Set up a TLS context so that, as in browsers, only valid certificates of the host are accepted.

    Without certificate checks, anyone on the network path could change a page. With certificate checks, pages behind an
    invalid certificate cannot be fetched.

    The certificate authorities come from SSL_CERT_FILE and SSL_CERT_DIR, else from the system, else from certifi.
    """
    context.check_hostname = True
    context.verify_mode = ssl.CERT_REQUIRED
    paths = ssl.get_default_verify_paths()
    if paths.cafile is not None or paths.capath is not None:
        context.load_default_certs()
        return
    import certifi  # noqa: PLC0415  needed only if the system has no authorities

    logger.warning("The system has no certificate authorities; those of certifi are used")
    context.load_verify_locations(certifi.where())
