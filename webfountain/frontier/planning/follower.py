"""How one ant follows the plan: the schedule that rules it, and its fetches held against what the plan means.

Place in the walk (DESIGN 4): a plan, made by this ant's controller or another's -> **here** -> a schedule -> the next
choice. No queue is rewritten when a plan comes. Within a cycle the fetches made are compared with those planned, and
pages come due sooner or later. Used in the loop thread.
"""

from __future__ import annotations

import logging
from math import ceil, inf
from typing import TYPE_CHECKING

import msgspec

from webfountain.core.price import TOLERANCE
from webfountain.errors import StoreVersion
from webfountain.frontier.planning.plan import decode_plan
from webfountain.frontier.planning.schedule import (
    CHECKS_PER_PERIOD,
    BucketSchedule,
    NoRecrawl,
    PlanSchedule,
    Spending,
    bounds_of,
)
from webfountain.frontier.planning.urgency_schedule import UrgencySchedule

if TYPE_CHECKING:
    from webfountain.frontier.planning.plan import Plan
    from webfountain.frontier.planning.schedule import Schedule
    from webfountain.metrics import Metrics
    from webfountain.policy.files import Collection

__all__ = ["PlanFollower", "plans"]

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
        self._unspent = 0.0
        self._starved = False  # whether nothing was due at some moment since the last check
        self._price: float | None = None  # of an earlier crawl
        self._ranks, self._waiting = False, 0  # what the worker said of urgent pages
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

    def hand_over(self, *, ranks: bool, waiting: int) -> None:
        """What the worker said with a batch: whether urgency decides, and how many pages are due by it and wait."""
        self._ranks, self._waiting = ranks, waiting
        if isinstance(self.schedule, UrgencySchedule):
            self.schedule.ranks = ranks

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
        planned = plan.fetches_until(at) - plan.fetches_until(self._checked_at)
        self._unspent = max(self._unspent + planned - self._made, 0.0)
        spending = Spending(planned, self._unspent, self._waiting, self._starved)
        self._made, self._checked_at, self._starved = 0, at, False
        self.schedule.correct(spending)
        if self._unspent > 1.0 + TOLERANCE * planned:
            self._unspent = 0.0
        if not spending.short:
            return 0
        self._metrics.inc("controller/corrected")
        return ceil(spending.unspent)
