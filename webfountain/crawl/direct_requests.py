"""Requests for schemes other than http and https (data:, file:): they have no site, need no politeness, and wait in
memory.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.statscollectors import StatsCollector

__all__ = ["DirectRequests"]


class DirectRequests:
    """A queue in memory, counted as Scrapy counts its own."""

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats
        self._waiting: deque[Request] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: Request) -> None:
        """Queue a request."""
        self._stats.inc_value("scheduler/enqueued/memory")
        self._stats.inc_value("scheduler/enqueued")
        self._waiting.append(request)

    def take(self) -> Request | None:
        """Return the oldest request; None if there is none."""
        if not self._waiting:
            return None
        self._stats.inc_value("scheduler/dequeued/memory")
        self._stats.inc_value("scheduler/dequeued")
        return self._waiting.popleft()
