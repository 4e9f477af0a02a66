"""A pause of all writes on a store's servers, so that an export sees every shard at one moment.

During a pause, the servers delay all writes, and ants wait as they do for a slow server. A server has only one pause
for all its clients, and any client can end it. One process at a time owns the pause, and its connection has a name that
other processes see (``CLIENT LIST``).
"""

from __future__ import annotations

import contextlib
import random
import time
from typing import TYPE_CHECKING, Final

import redis
from redis.exceptions import RedisError

from webfountain.errors import StoreError

if TYPE_CHECKING:
    from redis.cluster import ClusterNode
    from redis.connection import Connection

    from webfountain.store.shared.connection import ServerConnection

__all__ = ["WritePause"]

PAUSE_S: Final = 60.0
"""Duration of a pause that its owner does not extend, in seconds."""
NAME: Final = "webfountain-export"
"""Name of the connection of the process that owns the pause."""
PATIENCE_S: Final = 600.0
"""Longest time to wait for another export, in seconds."""
_LONGEST_REST_S: Final = 0.5


class WritePause:
    """A context manager that pauses writes.

    Raises
    ------
    StoreError
        if another process does not end its pause, or the named connection is lost.
    """

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._client = _one_server(connection.client)
        self._named: Connection | None = None
        self._prolong_at = 0.0

    @property
    def is_held(self) -> bool:
        """True if writes are paused, False if the user has no permission for ``CLIENT PAUSE``."""
        return self._named is not None

    def __enter__(self) -> WritePause:
        try:
            self._named = self._client.connection_pool.get_connection()
            self._await_turn(self._named)
            if not self._connection.pause_writes(PAUSE_S):
                self._let_go()
        except RedisError:  # this user may not name, list or pause connections
            self._let_go()
        except BaseException:
            self._let_go()
            raise
        self._prolong_at = time.monotonic() + PAUSE_S / 4
        return self

    def prolong(self) -> None:
        """If a quarter of the pause has passed, send the servers a command that extends the pause."""
        if self._named is None or time.monotonic() < self._prolong_at:
            return
        try:
            is_ours = self._ask(self._named, "CLIENT", "GETNAME") == NAME.encode()
        except RedisError:
            is_ours = False
        if not is_ours or not self._connection.pause_writes(PAUSE_S):
            raise StoreError(f"{self._connection.shown}: the connection was lost while the store was read; try again")
        self._prolong_at = time.monotonic() + PAUSE_S / 4

    def __exit__(self, *_: object) -> None:
        if self._named is not None:
            self._connection.resume_writes()
            self._let_go()

    def _await_turn(self, named: Connection) -> None:
        """Wait until no other process owns the pause, then name this process's connection as the owner."""
        # If two processes claim the pause at once, both try again after a random time.
        until = time.monotonic() + PATIENCE_S
        while True:
            self._ask(named, "CLIENT", "SETNAME", NAME)
            if sum(each["name"] == NAME for each in self._client.client_list()) == 1:
                return
            self._ask(named, "CLIENT", "SETNAME", "")
            if time.monotonic() > until:
                raise StoreError(f"{self._connection.shown}: another export is running; wait until it ends")
            time.sleep(random.uniform(0.2, 1.0) * _LONGEST_REST_S)

    @staticmethod
    def _ask(named: Connection, *command: str) -> object:
        named.send_packed_command(named.pack_command(*command))  # type: ignore[no-untyped-call]
        return named.read_response()

    def _let_go(self) -> None:
        if self._named is None:
            return
        with contextlib.suppress(RedisError):
            self._ask(self._named, "CLIENT", "SETNAME", "")
        self._client.connection_pool.release(self._named)
        self._named = None


def _one_server(client: redis.Redis | redis.cluster.RedisCluster) -> redis.Redis:
    """Return the server on which processes see each other's connection names: in a cluster, the same primary for
    all.
    """
    if not isinstance(client, redis.cluster.RedisCluster):
        return client
    primaries: list[ClusterNode] = client.get_primaries()  # type: ignore[no-untyped-call]
    node = min(primaries, key=lambda each: str(each.name))
    return client.get_redis_connection(node)
