"""A limit on how long a process that is ending still waits for its server, in all threads.

A crawl ends within ten seconds after a signal. So its calls must not use up their ordinary time limits, and certainly
not one after the other. `EndLimit` shortens the time limits of all connections, and aborts the calls that still wait
when the time is over. `opening.ServerConnection` decides what happens to a call that fails.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from redis.connection import ConnectionPool

__all__ = ["EndLimit"]

LAST_S: Final = 0.3
"""Time limit of a call after the end, s. A server that works answers within it."""


class EndLimit:
    """The time after which calls no longer wait. There is none until `set` is called. Any thread may call its methods.

    Parameters
    ----------
    pools : returns the present connections of the process
    now : monotonic seconds
    """

    def __init__(self, pools: Callable[[], Iterable[ConnectionPool]], now: Callable[[], float]) -> None:
        self._pools = pools
        self._now = now
        self._lock = threading.Lock()
        self.at = math.inf
        """The time, on the clock `now`."""

    def set(self, seconds: float) -> None:
        """Let no call wait longer than this many seconds from now. A time later than the present one has no effect."""
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
        """Return whether the time has come."""
        return self._now() >= self.at

    def _end_calls(self) -> None:
        for pool in self._pools():
            _bound(pool, LAST_S)
            for connection in list(pool._in_use_connections):
                opened = connection._get_socket()
                if opened is not None:
                    with contextlib.suppress(OSError):  # the call has just ended by itself
                        # Not closed here: the thread that reads from it closes it when it reads the end.
                        opened.shutdown(socket.SHUT_RDWR)


def _bound(pool: ConnectionPool, seconds: float) -> None:
    """Set the time limit of a call on the connections of a pool, open and future ones."""
    limits: dict[str, Any] = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    pool.connection_kwargs.update(limits)
    for connection in [*pool._available_connections, *pool._in_use_connections]:
        for name, value in limits.items():
            setattr(connection, name, value)
        with contextlib.suppress(OSError):
            connection.update_current_socket_timeout(seconds)
