"""How one ant follows the plan: when a known page is due again, and which of a site's two queues goes first.

When a known page is due again, and which of a site's two queues goes first: data that the ant reads, never queues.
The store's recrawl lanes are ordered by the time of the last crawl; a schedule turns "now" into a *horizon*, one time
per lane (`store.contract`), and the first order of a lane into the time when it comes due. So nothing is rewritten when
the schedule changes. `BucketSchedule` rules until a plan exists, `PlanSchedule` follows a plan of strategy 1-3 by its
phase clocks; `fountain` has the third. Called in the loop thread only.

Our own schedule: a page is due when its urgency is worth the price of a fetch. The worker asks each active site which
of its pages are (`urgent_pages`); this keeps the price, which begins as the plan's and follows the budget
(`core.site_urgency`). Beside it stands an interval for each bucket, at which a fetch of an average page of the bucket
is worth the plan's price: where there is no choice to make yet, with a budget for several visits to every page in a
period, it alone rules, shorter or longer as the price is lower or higher; else it is the net beneath, and a page that
was passed over for `PATIENCE` of these intervals is due.

How one ant follows the plan: the schedule that rules it, and its fetches held against what the plan means. Place in
the walk (DESIGN 4): a plan, made by this ant's controller or another's -> **here** -> a schedule -> the next choice.
No queue is rewritten when a plan comes. Within a cycle the fetches made are compared with those planned, and pages
come due sooner or later. Used in the loop thread.
"""

from __future__ import annotations

import logging
from math import ceil, inf, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
import numpy as np

from webfountain.core.buckets import BUCKETS, interval_of
from webfountain.core.site_urgency import MOST_AHEAD, TOLERANCE, Price
from webfountain.errors import StoreVersion
from webfountain.frontier.planning.plan import Bounds, bounds_of, decode_plan
from webfountain.store.contract import ADVANCED, LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.planning.plan import Plan
    from webfountain.metrics import Metrics
    from webfountain.policy import RevisitTable
    from webfountain.policy.files import Collection
    from webfountain.records import PageRecord

