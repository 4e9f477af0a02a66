"""An outage of the store's server: its log lines, and a limit for waiting in a process that is about to end.

An outage is logged in two lines, at its beginning and at its end, for all threads of the process together. A move of a
cluster slot is logged only if it takes longer than `MOVE_S` seconds.

`EndLimit` limits how long calls wait for the server, so that a crawl ends within ten seconds after a signal.
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from redis.exceptions import AskError, MovedError, TryAgainError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from redis.connection import ConnectionPool

__all__ = ["EndLimit", "Outage"]

logger = logging.getLogger(__name__)

MOVE_S: Final = 2.0
"""Time in seconds after which an unfinished move of a cluster slot is logged."""
_MOVES: Final = (MovedError, AskError, TryAgainError)

LAST_S: Final = 0.3
"""Time limit, in seconds, of a call once the limit of `EndLimit` has passed: enough for a working server."""


class Outage:
    """The current outage of one server, if there is one. Any thread may call the methods.

    `shown` is the server's address without a password.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._now = time.monotonic
        self._lock = threading.Lock()
        self._waiting: set[int] = set()
        self._since = 0.0
        self._is_said = False

    def wait(self, fault: Exception, line: str) -> None:
        """Record that this thread waits because of a fault. `line` describes the fault in one line."""
        with self._lock:
            now = self._now()
            if not self._waiting:
                self._since = now
            self._waiting.add(threading.get_ident())
            if self._is_said or (isinstance(fault, _MOVES) and now - self._since < MOVE_S):
                return
            self._is_said = True
        logger.warning("The store at %s does not answer; waiting for it: %s", self._shown, line)

    def end(self) -> None:
        """Record that this thread received an answer. The outage ends when no thread waits for the server."""
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


class EndLimit:
    """The time until which calls to the server may wait. Before the first call of `set`, calls may wait without limit.
    Any thread may call the methods.

    Parameters
    ----------
    pools : returns the current connections of the process
    """

    def __init__(self, pools: Callable[[], Iterable[ConnectionPool]]) -> None:
        self._pools = pools
        self._now = time.monotonic
        self._lock = threading.Lock()
        self.at = math.inf
        """The time until which calls may wait, in monotonic seconds."""

    def set(self, seconds: float) -> None:
        """Let all calls wait for at most `seconds` from now, unless the current limit is earlier."""
        with self._lock:
            if self._now() + seconds >= self.at:
                return
            self.at = self._now() + seconds
        for pool in self._pools():
            _bound(pool, max(seconds, LAST_S))
        timer = threading.Timer(seconds, self._end_calls)
        timer.daemon = True
        timer.start()

    @property
    def is_over(self) -> bool:
        """True when calls may no longer wait for the server."""
        return self._now() >= self.at

    def _end_calls(self) -> None:
        for pool in self._pools():
            _bound(pool, LAST_S)
            for connection in list(pool._in_use_connections):
                opened = connection._get_socket()
                if opened is not None:
                    with contextlib.suppress(OSError):  # the call has just ended by itself
                        # The socket is not closed here: the thread that reads from it closes it when it reads the end.
                        opened.shutdown(socket.SHUT_RDWR)


def _bound(pool: ConnectionPool, seconds: float) -> None:
    """Set the time limit of a call on all open and future connections of a pool."""
    limits: dict[str, Any] = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    pool.connection_kwargs.update(limits)
    for connection in [*pool._available_connections, *pool._in_use_connections]:
        for name, value in limits.items():
            setattr(connection, name, value)
        with contextlib.suppress(OSError):
            connection.update_current_socket_timeout(seconds)
