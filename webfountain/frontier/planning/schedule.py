"""Schedules: when a known page is due again, and which of a site's two queues comes first.

A recrawl queue has several lanes, each ordered by the time of the last crawl (`store.contract`). A schedule gives a
*horizon*, a time for each lane: a page of the lane is due if its last crawl was before that time. `BucketSchedule` is
used before the first plan. Schedules are used in the loop thread only.
"""

from __future__ import annotations

from math import ceil, inf, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from webfountain.core.buckets import BUCKETS, interval_of
from webfountain.core.fetch_price import TOLERANCE, Price
from webfountain.frontier.planning.plan import Bounds
from webfountain.store.lanes import ADVANCED, LANES, recrawl_place
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webfountain.frontier.planning.plan import Plan
    from webfountain.policy.tables import RevisitTable
    from webfountain.records import PageRecord

__all__ = [
    "CHECKS_PER_PERIOD",
    "FASTER",
    "LATER",
    "PATIENCE",
    "REFRESH",
    "SOONER",
    "VISITS_PER_CHANGE",
    "BucketSchedule",
    "PlanSchedule",
    "Schedule",
    "Spending",
    "UrgencySchedule",
    "earlier_visits",
    "page_backoff",
    "within_policy",
]

VISITS_PER_CHANGE: Final = 4
"""Number of fetches of a page per expected change of the page, before the first plan. With four fetches per change, a
page that changes by a Poisson process is fresh for 88 % of the time (Cho 2000).
"""
CHECKS_PER_PERIOD: Final = 50
"""How often per period the number of fetches is compared with the plan."""
SOONER: Final = 0.9
LATER: Final = 1.003
"""At each check, the intervals between visits are multiplied by SOONER if planned fetches were not made, else by LATER.
"""
FASTER: Final = 0.95
"""When `Schedule.pace` falls below this share of its highest value, the due times of parked sites are computed again.
"""
REFRESH: float = 0.02
"""Share of a period for which a computed horizon is used; fetches may be late by this share."""
_ROUND_S: Final = 60.0
"""Due times more than an hour ahead are rounded up to multiples of this many seconds, so that many pages share a due
time.
"""
_HOUR_S: Final = 3600.0
PATIENCE: Final = 3.0
_SHORTEST, _LONGEST = 1 / 64, 64.0
_LEAST_PRICE_S: Final = 1e-3


def within_policy(record: PageRecord, revisit: RevisitTable, schedule: Schedule) -> PageRecord:
    """Return a page's record, with an explicit due time if the page's policy has narrower bounds than the schedule.

    A schedule has one pair of bounds for all pages: the widest bounds of all policies.
    """
    if record.state != "crawled" or record.failures or record.last_crawled is None or record.due is not None:
        return record
    wanted = schedule.due(record.bucket, record.last_crawled)
    bounds = Bounds(revisit.min_interval, inf if revisit.max_interval is None else revisit.max_interval)
    due = wanted if wanted == inf else bounds.due(record.last_crawled, wanted)
    return record if due == wanted else msgspec.structs.replace(record, due=due)


class Spending(NamedTuple):
    """How many fetches were `planned` and `made` since fetches were last compared with the plan."""

    planned: float
    unspent: float
    """Number of planned fetches that were not made, set back to 0 after it has exceeded the tolerance."""
    waiting: int
    """Number of pages that are due, or urgent enough to be made due."""
    starved: bool
    """True if, at some moment since fetches were last compared with the plan, no page was due."""
    owed: float = 0.0
    """Planned fetches minus fetches made, accumulated during the crawl and kept within limits."""
    made: int = 0
    top: float = inf
    """Upper bound of the urgency of pages that are not due, in seconds."""
    level: float = 0.0
    """Urgency of the least urgent page that must be made due to reach the planned number of due pages, in seconds."""

    @property
    def short(self) -> bool:
        """True if planned fetches were not made because too few pages were due."""
        return self.starved and self.unspent > self._tolerated

    @property
    def late(self) -> bool:
        """True if, over many checks, fewer fetches were made than planned because too few pages were due."""
        # Without this test, a plan with few fetches would lose one fetch at each check.
        is_less = self.planned - self.made > TOLERANCE * self.planned
        return self.starved and is_less and self.owed - self.waiting > self._tolerated

    @property
    def _tolerated(self) -> float:
        return 1.0 + TOLERANCE * self.planned


class Schedule:
    """Decides which pages are due, and how fetches are divided between the two queues of a site. In the base class
    `Schedule`, no page is ever due.
    """

    __slots__ = ()

    def horizon(self, at: float) -> list[float]:
        """Return a time for each of a site's LANES: a page of the lane is due at `at` if its last crawl was before that
        time.
        """
        del at
        return [-inf] * LANES

    def due(self, lane: int, order: float) -> float:
        """Return the due time of a page in a lane of its site's recrawl queue. In lanes below ADVANCED, `order` is the
        time of the page's last crawl; in higher lanes, it is the due time.
        """
        del lane, order
        return inf

    def weights(self, at: float) -> Sequence[float]:
        """Return (p, 1 - p): the shares of fetches that go to the never-crawled queue and to the recrawl queue."""
        del at
        return (1.0, 0.0)

    @property
    def price(self) -> float | None:
        """Return the price of a fetch, in seconds, or None if pages are not chosen by urgency."""
        return None

    @property
    def pace(self) -> float:
        """The factor by which the intervals between visits have changed since the start of the schedule."""
        return 1.0

    def bind(self, bounds: Bounds) -> None:
        """Apply the `revisit` bounds of an edited policy file."""

    def correct(self, spending: Spending) -> None:
        """Make pages due sooner if fewer fetches were made than planned; otherwise, make pages due a little later."""


