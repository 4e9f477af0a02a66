"""Chores: what a crawl does from time to time, each at its own interval."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from webfountain.frontier.order import Order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.frontier.batch import Batch

__all__ = ["ChoreTimer", "Chores"]


class Chores(Order):
    """The chores of one process, each with its interval in seconds. All are due at `start` first."""

    def __init__(self, chores: Sequence[tuple[float, Callable[[Batch], None]]], *, start: float) -> None:
        self._chores = tuple(chores)
        self._due = [start] * len(self._chores)
        self.due = start

    def add(self, batch: Batch) -> None:
        at = batch.at
        for i, (every_s, act) in enumerate(self._chores):
            if self._due[i] <= at:
                self._due[i] = at + every_s
                act(batch)
        self.due = min(self._due, default=inf)


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
