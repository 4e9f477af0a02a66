"""Idle connections: kept open after an exchange, found by endpoint, limited in number and age.

The pool adds a connection after a clean exchange, and takes it out for the next exchange with the same endpoint. When
a limit is exceeded, the longest idle connection of that kind is closed.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webfountain.download.connection import Connection, Endpoint

__all__ = ["IdleConnections"]

IDLE_S: Final = 30.0
"""Time for which an idle connection is kept, s. Politeness separates the requests to a site by seconds. Most servers
keep a connection for longer (nginx: 75 s by default); the others close it themselves.
"""
MAX_IDLE: Final = 4096
"""Largest number of idle connections, 2 kB each: enough for some thousand sites that are fetched in turn."""
MAX_IDLE_TLS: Final = 512
"""Largest number of TLS connections among them; each takes 0.3 MB, because asyncio reads it through a buffer of 256
kB.
"""
MAX_IDLE_AT: Final = 32
"""Largest number of idle connections to one address. A server with many sites accepts few connections, and other
clients need them too.
"""


class IdleConnections:
    """Connections without an exchange, which may be used again.

    Invariant: each connection is in `_by_endpoint` and in every order that it belongs to, the longest idle first.
    """

    def __init__(self) -> None:
        self._by_endpoint: dict[Endpoint, list[Connection]] = {}
        self._all: OrderedDict[Connection, None] = OrderedDict()
        self._tls: OrderedDict[Connection, None] = OrderedDict()
        self._at_address: dict[str, OrderedDict[Connection, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: Connection, *, at: float) -> None:
        """Keep a connection that has been idle since `at` (monotonic seconds)."""
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
        """Remove a connection, if it is kept."""
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
        """Close the longest idle connection, if there is one, to free its file."""
        if self._all:
            next(iter(self._all)).abort()

    def close_old(self, now: float) -> None:
        """Close the connections that at `now` have been idle for too long."""
        while self._all and (oldest := next(iter(self._all))).idle_since < now - IDLE_S:
            oldest.abort()

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._all):
            connection.abort()

    def _orders(self, endpoint: Endpoint) -> list[tuple[OrderedDict[Connection, None], int]]:
        """Return the orders that contain the connections of an endpoint, the narrowest first, with their limits."""
        orders = [(self._at_address[endpoint.address], MAX_IDLE_AT)]
        if endpoint.tls:
            orders.append((self._tls, MAX_IDLE_TLS))
        return [*orders, (self._all, MAX_IDLE)]
