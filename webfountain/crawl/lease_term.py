"""Cut transfers when an ant's lease term ends, before another ant may fetch their pages.

Until the end of the term (`frontier.cluster.membership`), this process certainly holds its leases. The term ends when
heartbeats do not reach the store. So this module must not wait for the store or the worker thread: a timer of the
event loop cuts the transfers, and their pages go back to their queues. It does not renew leases.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TermGuard"]

logger = logging.getLogger(__name__)

CHECK_S: Final = 0.1
"""Longest time between two checks, s. A lease that came late may end the term earlier than was known."""
SHORTEST_S: Final = 0.005


class TermGuard:
    """Cuts transfers when the term is over, once each time that it ends.

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
        """Start the guard. Call it in the loop thread."""
        self._check()

    def stop(self) -> None:
        """Stop the guard. A second call has no effect."""
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
