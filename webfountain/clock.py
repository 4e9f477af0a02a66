"""Clocks for the code that needs the time: the system's clock for a crawl, a manual clock for tests and simulations.

All times in the project are UTC seconds since 1970 (float), and durations are seconds. No store reads a clock: stores
get times as arguments.
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
    """Source of the current time."""

    def now(self) -> float:
        """Return UTC seconds since 1970."""
        ...


class SystemClock:
    """A clock that follows the machine's clock, but ignores small corrections and never goes back.

    The clock starts at the machine's time, and then counts monotonic seconds. If the machine slept, or if somebody sets
    its clock forward by more than `STEP_S`, this clock follows and logs a line.

    If somebody sets the machine's clock back by at most `MOST_BEHIND_S`, this clock stops until the machine's clock has
    caught up. If the machine's clock is set back by more than `MOST_BEHIND_S`, this clock runs slower until the two
    clocks agree. For example, if the machine's clock was set back by one hour, both clocks agree after four hours.
    While this clock runs slower, delays between requests are longer.

    Time must not go back during a crawl, because leases and queues contain times that this clock has returned.
    """

    __slots__ = ("_is_slow", "_last", "_offset", "_steady")

    def __init__(self) -> None:
        self._steady = time.monotonic()
        self._offset = time.time() - self._steady
        self._last = -math.inf
        self._is_slow = False

    def now(self) -> float:
        """Return UTC seconds since 1970, with fractions; never less than at an earlier call."""
        steady, wall = time.monotonic(), time.time()
        ahead = self._offset + steady - wall
        if self._is_slow or abs(ahead) > STEP_S:
            self._correct(ahead, since=steady - self._steady)
        self._steady = steady
        self._last = max(self._last, self._offset + steady)
        return self._last

    def _correct(self, ahead: float, *, since: float) -> None:
        """Correct this clock, which is `ahead` seconds ahead of the machine's clock and was last read `since` seconds
        ago.
        """
        if ahead > (STEP_S if self._is_slow else MOST_BEHIND_S):
            if not self._is_slow:
                logger.warning(
                    "The machine's clock was set back by %.0f s. The crawl's clock runs slower for %.1f h until "
                    "both agree; a restart corrects it at once",
                    ahead,
                    ahead / (1.0 - SLOWED) / 3600.0,
                )
            self._is_slow = True
            self._offset -= (1.0 - SLOWED) * since
            return
        self._offset -= ahead
        if self._is_slow:
            logger.warning("The clocks of the machine and of the crawl agree again")
        else:
            logger.warning(
                "The machine's clock was set %s by %.0f s; the crawl uses the new time",
                "back" if ahead > 0 else "forward",
                abs(ahead),
            )
        self._is_slow = False


class ManualClock:
    """A clock that moves only when it is set, so a test can simulate years in milliseconds."""

    __slots__ = ("_now",)

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Return the current time of this clock."""
        return self._now

    def advance(self, seconds: float) -> float:
        """Move forward by `seconds` (>= 0) and return the new time."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {seconds} s")
        self._now += seconds
        return self._now

    def set(self, at: float) -> None:
        """Set the time to `at`, which must not be earlier than the current time."""
        self.advance(at - self._now)
