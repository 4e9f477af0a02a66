"""What recurs, and how fast: the crawl's budget spread over a period, and the chores that come round by the clock."""

from __future__ import annotations

from math import inf
from typing import Final

from webfountain.frontier.sites.site_robots import ROBOTS_LIFE_S

__all__ = ["Agenda", "Pace", "chores"]

_BURST: Final = 0.02
"""Share of a period's capacity that may go out at once after a pause, so that a stall is made up for, not a flood."""
_STALL_S: Final = 0.25
"""A stall of this length is always made up for, however short the period."""


class Pace:
    """`capacity` pages per `period` seconds, evenly: a token bucket. None: as fast as politeness allows."""

    __slots__ = ("_burst_s", "_step", "_virtual")

    def __init__(self, capacity: int | None, period: float, *, start: float) -> None:
        self._step = 0.0 if capacity is None else period / capacity
        self._burst_s = max(_BURST * period, _STALL_S, self._step)
        self._virtual = start

    def open_at(self) -> float:
        """From when on one more page fits the budget."""
        return -inf if not self._step else self._virtual

    def take(self, at: float) -> None:
        """Spend one page of the budget at `at`."""
        self._virtual = max(self._virtual, at - self._burst_s) + self._step


class Agenda:
    """Chores by the clock: each name has an interval and is due when that has passed since it was last done."""

    __slots__ = ("_due", "_every")

    def __init__(self, every: dict[str, float], *, start: float) -> None:
        self._every = every
        self._due = dict.fromkeys(every, start)

    def due(self, name: str, at: float) -> bool:
        """Whether the chore is due; if so it counts as done now."""
        if self._due[name] > at:
            return False
        self._due[name] = at + self._every[name]
        return True


def chores(lease_s: float, period_s: float) -> dict[str, float]:
    """What recurs by the clock in a crawl, and how often, s: site leases last `lease_s`, a period `period_s`."""
    return {
        "inbox": 0.5,
        "renew": lease_s / 3,
        "tidy": max(period_s, 60.0),
        "robots": ROBOTS_LIFE_S / 100,
        "waiting": 2.0,
    }
