"""Keep the process below its limit of open files: each connection is counted before its file is opened.

If the limit is reached, a new connection waits. Some files, which are not counted, are reserved for the store, WARC
files and the resolver.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FileLimit", "spare_files"]

COUNT_S: Final = 1.0
"""Shortest time between two counts of the process's open files, in seconds."""


class FileLimit:
    """Counts the files that connections use, and makes connections wait at the limit. `spare` returns how many more
    files may be opened now.

    Invariant: `open` is the number of connections that have opened a file or may open one.
    """

    def __init__(self, spare: Callable[[], int]) -> None:
        self._spare = spare
        self.open = 0
        self._most = 0
        self._counted_at = -COUNT_S
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def reserve(self) -> asyncio.Future[None] | None:
        """Count a new connection. If no file is free, return a future that is resolved when the connection may open
        one.
        """
        if self.open >= self._most:
            self._count()
        if self.open < self._most and not self._waiting:
            self.open += 1
            return None
        self._waiting.append(asyncio.get_running_loop().create_future())
        return self._waiting[-1]

    def withdraw(self, turn: asyncio.Future[None]) -> None:
        """Stop waiting for the future `turn`, which `reserve` returned."""
        if turn.cancelled():
            self._waiting.remove(turn)
        else:
            self.release()

    def release(self) -> None:
        """Record that a connection was closed, so that a waiting connection may be opened."""
        self.open -= 1
        self._admit()

    def refuse(self) -> None:
        """Record that the system refused to open a file. New connections wait until the open files have been counted
        again.
        """
        self._most, self._counted_at = self.open - 1, time.monotonic()

    def recount(self) -> None:
        """Count the open files if the limit is near, and admit waiting connections."""
        if self._waiting or 2 * self.open > self._most:
            self._count()
            self._admit()

    def admit_all(self) -> None:
        """Let all connections stop waiting, because their exchanges have ended."""
        self._admit(len(self._waiting))

    def _admit(self, most: int = 0) -> None:
        """Let waiting connections open their files while files are free, and `most` connections in any case."""
        while self._waiting and (self.open < self._most or most > 0):
            self.open += 1
            most -= 1
            self._waiting.popleft().set_result(None)

    def _count(self) -> None:
        now = time.monotonic()
        if now - self._counted_at >= COUNT_S:
            self._counted_at = now
            # One connection is always allowed; otherwise nothing would ever be fetched. The system may still refuse it.
            self._most = max(1, self.open + self._spare())


def spare_files() -> int:
    """Return how many files are free for connections, without those reserved for the store, WARC files and the
    resolver.
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
