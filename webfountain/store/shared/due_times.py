"""A process's cache of the earliest due time of each shard.

With the cache, a process that finds no work sends one command instead of 256. A process queries only shards that its
own steps changed, or for which another process signalled an earlier due time (`ring`). A signal may be lost, so all
shards are queried periodically. Each process remembers in which shards its own sites may have immediate URLs
(`take_hurried`).
"""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import msgpack

from webfountain.store.shared.scripts import Script

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Collection, Iterable, Iterator

    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared.scripts import Shards

__all__ = ["ALL_AGAIN_S", "DueTimes", "scores_of"]

ALL_AGAIN_S: Final = 60.0
"""Longest time between two queries of all shards, in seconds."""


class DueTimes:
    """The cached due times of one process. Any thread may call the methods. `now` reads a monotonic clock and returns
    seconds."""

    def __init__(
        self,
        connection: ServerConnection,
        shards: Shards,
        *,
        key: bytes,
        rng: random.Random,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._shards = shards
        self._key = key
        self._rng = rng
        self._now = now
        self._lock = threading.Lock()
        self._ring = Script("ring", is_step=False)
        self._first = [math.inf] * shards.count
        self._unsure = set(range(shards.count))
        self._hurried = set(range(shards.count))
        self._last_seen = 0
        self._all_at = self._next_time()

    def ring(self, shards: Collection[int]) -> None:
        """Signal that sites in these shards are due sooner or have new immediate URLs."""
        if shards:
            packed: bytes = msgpack.packb(list(shards))
            self._ring.run(self._connection, [(self._key, [self._key], packed)])

    def begin_anew(self) -> None:
        """Clear the caches of all processes, because the server has lost steps."""
        with self._lock:
            self._unsure = set(range(self._shards.count))
            self._hurried = set(range(self._shards.count))
        self.ring(range(self._shards.count))

    def first(self) -> list[float]:
        """Return the earliest due time of each shard, or inf for a shard without sites, in one or two round trips."""
        with self._lock:
            self._listen()
            self._unsure |= self._shards.take_touched()
            if self._unsure:
                asked = sorted(self._unsure)
                heads = self._shards.ask("ZRANGE", "due", 0, 0, "WITHSCORES", shards=asked)
                for shard, head in zip(asked, heads, strict=True):
                    self._first[shard] = next((due for _, due in scores_of(head)), math.inf)
                self._unsure.clear()
            return self._first.copy()

    def hurry(self, shards: Iterable[int]) -> None:
        """Record that sites of this process may have immediate URLs in these shards."""
        with self._lock:
            self._hurried.update(shards)

    def take_hurried(self) -> list[int]:
        """Remove and return the shards recorded by `hurry` or signalled by other processes.

        If immediate URLs are left in a shard, the caller passes the shard to `hurry` again.
        """
        with self._lock:
            self._listen()
            taken, self._hurried = sorted(self._hurried), set()
            return taken

    def _listen(self) -> None:
        rung = self._rung()
        # A signal may have been lost.
        if self._now() >= self._all_at:
            self._all_at = self._next_time()
            rung = set(range(self._shards.count))
        self._unsure |= rung
        self._hurried |= rung

    def _rung(self) -> set[int]:
        """Return the shards that other processes signalled since the last call."""
        answer = self._connection.ask(self._key, "ZREVRANGEBYSCORE", self._key, "+inf", self._last_seen, "WITHSCORES")
        reported = {int(shard): int(number) for shard, number in scores_of(answer)}
        if not reported:
            if not self._last_seen:
                return set()
            self._last_seen = 0  # the server was set back
            return set(range(self._shards.count))
        before, self._last_seen = self._last_seen, max(reported.values())
        return {shard for shard, number in reported.items() if number > before}

    def _next_time(self) -> float:
        return self._now() + ALL_AGAIN_S * self._rng.uniform(0.5, 1.0)


def scores_of(answer: Any) -> Iterator[tuple[bytes, float]]:
    """Return the (name, score) pairs of a sorted set, from an answer of either protocol version: pairs or a flat
    list.
    """
    if answer and not isinstance(answer[0], list | tuple):
        answer = zip(answer[::2], answer[1::2], strict=True)
    return ((name, float(score)) for name, score in answer)
