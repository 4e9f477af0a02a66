"""The published values of the shared store."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared.lives import ServerLives

__all__ = ["SharedBoard"]


class SharedBoard:
    """A `Board` in one hash of a server, under `key`."""

    def __init__(self, connection: ServerConnection, lives: ServerLives, *, key: bytes) -> None:
        self._connection = connection
        self._lives = lives
        self._key = key

    def value(self, name: str) -> bytes | None:
        """Return the present value of a name. One round trip."""
        found: bytes | None = self._connection.ask(self._key, "HGET", self._key, name)
        return found

    def put_value(self, name: str, value: bytes) -> None:
        """Publish a value. One round trip."""
        self._connection.ask(self._key, "HSET", self._key, name, value)
        self._lives.repeat(partial(self.put_value, name, value), size=len(value), name=name)

    def settle_value(self, name: str, value: bytes) -> bytes:
        """Publish a value unless the name already has one. Two round trips."""
        self._connection.ask(self._key, "HSETNX", self._key, name, value)
        return self.value(name) or value
