"""Our own schedule: the interval per bucket at which every fetch buys the same freshness.

The plan's budget sets a price of a fetch; each bucket gets the interval at which a fetch is worth it
(`core.forecast`). The price follows the budget: what is not spent makes all intervals shorter, what is overspent
longer, so that the capacity is used and the order of the pages stays. Bursts of changes are `siblings`'.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.buckets import interval_of
from webfountain.store.base import ADVANCED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.page import Visit
    from webfountain.frontier.plan import Plan
    from webfountain.frontier.schedule import Bounds
    from webfountain.frontier.siblings import Siblings
    from webfountain.records import PageRecord

__all__ = ["FountainSchedule"]

_SHORTEST, _LONGEST = 1 / 64, 64.0


class FountainSchedule:
    """Follows a plan's budget at one price per fetch; `siblings` None leaves that signal out."""

    __slots__ = ("_bounds", "_busy_until", "_fastest", "_gain", "_intervals", "_page_s", "_plan", "_siblings")

    def __init__(self, plan: Plan, *, bounds: Bounds, fastest: float, siblings: Siblings | None) -> None:
        self._plan = plan
        self._bounds = bounds
        self._fastest = fastest
        self._siblings = siblings
        self._intervals = np.array(plan.intervals)
        self._gain = 1.0
        self._busy_until = -inf
        self._page_s = plan.period * plan.periods / max(plan.fetches_until(plan.end), 1.0)

    def horizon(self, site: str, at: float) -> list[float]:
        # Siblings spend what the budget has for others: all else waits until they were fetched.
        waiting = max(self._busy_until - at, 0.0)
        return self._bounds.lanes((at - waiting - self._intervals * self._gain).tolist(), at)

    def due_times(self, site: str, heads: Sequence[tuple[int, float]], at: float) -> list[float]:
        return [order if lane >= ADVANCED else self._due(lane, order) for lane, order in heads]

    def _due(self, lane: int, order: float) -> float:
        return self._bounds.due(order, order + float(self._intervals[lane]) * self._gain)

    def weights(self, at: float) -> Sequence[float]:
        return self._plan.weights_at(at)

    def observe(self, visit: Visit) -> Sequence[bytes]:
        """A found change makes siblings due."""
        lease = visit.fetch.lease
        if self._siblings is None or lease is None or visit.record.state != "crawled" or visit.kind == "failed":
            return ()
        at = visit.fetched.at
        struck = self._siblings.hear(
            lease.site,
            lease.record.url,
            lease.key,
            at=at,
            since=lease.record.last_crawled,
            changed=visit.kind == "changed",
            expected=self._expected(lease.record, at),
            every=float(self._intervals[visit.record.bucket]) * self._gain,
        )
        self._busy_until = max(self._busy_until, at) + len(struck) * self._page_s
        return struck

    def _expected(self, record: PageRecord, at: float) -> float:
        """Probability that a page would be found changed, by what was believed of it."""
        watched = 0.0 if record.last_crawled is None else at - record.last_crawled
        return float(-np.expm1(-watched / interval_of(record.bucket, self._fastest)))

    def scouts(self, at: float) -> list[tuple[str, bytes]]:
        """Pages of sections that nobody looked at for too long are due."""
        return [] if self._siblings is None else self._siblings.scouts(at)

    def correct(self, factor: float) -> None:
        self._gain = float(np.clip(self._gain * factor, _SHORTEST, _LONGEST))
