"""Our own schedule: the pages that are most urgent by the watch, and behind it an interval per bucket.

`watch` makes due what buys the most freshness, as much as the plan's budget will fetch until it looks again. Sites that
it does not know go by their buckets: the budget sets a price of a fetch, and each bucket gets the interval at which
a fetch is worth it (`core.forecast`). That price follows the budget: what is not spent makes these intervals shorter,
what is overspent longer, so that the capacity is used. On a watched site they are the net beneath: a page that the
watch passed over for `PATIENCE` of them is due.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.frontier.planning.schedule import LOOKS_PER_PERIOD, Wanted
from webfountain.store.contract import ADVANCED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.frontier.planning.plan import Plan
    from webfountain.frontier.planning.schedule import Bounds

__all__ = ["PATIENCE", "FountainSchedule"]

PATIENCE: Final = 3.0
_SHORTEST, _LONGEST = 1 / 64, 64.0
_LOOK_S: Final = 0.005
"""Time, for each watched site, between two looks at least: a look costs a millisecond a site."""
_AHEAD_S: Final = 0.2
"""Fetches are made due at least so long ahead, s, so that no store call stands between two of them."""


class FountainSchedule:
    """Follows a plan's budget. `watched` tells whether the watch knows a site, `sites` how many it knows."""

    __slots__ = ("_bounds", "_gain", "_intervals", "_look_at", "_plan", "_sites", "_unspent", "_watched")

    def __init__(self, plan: Plan, *, bounds: Bounds, watched: Callable[[str], bool], sites: Callable[[], int]) -> None:
        self._plan = plan
        self._bounds = bounds
        self._watched = watched
        self._sites = sites
        self._intervals = np.array(plan.intervals)
        self._gain = 1.0
        self._unspent = False  # whether new pages wait that cannot be had, so that known ones may have their fetches
        self._look_at = -inf

    def horizon(self, site: str, at: float) -> list[float]:
        return self._bounds.lanes((at - self._intervals * self._patience(site)).tolist(), at)

    def due_times(self, site: str, heads: Sequence[tuple[int, float]], at: float) -> list[float]:
        patience = self._patience(site)
        return [order if lane >= ADVANCED else self._due(lane, order, patience) for lane, order in heads]

    def _due(self, lane: int, order: float, patience: float) -> float:
        return self._bounds.due(order, order + float(self._intervals[lane]) * patience)

    def _patience(self, site: str) -> float:
        return PATIENCE if self._watched(site) else self._gain

    def weights(self, at: float) -> Sequence[float]:
        return self._plan.weights_at(at)

    def wanted(self, at: float, *, starved: bool) -> Wanted | None:
        """A look is due by the clock, and sooner when the ant runs out of due pages."""
        plan, period = self._plan, self._plan.period_at(at)
        look_s = max(plan.period / LOOKS_PER_PERIOD, _LOOK_S * self._sites())
        if at < self._look_at - (0.9 * look_s if starved else 0.0):
            return None
        self._look_at = at + look_s
        ahead = max(look_s, _AHEAD_S)
        known = plan.recrawl[period]
        every = 1.0 + ahead / plan.period * (known + plan.fresh[period])
        return Wanted(every, every if self._unspent else 1.0 + ahead / plan.period * known, ahead)

    def correct(self, factor: float) -> None:
        self._unspent = factor < 1.0
        self._gain = float(np.clip(self._gain * factor, _SHORTEST, _LONGEST))
