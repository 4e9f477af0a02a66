"""Feeds on a server: lists of notes to a crawl, or of start URLs as in scrapy-redis.

Any client may add entries, and exactly one process takes each entry. A process calls `done` when it has stored the
effect of an entry. If `done` is not called for an entry in time, another process takes the entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.store.shared.scripts import Script
from webfountain.store.shared_contract import FeedEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared_contract import FeedForm

__all__ = ["ServerFeed"]

_SIZE: Final[dict[str, str]] = {"list": "LLEN", "set": "SCARD", "zset": "ZCARD"}


class ServerFeed:
    """Implementation of `Feed` under one key of a server."""

    def __init__(self, connection: ServerConnection, key: bytes, form: FeedForm = "list") -> None:
        self._connection = connection
        self._key = key
        self._form = form
        # The slot of a key depends on the text in its first braces, or on the whole key if it has none.
        has_tag = b"}" in key.partition(b"{")[2][1:]
        self._taken = (key if has_tag else b"{" + key + b"}") + b":taken"
        self._take = Script("take", is_step=False)

    def put(self, entries: Sequence[bytes]) -> None:
        if entries:
            self._connection.ask(self._key, "RPUSH", self._key, *entries)

    def take(self, n: int, *, until: float, at: float) -> list[FeedEntry]:
        given = (self._form, n, repr(until), repr(at))
        [answer] = self._take.answers(self._connection, [(self._key, (self._key, self._taken), given)])
        return [FeedEntry(name, data) for name, data in self._connection.checked(answer)]

    def done(self, taken: Sequence[FeedEntry]) -> None:
        if taken:
            self._connection.ask(self._key, "ZREM", self._taken, *[each.name for each in taken])

    def waiting(self) -> int:
        size = (self._key, (_SIZE[self._form], self._key)), (self._key, ("ZCARD", self._taken))
        return sum(int(answer) for answer in self._connection.ask_all(size))