class BucketSchedule(Schedule):
    """Schedule before the first plan: a page is due after `1 / VISITS_PER_CHANGE` of the mean change interval of its
    bucket, within the bounds of the policies.
    """

    __slots__ = ("_fastest", "_intervals")

    def __init__(self, *, fastest: float, bounds: Bounds) -> None:
        self._fastest = fastest
        self._intervals: list[float] = []
        self.bind(bounds)

    def bind(self, bounds: Bounds) -> None:
        self._intervals = [
            min(max(interval_of(bucket, self._fastest) / VISITS_PER_CHANGE, bounds.shortest), bounds.longest)
            for bucket in range(BUCKETS)
        ]

    def horizon(self, at: float) -> list[float]:
        return [at - interval for interval in self._intervals] + [at] * (LANES - BUCKETS)

    def due(self, lane: int, order: float) -> float:
        return order if lane >= ADVANCED else order + self._intervals[lane]

    def weights(self, at: float) -> Sequence[float]:
        return (0.5, 0.5)


class PlanSchedule(Schedule):
    """Schedule by a plan of strategy 1, 2 or 3. Each bucket has a clock, and a page is due when its bucket's clock has
    advanced by 1 since the page's last crawl.
    """

    __slots__ = ("_bounds", "_clocks", "_gain", "_horizon", "_latest", "_made_for", "_plan", "_read_at")

    def __init__(self, plan: Plan, *, bounds: Bounds) -> None:
        self._plan = plan
        self._clocks = plan.clocks()
        self._bounds = bounds
        self._gain = 1.0
        self._read_at = self._made_for = -inf
        self._latest: list[float] = []
        self._horizon: list[float] = []

    def horizon(self, at: float) -> list[float]:
        if at - self._read_at >= REFRESH * self._plan.period:
            self._read_at = at
            self._latest = self._clocks.horizon(at, gain=self._gain).tolist()
            self._made_for = -inf
        if at != self._made_for:  # all sites of a batch are refilled at one time
            self._made_for = at
            self._horizon = self._bounds.lanes(self._latest, at)
        return self._horizon

    def due(self, lane: int, order: float) -> float:
        return order if lane >= ADVANCED else self._bounds.due(order, self._clocks.due(lane, order, gain=self._gain))

    def weights(self, at: float) -> Sequence[float]:
        return self._plan.weights_at(at)

    @property
    def pace(self) -> float:
        return self._gain

    def bind(self, bounds: Bounds) -> None:
        self._bounds, self._made_for = bounds, -inf

    def correct(self, spending: Spending) -> None:
        self._gain = float(np.clip(self._gain * (SOONER if spending.short else LATER), 1 / 64, 4.0))
        self._read_at = -inf


def earlier_visits(
    records: Iterable[PageRecord], revisit_of: Callable[[str], RevisitTable], schedule: Schedule, *, at: float
) -> dict[float, list[bytes]]:
    """Return, by new due time, the keys of the pages that their policies' bounds make due earlier.

    `revisit_of` maps the name of a policy to its bounds.
    """
    found: dict[float, list[bytes]] = {}
    for record in records:
        if record.state != "crawled" or record.failures or record.duplicate_of is not None:
            continue
        # The time at which its last visit would have left it under these bounds.
        placed = within_policy(msgspec.structs.replace(record, due=None), revisit_of(record.policy), schedule)
        stands_at, wanted_at = (schedule.due(*recrawl_place(each)) for each in (record, placed))
        if wanted_at < stands_at and stands_at > at:
            found.setdefault(_rounded(wanted_at, at), []).append(fingerprint(record.url))
    return found


def _rounded(due: float, at: float) -> float:
    if due <= at:
        return at
    return due if due - at < _HOUR_S else ceil(due / _ROUND_S) * _ROUND_S


def page_backoff(failures: int, *, period: float) -> float:
    """Return how long to wait before a failed or redirected page is requested again, in seconds.

    The wait is one period after the first failure, and doubles with each further failure, up to 180 periods.
    """
    return period * min(2.0 ** min(failures - 1, 40), 180.0)


class UrgencySchedule(Schedule):
    """Schedule of the strategy `fountain`: a page is due when its urgency reaches the price of a fetch.

    The worker finds the urgent pages (`urgent_pages`). The price is adjusted until the budget is used
    (`core.fetch_price`). The plan gives each bucket an interval after which the urgency of its average page reaches the
    price. Each page becomes due after `PATIENCE` intervals of its bucket at the latest. If the budget is very large, no
    urgencies are computed, and each page is due after the interval of its bucket.
    """

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
        """`price` is the current price of a fetch, in seconds. `ranks` is True if urgencies decide which pages are
        due."""
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
        """Return the price of a fetch, in seconds."""
        return self._price.value

    @property
    def pace(self) -> float:
        return self._patience()

    def bind(self, bounds: Bounds) -> None:
        self._bounds, self._made_for = bounds, (-inf, 0.0)

    def set_price(self, price: float | None) -> None:
        """Use the price that the ant in the role of controller has set. If `price` is None, this ant is the controller
        and adjusts the price itself.
        """
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
