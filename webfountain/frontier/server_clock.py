"""The clock of an ant: its machine's clock, corrected by the time of the shared server.

All ants of a store must have the same time, because leases, claims and delays apply to all of them. In a test, an ant
with a clock 3 s ahead took sites that other ants were crawling. An ant compares its clock with the server's clock at
the start and with each heartbeat. If the two clocks differ by more than a fifth of the heartbeat interval, the ant uses
the server's time; the margin of each lease (`term.MARGIN`) covers smaller differences.
"""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Final

from webfountain.errors import WebfountainError

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.clock import Clock

__all__ = ["ServerClock"]

logger = logging.getLogger(__name__)

TOLERANCE: Final = 0.2
"""Largest tolerated difference between the ant's clock and the server's, as a share of the heartbeat interval."""
MOST_BACK_S: Final = 60.0
"""If the server's clock is set back, the ant's time stands still until that clock has caught up. If the server's clock
is set back by more than this, in seconds, the ant ends.
"""


class ServerClock:
    """A `Clock` for any thread: the time of `machine`, plus a difference that `compare` finds.

    Parameters
    ----------
    server_time : UTC seconds by the server's clock
    heartbeat_s : heartbeat of the ants, seconds
    steady : monotonic seconds
    """

    def __init__(
        self,
        machine: Clock,
        server_time: Callable[[], float],
        *,
        heartbeat_s: float,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._machine = machine
        self._server_time = server_time
        self._tolerance_s = TOLERANCE * heartbeat_s
        self._steady = steady
        self._offset = 0.0
        self._last = -math.inf

    def now(self) -> float:
        """Return the current time, UTC seconds, which never decreases."""
        self._last = max(self._last, self._machine.now() + self._offset)
        return self._last

    def compare(self) -> None:
        """Ask the server for its time in one round trip, and use that time if the ant's clock differs too much.

        Raises
        ------
        WebfountainError
            if the server's time is more than `MOST_BACK_S` behind this clock.
        """
        began = self._steady()
        server = self._server_time()
        round_trip_s = self._steady() - began
        # The server read its clock at an unknown moment of the round trip, so a difference of half a round trip means
        # nothing.
        ahead = self._machine.now() + self._offset - (server + 0.5 * round_trip_s)
        if abs(ahead) <= self._tolerance_s + 0.5 * round_trip_s:
            return
        if ahead > MOST_BACK_S and self._last > -math.inf:
            raise WebfountainError(
                f"the clock of the store's server was set back by {ahead:.0f} s; start the crawl again"
            )
        self._offset -= ahead
        off = -self._offset
        logger.warning(
            "The clock of this machine is %.1f s %s that of the store's server; the crawl uses the server's time",
            abs(off),
            "ahead of" if off > 0 else "behind",
        )
