"""Limit the bodies of one site that wait to be read.

A body that has landed stays in memory until a reader thread has read it. If a site's pages take longer to read than to
fetch, its bodies would fill the memory until the whole crawl stops sending requests. So each site has its own limit.
Place in the walk: between a site's gate and its hand. This module only counts; `pages.reader_turns` decides which body
is read next.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from webfountain.frontier.sites.sequencers import Sequencer

__all__ = ["MAX_UNREAD", "UnreadBodies"]

T = TypeVar("T")
MAX_UNREAD: Final = 2
"""Largest number of bodies of one site that wait or are being read: one is read, the next is ready."""


class UnreadBodies(Generic[T]):
    """A sequencer that returns nothing while its site has `MAX_UNREAD` unread bodies."""

    __slots__ = ("_inner", "_unread")

    def __init__(self, inner: Sequencer[T]) -> None:
        self._inner = inner
        self._unread = 0

    def add(self) -> None:
        """Count a body that waits to be read."""
        self._unread += 1

    def remove(self) -> None:
        """Count a body as read, once for each that was added."""
        self._unread -= 1

    def backlog(self) -> int:
        return self._inner.backlog()

    def wake_at(self) -> float:
        return self._inner.wake_at() if self._unread < MAX_UNREAD else inf

    def hurry_at(self) -> float:
        return self._inner.hurry_at() if self._unread < MAX_UNREAD else inf

    def worth(self) -> float:
        return self._inner.worth()

    def next(self, at: float) -> T | None:
        return self._inner.next(at) if self._unread < MAX_UNREAD else None

    def flush(self) -> list[T]:
        return self._inner.flush()
