"""An outage of the store's server, which a process logs in two lines: one at the beginning, one at the end.

Several threads of a process use the server (batches, heartbeats, the display) and see the outage at the same time.
Moving a cluster slot is not an outage, and is logged only if it takes long.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from redis.exceptions import AskError, MovedError, TryAgainError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Outage"]

logger = logging.getLogger(__name__)

MOVE_S: Final = 2.0
"""Time after which moving a slot is logged, s."""
_MOVES: Final = (MovedError, AskError, TryAgainError)


class Outage:
    """The present outage of one server, if there is one. Any thread may call its methods.

    `shown` is the server's address without a password, `now` monotonic seconds.
    """

    def __init__(self, shown: str, now: Callable[[], float]) -> None:
        self._shown = shown
        self._now = now
        self._lock = threading.Lock()
        self._waiting: set[int] = set()
        self._since = 0.0
        self._is_said = False

    def wait(self, fault: Exception, line: str) -> None:
        """Record that this thread waits because of a fault. `line` is the fault as one line."""
        with self._lock:
            now = self._now()
            if not self._waiting:
                self._since = now
            self._waiting.add(threading.get_ident())
            if self._is_said or (isinstance(fault, _MOVES) and now - self._since < MOVE_S):
                return
            self._is_said = True
        logger.warning("The store at %s cannot be used; waiting for it: %s", self._shown, line)

    def end(self) -> None:
        """Record that this thread received an answer. The outage is over when no thread waits any longer."""
        with self._lock:
            self._waiting.discard(threading.get_ident())
            if self._waiting or not self._is_said:
                return
            self._is_said = False
            seconds = self._now() - self._since
        logger.warning("The store at %s answers again after %.1f s", self._shown, seconds)

    def give_up(self) -> None:
        """Record that this thread stopped waiting without an answer."""
        with self._lock:
            self._waiting.discard(threading.get_ident())
