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
    still until it is caught up with, so that nobody meets a time twice; by more than `MOST_BEHIND_S` it is left as it
    is until the next start, again with a line, for what it has written lies ahead then and is clamped at a start.
    """

    __slots__ = ("_last", "_offset", "_said")

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()
        self._last = -math.inf
        self._said = False

    def now(self) -> float:
        """UTC seconds since 1970, fractions included; never less than before."""
        steady, wall = time.monotonic(), time.time()
        step = wall - (self._offset + steady)
        if abs(step) > STEP_S:
            self._step(step, wall - steady)
        self._last = max(self._last, self._offset + steady)
        return self._last

    def _step(self, by: float, offset: float) -> None:
        if by >= -MOST_BEHIND_S:
            self._offset = offset
            self._said = False
            logger.warning("The machine's clock was set %s by %.0f s", "forward" if by > 0 else "back", abs(by))
        elif not self._said:
            self._said = True
            logger.warning(
                "The machine's clock was set back by %.0f s; this crawl goes on with the time that it was, until it is "
                "started again",
                -by,
            )


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
