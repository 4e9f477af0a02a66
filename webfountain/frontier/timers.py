"""Timers for recurring work: the crawl's budget spread over a period, periodic chores, and polls."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import random

__all__ = ["COUNTS", "POLLS", "POLL_INTERVAL_S", "ChoreTimer", "IdleInterval", "PollTimer", "TokenBucket"]

_BURST: Final = 0.02
"""Share of a period's capacity that may be spent at once after a pause. This makes up for a stall without a flood of
requests."""
_STALL_S: Final = 0.25
"""A stall of this length, s, is always made up for, however short the period is."""

POLL_INTERVAL_S: Final = 0.5
"""Interval, s, at which a busy process polls the store for messages from other processes."""


class TokenBucket:
    """A token bucket: `capacity` pages per `period` seconds, evenly. None: only politeness limits the rate."""

    __slots__ = ("_burst_s", "_step", "_virtual")

    def __init__(self, capacity: int | None, period: float, *, start: float) -> None:
        self._step = 0.0 if capacity is None else period / capacity
        self._burst_s = max(_BURST * period, _STALL_S, self._step)
        self._virtual = start

    def open_at(self) -> float:
        """Return the time from which one more page fits the budget."""
        return -inf if not self._step else self._virtual

    def take(self, at: float, *, share: float = 1.0) -> None:
        """Spend one page of the budget at `at`. The caller has the share `share` of the whole budget."""
        self._virtual = max(self._virtual, at - self._burst_s) + self._step / share


class ChoreTimer:
    """The timer of one periodic chore, which is due every `every_s` seconds from `start` on."""

    __slots__ = ("_due", "_every_s")

    def __init__(self, every_s: float, *, start: float) -> None:
        self._every_s = every_s
        self._due = start

    def take(self, at: float) -> bool:
        """Return whether the chore is due. If so, it counts as done now."""
        if self._due > at:
            return False
        self._due = at + self._every_s
        return True

    def hasten(self) -> None:
        """Make the chore due now."""
        self._due = -inf


class IdleInterval(NamedTuple):
    """The longest poll interval of an idle process: `each_s` times the number of processes, at most `longest_s`."""

    each_s: float
    longest_s: float


POLLS: Final = IdleInterval(1 / 8, 10.0)
"""Interval for notes, letters and sites. Up to 80 idle processes together poll eight times per second, so that a note
waits no longer with many processes than with one.
"""


COUNTS: Final = IdleInterval(1 / 16, 60.0)
"""Interval for the counts of a shared store, which are a sum over all its shards."""


class PollTimer:
    """A timer for polls of the store: twice per second while busy; while idle, the interval doubles each time, with
    jitter.

    The jitter keeps a thousand processes that became idle together from polling together.
    """

    __slots__ = ("_due", "_last", "_pause", "_rng", "_seldom")

    def __init__(self, seldom: IdleInterval, *, rng: random.Random, start: float) -> None:
        self._seldom = seldom
        self._rng = rng
        self._pause = POLL_INTERVAL_S
        self._last = -inf
        self._due = start

    def due(self, at: float, *, idle: bool, processes: int) -> bool:
        """Return whether to poll now; if so, the poll counts as done. A process that is no longer idle does not wait
        for the end of its pause.
        """
        if not idle:
            self._pause = POLL_INTERVAL_S
            self._due = min(self._due, self._last + POLL_INTERVAL_S)
        if self._due > at:
            return False
        more = self._pause - POLL_INTERVAL_S
        self._last, self._due = at, at + POLL_INTERVAL_S + (more * self._rng.uniform(0.5, 1.0) if more else 0.0)
        longest = max(min(self._seldom.each_s * processes, self._seldom.longest_s), POLL_INTERVAL_S)
        self._pause = min(2 * self._pause, longest)
        return True
