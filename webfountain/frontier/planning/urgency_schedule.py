"""Our own schedule: a page is due when its urgency is worth the price of a fetch.

The worker asks each active site which of its pages are (`urgent_pages`); this keeps the price, which begins as the
plan's and follows the budget (`core.price`). Beside it stands an interval for each bucket, at which a fetch of an
average page of the bucket is worth the plan's price: where there is no choice to make yet, with a budget for several
visits to every page in a period, it alone rules, shorter or longer as the price is lower or higher; else it is the net
beneath, and a page that was passed over for `PATIENCE` of these intervals is due.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.price import Price
from webfountain.store.contract import ADVANCED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.planning.plan import Plan
    from webfountain.frontier.planning.schedule import Bounds, Spending

__all__ = ["PATIENCE", "UrgencySchedule"]

PATIENCE: Final = 3.0
_SHORTEST, _LONGEST = 1 / 64, 64.0
_LEAST_PRICE_S: Final = 1e-3


class UrgencySchedule:
    """Follows a plan's budget."""

    __slots__ = ("_bounds", "_intervals", "_plan", "_planned_price", "_price", "ranks")

    def __init__(self, plan: Plan, *, bounds: Bounds, price: float | None = None, ranks: bool = False) -> None:
        """`price` is the one in force, which goes on under a new plan; `ranks`, whether urgency decides."""
        self._plan = plan
        self._bounds = bounds
        self._intervals = np.array(plan.intervals)
        self._planned_price = max(plan.price, _LEAST_PRICE_S)
        self._price = Price(self._planned_price if price is None else price)
        self.ranks = ranks

    @property
    def price(self) -> float:
        """Obsolete time, s, that a fetch must save to be made."""
        return self._price.value

    def horizon(self, site: str, at: float) -> list[float]:
        return self._bounds.lanes((at - self._intervals * self._patience()).tolist(), at)

    def due_times(self, site: str, heads: Sequence[tuple[int, float]], at: float) -> list[float]:
        patience = self._patience()
        return [order if lane >= ADVANCED else self._due(lane, order, patience) for lane, order in heads]

    def _due(self, lane: int, order: float, patience: float) -> float:
        return self._bounds.due(order, order + float(self._intervals[lane]) * patience)

    def _patience(self) -> float:
        if self.ranks:
            return PATIENCE
        # The worth of a fetch grows with the square of the time since the last, as long as that is short.
        return min(max(sqrt(self.price / self._planned_price), _SHORTEST), _LONGEST)

    def weights(self, at: float) -> Sequence[float]:
        return self._plan.weights_at(at)

    def correct(self, spending: Spending) -> None:
        self._price.adjust(planned=spending.planned, waiting=spending.waiting, short=spending.short)
