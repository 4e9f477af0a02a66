"""The timer that wakes the engine when the frontier may have something to fetch.

Without it an idle engine calls its scheduler only every five seconds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from webfountain.crawl import engine

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from webfountain.frontier.frontier import Frontier
    from webfountain.metrics import Metrics

__all__ = ["WakeTimer"]

_SAME_S = 0.001


class WakeTimer:
    """A timer that is set when nothing may be fetched now, and after each landing."""

    def __init__(self, crawler: Crawler, frontier: Frontier, metrics: Metrics) -> None:
        self._crawler = crawler
        self._frontier = frontier
        self._metrics = metrics
        self._handle: asyncio.TimerHandle | None = None
        self._is_closed = False

    def set(self) -> None:
        """Set the timer to wake the engine when the frontier may have something."""
        at = self._frontier.wake_at()
        if at is None or self._is_closed:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + max(0.0, at - self._frontier.now())
        if self._handle is not None:
            if self._handle.when() <= when + _SAME_S and not self._handle.cancelled():
                return
            self._handle.cancel()
        self._handle = loop.call_at(when, self._wake)

    def close(self) -> None:
        """Stop the timer."""
        self._is_closed = True
        if self._handle is not None:
            self._handle.cancel()

    def _wake(self) -> None:
        self._handle = None
        self._metrics.inc("scheduler/woken")
        engine.wake(self._crawler)
