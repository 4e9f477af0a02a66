"""Time is an object that is passed in: the system's clock for a crawl, a manual one for tests and simulations.

All times in the project are UTC seconds since 1970 as float; durations are seconds. The stores never read
a clock: times are their arguments.
"""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """Where "now" comes from."""

    def now(self) -> float:
        """UTC seconds since 1970."""
        ...


class SystemClock:
    """Wall time that never runs backwards: the wall clock at birth plus monotonic seconds since.

    A step of the machine's clock (NTP, a person) must not make pages due twice or never.
    """

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """UTC seconds since 1970, fractions included."""
        return self._offset + time.monotonic()


class ManualClock:
    """A clock that moves only when told: years pass in a test within milliseconds."""

    __slots__ = ("_now",)

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """The time that was last set."""
        return self._now

    def advance(self, seconds: float) -> float:
        """Move forward by `seconds` (>= 0) and return the new time."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {seconds} s")
        self._now += seconds
        return self._now

    def set(self, at: float) -> None:
        """Jump to `at`, which is not before now."""
        self.advance(at - self._now)
