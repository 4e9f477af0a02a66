"""Limit the time of an exchange by a deadline and a minimum rate of the body."""

from __future__ import annotations

import time
from math import inf
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from webfountain.download.bad_response import ErrorWord

__all__ = ["ExchangeTime", "TimeLimits"]


class TimeLimits(NamedTuple):
    """Limits for a slow peer: a time for the whole exchange, in seconds, and a minimum rate of the body, in bytes per
    second.

    If `least_rate` is None, there is no minimum rate.
    """

    timeout: float
    least_rate: float | None

    @property
    def window(self) -> float:
        """Length of the time windows in which the rate is measured, in seconds."""
        return min(10.0, self.timeout / 3)


class ExchangeTime:
    """The clock of one exchange, which runs from `start`, but stands still between `pause` and `resume`."""

    __slots__ = ("_left_s", "_limits", "_paused_at", "_window_end", "_window_taken", "deadline", "started")

    def __init__(self, limits: TimeLimits) -> None:
        self._limits = limits
        self._paused_at = self._left_s = self._window_end = 0.0
        self._window_taken = 0
        self.start()

    def start(self) -> None:
        """Start the clock now."""
        self.started = time.monotonic()
        self.deadline = self.started + self._limits.timeout

    def stop(self) -> None:
        """Remove the deadline until the next `start`."""
        self.deadline = inf

    def left(self) -> float:
        """Return the seconds until the deadline, or 0.0 after the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def pause(self) -> None:
        """Stop the clock while the connection is not read."""
        self._paused_at = time.monotonic()
        self._left_s, self.deadline = self.deadline - self._paused_at, inf
        self._window_end = inf

    def resume(self) -> None:
        """Resume the clock; the time of the pause does not count."""
        now = time.monotonic()
        self.started += now - self._paused_at
        self.deadline = now + self._left_s
        self._window_end = 0.0

    def late(self, now: float, taken: int | None) -> ErrorWord | None:
        """Return an error word if the exchange is too slow at `now`, else None.

        `taken` is the number of received bytes of the body, or None before the head is complete. The error word is
        "too-slow" if there is a minimum rate and the response's head is complete, else "timeout".
        """
        rate = self._limits.least_rate
        if now >= self.deadline:
            return "timeout" if taken is None or rate is None else "too-slow"
        if taken is None or rate is None or now < self._window_end:
            return None
        window = self._limits.window
        if self._window_end and taken - self._window_taken < rate * window:
            return "too-slow"
        self._window_end, self._window_taken = now + window, taken
        return None
