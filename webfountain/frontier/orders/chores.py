"""Chores: orders that need nothing but a timer."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from webfountain.frontier.orders.order import Order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.frontier.batch import Batch

__all__ = ["Chores"]


class Chores(Order):
    """The chores of one process, each with its interval in seconds. All are due at `start` first.

    Between two chores a batch costs one comparison.
    """

    def __init__(self, chores: Sequence[tuple[float, Callable[[Batch], None]]], *, start: float) -> None:
        self._chores = tuple(chores)
        self._due = [start] * len(self._chores)
        self._soonest = start

    def add(self, batch: Batch) -> None:
        at = batch.at
        if self._soonest > at:
            return
        for i, (every_s, act) in enumerate(self._chores):
            if self._due[i] <= at:
                self._due[i] = at + every_s
                act(batch)
        self._soonest = min(self._due, default=inf)
