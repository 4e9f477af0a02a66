"""When a known page is due again, and which of a site's two queues goes first: data that the ant reads, never queues.

The store's recrawl lanes are ordered by the time of the last crawl; a schedule turns "now" into a *horizon*, one
time per lane (`store.base`), and the first order of a lane into the time when it comes due. So nothing is rewritten
when the schedule changes. `BucketSchedule` rules until a plan exists, `PlanSchedule` follows a plan of strategy 1-3
by its phase clocks; `fountain` has the third. Called in the loop thread only.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from webfountain.core.buckets import BUCKETS, interval_of
from webfountain.core.price import TOLERANCE
from webfountain.store.contract import ADVANCED, LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.planning.plan import Plan
    from webfountain.policy.files import Collection

__all__ = [
    "CHECKS_PER_PERIOD",
    "LATER",
    "REFRESH",
    "SOONER",
    "VISITS_PER_CHANGE",
    "Bounds",
    "BucketSchedule",
    "NoRecrawl",
    "PlanSchedule",
    "Schedule",
    "Spending",
    "bounds_of",
]

VISITS_PER_CHANGE: Final = 4
"""Visits per expected change while no budget is to be divided. A page that changes by a Poisson process and is visited
k times per mean interval is fresh for (1 - e^(-1/k)) k of the time: 63 % at 1, 79 % at 2, 88 % at 4 (Cho 2000)."""
CHECKS_PER_PERIOD: Final = 50
"""How often in a period the fetches made are held against the plan."""
SOONER: Final = 0.9
LATER: Final = 1.003
"""Factors on the intervals: when fetches were left unspent, and when not, for more may have been wanted."""
REFRESH: float = 0.02
"""Share of a period for which a horizon is used again: 2 % of a visit's precision for most of its cost."""


class Bounds:
    """`revisit.min_interval` and `max_interval`, seconds; they bind crawled pages under every schedule."""

    __slots__ = ("longest", "shortest")

    def __init__(self, shortest: float = 0.0, longest: float = inf) -> None:
        self.shortest = shortest
        self.longest = longest

    def lanes(self, latest: Sequence[float], at: float) -> list[float]:
        """A horizon of all LANES from the bucket lanes' latest due orders."""
        oldest, youngest = at - self.longest, at - self.shortest
        kept = [youngest if order > youngest else oldest if order < oldest else order for order in latest]
        return kept + [at] * (LANES - BUCKETS)

    def due(self, order: float, wanted: float) -> float:
        """When a page that was crawled at `order` and is wanted at `wanted` comes due."""
        return min(max(wanted, order + self.shortest), order + self.longest)


def bounds_of(collection: Collection) -> Bounds:
    """The bounds of a collection's policy."""
    revisit = collection.policy.revisit
    return Bounds(revisit.min_interval, inf if revisit.max_interval is None else revisit.max_interval)


class Spending(NamedTuple):
    """How the budget was spent since the last check."""

    planned: float
    """Fetches that the plan meant to be made."""
    unspent: float
    """Those that were not made, of earlier checks too where they were too few to act on."""
    waiting: int
    """Pages that are due by their urgency and not fetched yet."""
    starved: bool
    """Whether nothing was due at some moment; else more due pages would not have helped."""

    @property
    def short(self) -> bool:
        """Whether more pages must come due: what the plan meant for new pages that did not come is for known ones."""
        return self.starved and self.unspent > 1.0 + TOLERANCE * self.planned


class Schedule(Protocol):
    """Which recrawl lanes are due at a time, and the weight between a site's two queues."""

    def horizon(self, site: str, at: float) -> list[float]:
        """For each of the LANES of a site the latest order that is due at `at`."""
        ...

    def due_times(self, site: str, heads: Sequence[tuple[int, float]], at: float) -> list[float]:
        """When a page of the site comes due, for each (lane, order), as things stand at `at`."""
        ...

    def weights(self, at: float) -> Sequence[float]:
        """Weights of the never-crawled and the recrawl queue where both have a due URL: p and 1 - p."""
        ...

    @property
    def price(self) -> float | None:
        """Obsolete time, s, that a fetch must save to be made; None: pages are not chosen by their urgency."""
        ...

    def correct(self, spending: Spending) -> None:
        """Hold the budget's use against the plan: pages come due sooner where it was not spent, else a little later."""
        ...


class BucketSchedule:
    """A page is due when `1 / VISITS_PER_CHANGE` of its bucket's mean change interval is over, within the bounds."""

    __slots__ = ("_intervals",)

    def __init__(self, *, fastest: float, bounds: Bounds) -> None:
        self._intervals = [
            min(max(interval_of(bucket, fastest) / VISITS_PER_CHANGE, bounds.shortest), bounds.longest)
            for bucket in range(BUCKETS)
        ]

    def horizon(self, site: str, at: float) -> list[float]:
        return [at - interval for interval in self._intervals] + [at] * (LANES - BUCKETS)

    def due_times(self, site: str, heads: Sequence[tuple[int, float]], at: float) -> list[float]:
        return [order if lane >= ADVANCED else order + self._intervals[lane] for lane, order in heads]

    def weights(self, at: float) -> Sequence[float]:
        return (0.5, 0.5)

    price: None = None

    def correct(self, spending: Spending) -> None:
        """There is no plan to differ from."""


class NoRecrawl:
    """Nothing is ever due again: another project's requests, which are asked once."""

    def horizon(self, site: str, at: float) -> list[float]:
        return [-inf] * LANES

    def due_times(self, site: str, heads: Sequence[tuple[int, float]], at: float) -> list[float]:
        return [inf] * len(heads)

    def weights(self, at: float) -> Sequence[float]:
        return (1.0, 0.0)

    price: None = None

    def correct(self, spending: Spending) -> None:
        """Nothing is planned."""


class PlanSchedule:
    """A plan of strategy 1, 2 or 3: a page is due when its bucket's phase clock has gained 1 since its last crawl."""

    __slots__ = ("_at", "_bounds", "_clocks", "_gain", "_horizon", "_plan")

    def __init__(self, plan: Plan, *, bounds: Bounds) -> None:
        self._plan = plan
        self._clocks = plan.clocks()
        self._bounds = bounds
        self._gain = 1.0
        self._at = -inf
        self._horizon: list[float] = []

    def horizon(self, site: str, at: float) -> list[float]:
        if at - self._at >= REFRESH * self._plan.period:
            self._at = at
            self._horizon = self._bounds.lanes(self._clocks.horizon(at, gain=self._gain).tolist(), at)
        return self._horizon

    def due_times(self, site: str, heads: Sequence[tuple[int, float]], at: float) -> list[float]:
        return [order if lane >= ADVANCED else self._due(lane, order) for lane, order in heads]

    def _due(self, lane: int, order: float) -> float:
        return self._bounds.due(order, self._clocks.due(lane, order, gain=self._gain))

    def weights(self, at: float) -> Sequence[float]:
        return self._plan.weights_at(at)

    price: None = None

    def correct(self, spending: Spending) -> None:
        self._gain = float(np.clip(self._gain * (SOONER if spending.short else LATER), 1 / 64, 4.0))
        self._at = -inf
