"""Time is an object that is passed in: the system's clock for a crawl, a manual one for tests and simulations.

All times in the project are UTC seconds since 1970 as float; durations are seconds. The stores never read
a clock: times are their arguments.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Final, Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]

STEP_S: Final = 2.0
MOST_BEHIND_S: Final = 60.0
SLOWED: Final = 0.75

logger = logging.getLogger(__name__)


class Clock(Protocol):
    """Where "now" comes from."""

    def now(self) -> float:
        """UTC seconds since 1970."""
        ...


class SystemClock:
    """Wall time as the machine tells it, without its small steps: a reading at birth plus monotonic seconds since.

    When the machine's clock is found ahead of that by more than `STEP_S` (it was set, or the machine slept, which the
    monotonic seconds leave out), this one is set, too, with a line in the log. When it is found behind, this one stands
    still until it is caught up with, so that nobody meets a time twice. Where that would take more than `MOST_BEHIND_S`
    it goes on at `SLOWED` of its speed instead, with a line at either end: what waits for a moment then waits somewhat
    longer, never shorter, and an hour is made up for in four. It is not set at once while a crawl runs: leases, gates
    and queues hold times of before the step, which only the opening of a store puts right.
    """

    __slots__ = ("_is_slow", "_last", "_offset", "_steady")

    def __init__(self) -> None:
        self._steady = time.monotonic()
        self._offset = time.time() - self._steady
        self._last = -math.inf
        self._is_slow = False

    def now(self) -> float:
        """UTC seconds since 1970, fractions included; never less than before."""
        steady, wall = time.monotonic(), time.time()
        ahead = self._offset + steady - wall
        if self._is_slow or abs(ahead) > STEP_S:
            self._correct(ahead, since=steady - self._steady)
        self._steady = steady
        self._last = max(self._last, self._offset + steady)
        return self._last

    def _correct(self, ahead: float, *, since: float) -> None:
        """Take back some of what this clock is ahead, or all of it; `since` it was read last, monotonic seconds."""
        if ahead > (STEP_S if self._is_slow else MOST_BEHIND_S):
            if not self._is_slow:
                logger.warning(
                    "The machine's clock was set back by %.0f s; this crawl's goes slower until it is caught up with, "
                    "for %.1f h; a restart sets it at once",
                    ahead,
                    ahead / (1.0 - SLOWED) / 3600.0,
                )
            self._is_slow = True
            self._offset -= (1.0 - SLOWED) * since
            return
        self._offset -= ahead
        if self._is_slow:
            logger.warning("The machine's clock has caught up with this crawl's")
        else:
            logger.warning("The machine's clock was set %s by %.0f s", "back" if ahead > 0 else "forward", abs(ahead))
        self._is_slow = False


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
