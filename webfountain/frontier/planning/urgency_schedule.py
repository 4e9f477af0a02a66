"""The schedule of `fountain`: a page is due when its urgency reaches the price of a fetch.

The worker asks each active site for such pages (`urgent_pages`). This module keeps the price, which starts at the
plan's price and follows the budget (`core.site_urgency`). In addition each bucket has an interval at which a fetch of
an average page is worth the plan's price. If the budget allows several visits to every page per period, there is no
choice to make. Then only these intervals are used: shorter if the price is lower, longer if it is higher. Otherwise
they are a safety net: a page that was not chosen for `PATIENCE` of these intervals is due.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.fetch_price import Price
from webfountain.frontier.planning.schedule import Schedule
from webfountain.store.lanes import ADVANCED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.planning.plan import Bounds, Plan
    from webfountain.frontier.planning.schedule import Spending

__all__ = ["PATIENCE", "UrgencySchedule"]

PATIENCE: Final = 3.0
_SHORTEST, _LONGEST = 1 / 64, 64.0
_LEAST_PRICE_S: Final = 1e-3


class UrgencySchedule(Schedule):
    """Schedule of the strategy `fountain`; its price follows the plan's budget."""

    __slots__ = (
        "_bounds",
        "_horizon",
        "_intervals",
        "_is_given",
        "_made_for",
        "_plan",
        "_planned_price",
        "_price",
        "ranks",
    )

    def __init__(self, plan: Plan, *, bounds: Bounds, price: float | None = None, ranks: bool = False) -> None:
        """`price` is the current price, which continues under a new plan; `ranks` says whether urgency decides."""
        self._plan = plan
        self._bounds = bounds
        self._intervals = np.array(plan.intervals)
        self._planned_price = max(plan.price, _LEAST_PRICE_S)
        self._price = Price(self._planned_price if price is None else price)
        self._is_given = False  # whether the price is the controller's
        self.ranks = ranks
        self._made_for = (-inf, 0.0)
        self._horizon: list[float] = []

    @property
    def price(self) -> float:
        """Return the obsolete time, s, that a fetch must save."""
        return self._price.value

    @property
    def pace(self) -> float:
        return self._patience()

    def bind(self, bounds: Bounds) -> None:
        self._bounds, self._made_for = bounds, (-inf, 0.0)

    def set_price(self, price: float | None) -> None:
        """Use the controller's price. None means that there is no other controller, so the price follows the budget."""
        self._is_given = price is not None
        if price is not None:
            self._price = Price(price)

    def horizon(self, at: float) -> list[float]:
        wanted = (at, self._patience())
        if wanted != self._made_for:  # all sites of a batch are refilled at one time
            self._made_for = wanted
            self._horizon = self._bounds.lanes((at - self._intervals * wanted[1]).tolist(), at)
        return self._horizon

    def due(self, lane: int, order: float) -> float:
        if lane >= ADVANCED:
            return order
        return self._bounds.due(order, order + float(self._intervals[lane]) * self._patience())

    def _patience(self) -> float:
        if self.ranks:
            return PATIENCE
        # The gain of a fetch grows with the square of the time since the last one, as long as that is short.
        return min(max(sqrt(self.price / self._planned_price), _SHORTEST), _LONGEST)

    def weights(self, at: float) -> Sequence[float]:
        return self._plan.weights_at(at)

    def correct(self, spending: Spending) -> None:
        if self._is_given:
            return
        self._price.adjust(
            planned=spending.planned,
            waiting=spending.waiting,
            owed=spending.owed,
            short=spending.short or spending.late,
            top=spending.top,
            level=spending.level,
            is_only_limit=self._plan.goal is not None,
        )
