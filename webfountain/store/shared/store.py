"""The shared store: many processes on one Redis, Valkey or cluster.

Only one thread may change the store; other threads may read at the same time.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Final

from webfountain.store.shared.census import SharedCensus
from webfountain.store.shared.change_log import ShardedChangeLog
from webfountain.store.shared.due_times import DueTimes
from webfountain.store.shared.feed import ServerFeed
from webfountain.store.shared.lives import GuardedShards, ServerLives
from webfountain.store.shared.maintenance import recount_shards
from webfountain.store.shared.pages import SharedPages
from webfountain.store.shared.queues import SharedQueues
from webfountain.store.shared.sites import SharedSites
from webfountain.store.shared.transfer import server_rows
from webfountain.store.transfer_rows import Head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.store.shared.claims import SharedClaims
    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared.layout import SharedMeta, StoreKeys
    from webfountain.store.shared.maintenance import UnitUse
    from webfountain.store.shared.private import PrivateServer
    from webfountain.store.shared_contract import FeedForm
    from webfountain.store.transfer_rows import Row

__all__ = ["SharedBoard", "SharedStore"]

CLOSE_S: Final = 2.0
"""Longest time, in seconds, that `close` waits for the store's server."""
SERVER_END_S: Final = 1.5
"""Time, in seconds, that a private server gets to end after the last call to it."""


class SharedBoard:
    """Implementation of `Board` in the shared store, as one hash under `key`."""

    def __init__(self, connection: ServerConnection, lives: ServerLives, *, key: bytes) -> None:
        self._connection = connection
        self._lives = lives
        self._key = key

    def value(self, name: str) -> bytes | None:
        """Return the current value of a name, in one round trip."""
        found: bytes | None = self._connection.ask(self._key, "HGET", self._key, name)
        return found

    def put_value(self, name: str, value: bytes) -> None:
        """Publish a value, in one round trip."""
        self._connection.ask(self._key, "HSET", self._key, name, value)
        self._lives.repeat(partial(self.put_value, name, value), size=len(value), name=name)

    def settle_value(self, name: str, value: bytes) -> bytes:
        """Publish a value if there is none, in two round trips."""
        self._connection.ask(self._key, "HSETNX", self._key, name, value)
        settled = self.value(name) or value
        self._lives.repeat(partial(self.settle_value, name, settled), size=len(settled), name=name)
        return settled


class SharedStore:
    """Implementation of `FrontierStore` on a server.

    `meta` is the store's description. Through the claim `use`, this process announces which units it uses. `server` is
    a private server that ends with the store.
    """

    def __init__(
        self,
        connection: ServerConnection,
        keys: StoreKeys,
        meta: SharedMeta,
        *,
        claims: SharedClaims,
        use: UnitUse,
        server: PrivateServer | None = None,
    ) -> None:
        self.claims = claims
        self._connection = connection
        self._keys = keys
        self._meta = meta
        self._use = use
        self._server = server
        rng = random.Random()
        self.lives = lives = ServerLives(connection, meta, key=keys.meta)
        self._shards = shards = GuardedShards(connection, prefix=keys.prefix, count=meta.shards, lives=lives)
        due_times = DueTimes(connection, shards, key=keys.bell, rng=rng)
        lives.after_loss(due_times.begin_anew)
        lives.after_loss(claims.repeat)
        self.queues = SharedQueues(shards, lives, due_times, period_s=meta.period_s)
        self.sites = SharedSites(shards, lives, due_times, rng=rng)
        self.changes = ShardedChangeLog(shards, lives)
        self.pages = SharedPages(shards, lives, sites=self.sites, changes=self.changes)
        self.census = SharedCensus(shards, period_s=meta.period_s, fastest_s=meta.fastest_s)
        self.board = SharedBoard(connection, lives, key=keys.values)

    def feed(self, key: str | None = None, form: FeedForm = "list") -> ServerFeed:
        return ServerFeed(self._connection, self._keys.inbox if key is None else key.encode(), form)

    def rows(self) -> Iterator[Row]:
        """Return the content of the store, in one round trip per two thousand pages. If the server allows it, all
        writes are paused until the iterator ends.
        """
        head = Head(self._meta.collection, self._meta.period_s, self._meta.fastest_s, self.changes.name)
        return server_rows(self._connection, self._shards, head, values=self._keys.values, changes=self.changes.every())

    def recount(self) -> None:
        recount_shards(self._connection, prefix=self._keys.prefix, count=self._shards.count)

    def close(self) -> None:
        """Release claims and connections."""
        ends_at = self._connection.ends_at
        # Claims that are not dropped here expire, so closing need not wait for a server that does not answer.
        self._connection.end_within(CLOSE_S)
        self._use.end()
        self._connection.close()
        if self._server is not None:
            self._server.end_by(ends_at + SERVER_END_S)
            self._server.close()
