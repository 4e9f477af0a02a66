"""Measure the term of an ant, during which all its leases and claims are valid.

Each heartbeat extends the term. The ant checks the term before each request, and sends no requests after its end. The
term is measured with a clock that keeps running while the process is stopped. `TermGuard` aborts transfers before
another ant may fetch the same pages. The guard is a timer of the event loop, because the store or the worker thread may
hang. A lone ant has no term.
"""

from __future__ import annotations

import asyncio
import logging
import time
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LEASE_BEATS", "Term", "TermGuard", "steady_clock"]

logger = logging.getLogger(__name__)
CHECK_S: Final = 0.1
"""Longest time between two checks of the term, in seconds."""
SHORTEST_S: Final = 0.005
LEASE_BEATS: Final = 1.9
"""Leases last this many heartbeat intervals, so that one heartbeat may fail."""
MARGIN: Final = 0.2
"""Share of the heartbeat interval, at the end of a term, in which an ant sends no requests because clocks differ."""
_BOOT: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


class TermGuard:
    """Aborts all transfers when the term is over.

    Parameters
    ----------
    left_s : returns the seconds left in the term; 0 or less: it is over
    cut : ends all transfers of this process at once
    """

    def __init__(self, left_s: Callable[[], float], cut: Callable[[], None]) -> None:
        self._left_s = left_s
        self._cut = cut
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False

    def start(self) -> None:
        """Start the guard. Call this method in the loop thread."""
        self._check()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        left = self._left_s()
        # Schedule the next check first, because an error in a receiver must not end the guard.
        pause = CHECK_S if left <= 0.0 else min(max(left, SHORTEST_S), CHECK_S)
        self._timer = asyncio.get_running_loop().call_later(pause, self._check)
        was_over, self._is_over = self._is_over, left <= 0.0
        if self._is_over and not was_over:
            logger.warning("The store did not answer in time. Other ants may take the sites, so all transfers are cut")
            self._cut()
        elif was_over and not self._is_over:
            logger.info("The store answers again. The crawl continues with the sites that no other ant has taken")


def steady_clock() -> float:
    """Return the time, in seconds, of a clock that is never set back and keeps running while the process is stopped."""
    return time.clock_gettime(_BOOT) if _BOOT is not None else time.monotonic()


class Term:
    """The current term, measured with the steady clock.

    Invariant: no lease or claim in use ends before the term ends.
    """

    def __init__(self, heartbeat_s: float, *, steady: Callable[[], float] = steady_clock) -> None:
        self.lease_s = LEASE_BEATS * heartbeat_s
        """Duration of site leases and claims, in seconds."""
        self._margin_s = MARGIN * heartbeat_s
        self._steady = steady
        self._ends = steady() + self.lease_s
        self._lapsed_at = -inf
        self._lock = Lock()  # `lapse` is called in any thread

    def now(self) -> float:
        """Return the time of the steady clock."""
        return self._steady()

    def left_s(self) -> float:
        """Return for how many more seconds fetches may run, 0 or less after the end of the term."""
        return self._ends - self._margin_s - self._steady()

    def hold_until(self, until: float, *, at: float) -> bool:
        """Make the term end no later than `until`, UTC seconds, when a new lease ends.

        If the new lease came too late to be used, change nothing and return False.
        """
        ends = self._steady() + until - at
        if ends - self._margin_s <= self._steady():
            return False
        self._ends = min(self._ends, ends)
        return True

    def bound(self, until: float, *, at: float) -> None:
        """Make the term end no later than `until`, UTC seconds, even if this time is past."""
        self._ends = min(self._ends, self._steady() + until - at)

    def lapse(self) -> None:
        """End the term now, because other ants may hold this ant's claims. A new term begins only with a heartbeat that
        starts after this call.
        """
        with self._lock:
            self._lapsed_at = self._steady()
            self._ends = min(self._ends, self._lapsed_at)

    def renew(self, began: float) -> None:
        """Begin a new term after a heartbeat that began at `began` on the steady clock."""
        with self._lock:
            if began >= self._lapsed_at:
                self._ends = began + self.lease_s