__all__ = [
    "CHECKS_PER_PERIOD",
    "LATER",
    "PATIENCE",
    "REFRESH",
    "SOONER",
    "VISITS_PER_CHANGE",
    "BucketSchedule",
    "NoRecrawl",
    "PlanFollower",
    "PlanSchedule",
    "Schedule",
    "Spending",
    "UrgencySchedule",
    "plans",
    "within_policy",
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


def within_policy(record: PageRecord, revisit: RevisitTable, schedule: Schedule, *, site: str, at: float) -> PageRecord:
    """A crawled page's record, with a time of its next visit where its policy's bounds move the schedule's.

    The schedule's own hold for all policies and are the widest; so this is for policies that are narrower.
    """
    if record.state != "crawled" or record.failures or record.last_crawled is None or record.due is not None:
        return record
    [wanted] = schedule.due_times(site, [(record.bucket, record.last_crawled)], at)
    bounds = Bounds(revisit.min_interval, inf if revisit.max_interval is None else revisit.max_interval)
    due = wanted if wanted == inf else bounds.due(record.last_crawled, wanted)
    return record if due == wanted else msgspec.structs.replace(record, due=due)


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
    owed: float = 0.0
    """Fetches planned and not made since long, below 0 where more were made; bounded."""
    made: int = 0
    """Fetches made since the last check."""
    top: float = inf
    """What no page that does not wait is worth, s, as far as is known."""
    level: float = 0.0
    """What so many of them are worth as are still missing, s."""

    @property
    def short(self) -> bool:
        """Whether more pages must come due: what the plan meant for new pages that did not come is for known ones."""
        return self.starved and self.unspent > self._tolerated

    @property
    def late(self) -> bool:
        """Whether that was so and did not help yet: else a plan of few fetches would lose one each time."""
        is_less = self.planned - self.made > TOLERANCE * self.planned
        return self.starved and is_less and self.owed - self.waiting > self._tolerated

    @property
    def _tolerated(self) -> float:
        return 1.0 + TOLERANCE * self.planned


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


PATIENCE: Final = 3.0
_SHORTEST, _LONGEST = 1 / 64, 64.0
_LEAST_PRICE_S: Final = 1e-3


class UrgencySchedule:
    """Follows a plan's budget."""

    __slots__ = ("_bounds", "_horizon", "_intervals", "_made_for", "_plan", "_planned_price", "_price", "ranks")

    def __init__(self, plan: Plan, *, bounds: Bounds, price: float | None = None, ranks: bool = False) -> None:
        """`price` is the one in force, which goes on under a new plan; `ranks`, whether urgency decides."""
        self._plan = plan
        self._bounds = bounds
        self._intervals = np.array(plan.intervals)
        self._planned_price = max(plan.price, _LEAST_PRICE_S)
        self._price = Price(self._planned_price if price is None else price)
        self.ranks = ranks
        self._made_for = (-inf, 0.0)
        self._horizon: list[float] = []

    @property
    def price(self) -> float:
        """Obsolete time, s, that a fetch must save to be made."""
        return self._price.value

    def set_price(self, price: float) -> None:
        """The controller's price is this ant's."""
        self._price = Price(price)

    def horizon(self, site: str, at: float) -> list[float]:
        wanted = (at, self._patience())
        if wanted != self._made_for:  # all sites of a batch are refilled at one time
            self._made_for = wanted
            self._horizon = self._bounds.lanes((at - self._intervals * wanted[1]).tolist(), at)
        return self._horizon

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
        self._price.adjust(
            planned=spending.planned,
            waiting=spending.waiting,
            owed=spending.owed,
            short=spending.short or spending.late,
            top=spending.top,
            level=spending.level,
        )


logger = logging.getLogger(__name__)


def plans(collection: Collection, *, recrawl: bool) -> bool:
    """Whether there is a budget to divide among pages that are fetched again."""
    return recrawl and collection.cycle.capacity_pages_per_period is not None


class PlanFollower:
    """`schedule` rules the ant: by buckets alone until there is a plan, and where nothing is planned."""

    def __init__(self, collection: Collection, *, metrics: Metrics, start: float, recrawl: bool = True) -> None:
        """`recrawl` False: every page is asked once."""
        self._cycle = collection.cycle
        self._metrics = metrics
        self._bounds = bounds_of(collection)
        self._follows = plans(collection, recrawl=recrawl)
        self._checked_at = start
        self._made = 0
        self._unspent, self._owed = 0.0, 0.0
        self._left = 0  # fetches that were left unmade at the last check
        self._starved = False  # whether nothing was due at some moment since the last check
        self._price: float | None = None  # of an earlier crawl
        self._ranks, self._waiting = False, 0  # what the worker said of urgent pages
        self._top, self._level = inf, 0.0
        self.share = 1.0
        """Which part of the plan's budget is this ant's."""
        self.plan: Plan | None = None
        self.schedule: Schedule = NoRecrawl()
        if recrawl:
            self.schedule = BucketSchedule(fastest=self._cycle.fastest_s, bounds=self._bounds)

    def resume(self, data: bytes | None, price: bytes | None = None) -> Plan | None:
        """Go on with the plan and the price that the store kept, and return the plan.

        One of another version, period or strategy is left.
        """
        if data is None or not self._follows:
            return None
        try:
            plan = decode_plan(data)
        except StoreVersion as error:
            logger.warning("%s; a new one is made", error)
            return None
        asked = self._cycle.strategy
        if plan.period != self._cycle.period_s or asked != ("fountain" if plan.fountain else plan.strategy):
            return None
        self._price = None if price is None else msgspec.msgpack.decode(price, type=float)
        self._follow(plan)
        return plan

    def adopt(self, plan: Plan | None) -> None:
        """Put a plan in force; None: the last one stays."""
        if plan is None:
            self._metrics.inc("controller/plan_kept", self.plan is not None)
            return
        self._metrics.inc("controller/plan_adopted")
        logger.info(
            "Plan adopted: strategy %s, %d periods, %d recrawls and %d new pages, gap %.1f %%, %.2f s",
            "fountain" if plan.fountain else plan.strategy,
            plan.periods,
            sum(plan.recrawl),
            sum(plan.fresh),
            100 * plan.gap,
            plan.seconds,
        )
        self._follow(plan)

    def _follow(self, plan: Plan) -> None:
        self.plan = plan
        self._made, self._checked_at = 0, max(plan.start, self._checked_at)
        if plan.fountain:
            price = self.schedule.price or self._price  # it has followed the budget; a plan's is from its census
            self.schedule = UrgencySchedule(plan, bounds=self._bounds, price=price, ranks=self._ranks)
        else:
            self.schedule = PlanSchedule(plan, bounds=self._bounds)

    def obey(self, plan: bytes | None, price: float | None) -> None:
        """Another ant is the controller: its plan, where it is a new one, and its price."""
        if plan is not None:
            self.resume(plan)
        if price is not None and isinstance(self.schedule, UrgencySchedule):
            self.schedule.set_price(price)

    def hand_over(self, *, ranks: bool, waiting: int, top: float = inf, level: float = 0.0) -> None:
        """What the worker said with a batch: whether urgency decides, how many pages are due by it and wait, what no
        other is worth, and what so many others are worth as were `missing`, s.
        """
        self._ranks, self._waiting, self._top, self._level = ranks, waiting, top, level
        if isinstance(self.schedule, UrgencySchedule):
            self.schedule.ranks = ranks

    def missing(self) -> int:
        """Pages that should be due and wait, and do not; at least as many as were left unmade, and one, whatever waits.

        What waits then is not to be had soon: pages of few sites, that are polite. When none counted as missing nobody
        asked what others are worth; the price fell to a third, and what it let in took the budget of days. Of a plan of
        a fetch in many checks one that waits is enough, and what was left is owed.
        """
        plan = self.plan
        if plan is None or not self._ranks:
            return 0
        planned = self.share * (plan.fetches_until(self.check_at()) - plan.fetches_until(self._checked_at))
        least = max(self._left, 1) if planned >= 1.0 else 0
        return max(ceil(MOST_AHEAD * planned + self._owed) - self._waiting, least)

    def count(self) -> None:
        """A page was handed out."""
        self._made += 1

    def check_at(self) -> float:
        """When the next check is due; inf while there is no plan."""
        return inf if self.plan is None else self._checked_at + self._cycle.period_s / CHECKS_PER_PERIOD

    def check(self, at: float, *, starved: bool = True) -> int:
        """Hold the fetches made against the plan, often in a period; how many more pages should be due now.

        `starved` is False where pages are due and cannot be fetched (politeness, a slow disk): more of them would not
        help, all would be due at once, and each site, however small, would get the same share.
        """
        plan = self.plan
        self._starved = self._starved or starved
        if plan is None or at < self.check_at():
            return 0
        planned = self.share * (plan.fetches_until(at) - plan.fetches_until(self._checked_at))
        self._unspent = max(self._unspent + planned - self._made, 0.0)
        most = 2.0 * (1.0 + TOLERANCE * planned)  # what was not to be had long ago is not made up for
        self._owed = min(max(self._owed + planned - self._made, -CHECKS_PER_PERIOD * planned), most)
        spending = Spending(
            planned, self._unspent, self._waiting, self._starved, self._owed, self._made, self._top, self._level
        )
        self._made, self._checked_at, self._starved = 0, at, False
        self.schedule.correct(spending)
        if self._unspent > 1.0 + TOLERANCE * planned:
            self._unspent = 0.0
        self._left = ceil(spending.unspent) if spending.short else ceil(spending.owed) if spending.late else 0
        self._metrics.inc("controller/corrected", spending.short)
        return self._left
