"""Our own schedule: the most urgent pages first, and behind them an interval per bucket.

`urgent_pages` makes due what buys the most freshness, as much as the plan's budget will fetch until it chooses again.
Sites that it does not rank go by their buckets: the budget sets a price of a fetch, and each bucket gets the interval
at which a fetch is worth it (`core.forecast`). That price follows the budget: what is not spent makes these intervals
shorter, what is overspent longer, so that the capacity is used. On a ranked site they are the net beneath: a page that
was passed over for `PATIENCE` of them is due.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.frontier.planning.schedule import CHOICES_PER_PERIOD, Wanted
from webfountain.store.contract import ADVANCED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.planning.plan import Plan
    from webfountain.frontier.planning.schedule import Bounds

__all__ = ["PATIENCE", "UrgencySchedule"]

PATIENCE: Final = 3.0
_SHORTEST, _LONGEST = 1 / 64, 64.0
_CHOICE_S: Final = 0.005
"""Time, for each ranked site, between two choices at least: one costs a millisecond a site."""
_AHEAD_S: Final = 0.2
"""Fetches are made due at least so long ahead, s, so that no store call stands between two of them."""


class UrgencySchedule:
    """Follows a plan's budget. `ranked` are the sites whose pages are ranked by urgency, as the worker said last."""

    __slots__ = ("_bounds", "_choose_at", "_gain", "_intervals", "_plan", "_unspent", "ranked")

    def __init__(self, plan: Plan, *, bounds: Bounds, ranked: frozenset[str]) -> None:
        self._plan = plan
        self._bounds = bounds
        self.ranked = ranked
        self._intervals = np.array(plan.intervals)
        self._gain = 1.0
        self._unspent = False  # whether new pages wait that cannot be had, so that known ones may have their fetches
        self._choose_at = -inf

    def horizon(self, site: str, at: float) -> list[float]:
        return self._bounds.lanes((at - self._intervals * self._patience(site)).tolist(), at)

    def due_times(self, site: str, heads: Sequence[tuple[int, float]], at: float) -> list[float]:
        patience = self._patience(site)
        return [order if lane >= ADVANCED else self._due(lane, order, patience) for lane, order in heads]

    def _due(self, lane: int, order: float, patience: float) -> float:
        return self._bounds.due(order, order + float(self._intervals[lane]) * patience)

    def _patience(self, site: str) -> float:
        return PATIENCE if site in self.ranked else self._gain

    def weights(self, at: float) -> Sequence[float]:
        return self._plan.weights_at(at)

    def wanted(self, at: float, *, starved: bool) -> Wanted | None:
        """A choice is due by the clock, and sooner when the ant runs out of due pages."""
        plan, period = self._plan, self._plan.period_at(at)
        every_s = max(plan.period / CHOICES_PER_PERIOD, _CHOICE_S * len(self.ranked))
        if at < self._choose_at - (0.9 * every_s if starved else 0.0):
            return None
        self._choose_at = at + every_s
        ahead = max(every_s, _AHEAD_S)
        known = plan.recrawl[period]
        alone = 1.0 + ahead / plan.period * (known + plan.fresh[period])
        return Wanted(alone, alone if self._unspent else 1.0 + ahead / plan.period * known, ahead)

    def correct(self, factor: float) -> None:
        self._unspent = factor < 1.0
        self._gain = float(np.clip(self._gain * factor, _SHORTEST, _LONGEST))
