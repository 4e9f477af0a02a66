"""Make one ant follow the plan.

During a cycle, the number of fetches is regularly compared with the plan. If too few fetches were made, pages become
due sooner; otherwise, pages become due a little later. Only the loop thread uses this module.
"""

from __future__ import annotations

import logging
from math import ceil, inf
from typing import TYPE_CHECKING

import msgspec

from webfountain.core.fetch_price import MOST_AHEAD, TOLERANCE
from webfountain.errors import StoreVersion
from webfountain.frontier.planning.plan import Bounds, bounds_of, decode_plan
from webfountain.frontier.planning.schedule import (
    CHECKS_PER_PERIOD,
    FASTER,
    BucketSchedule,
    PlanSchedule,
    Schedule,
    Spending,
    UrgencySchedule,
)

if TYPE_CHECKING:
    from webfountain.frontier.planning.plan import Plan
    from webfountain.metrics import Metrics
    from webfountain.policy.collection import Collection

__all__ = ["PlanFollower", "plans"]

logger = logging.getLogger(__name__)


def plans(collection: Collection, *, recrawl: bool) -> bool:
    """Return whether a crawl makes plans. A crawl makes plans if pages are fetched again and the capacity is set."""
    return recrawl and collection.cycle.capacity_pages_per_period is not None


class PlanFollower:
    """Keeps the ant's current `schedule`. Until the first plan, a page's due time depends only on its last crawl and
    its bucket.
    """

    def __init__(self, collection: Collection, *, metrics: Metrics, start: float, recrawl: bool = True) -> None:
        """If `recrawl` is False, no page is fetched again."""
        self._cycle = collection.cycle
        self._metrics = metrics
        self._bounds = bounds_of(collection)
        self.follows_plans = plans(collection, recrawl=recrawl)
        """True if the crawl makes plans."""
        self._checked_at = start
        self._made = 0
        self._unspent, self._owed = 0.0, 0.0
        self._left = 0  # fetches not made, as of the last check
        self._starved = False  # whether nothing was due at some moment since the last check
        self._price: float | None = None  # the price that an earlier crawl stored
        self._ranks, self._waiting = False, 0  # from the worker's report on urgent pages
        self._top, self._level = inf, 0.0
        self.share = 1.0
        """The fraction of the plan's fetches that this ant makes."""
        self.hastened = 0
        """Number of new plans, edits of the policy file and lower prices that made pages due earlier."""
        self._slowest = 1.0  # the schedule's greatest pace since then
        self.plan: Plan | None = None
        self.schedule = Schedule()
        if recrawl:
            self.schedule = BucketSchedule(fastest=self._cycle.fastest_s, bounds=self._bounds)

    def resume(self, data: bytes | None, price: bytes | None = None) -> Plan | None:
        """Continue with the plan and the price that the store keeps, and return the plan. Return None if another
        version of webfountain wrote the plan, or if the period or the strategy has changed.
        """
        if data is None or not self.follows_plans:
            return None
        try:
            plan = decode_plan(data)
        except StoreVersion as error:
            logger.warning("%s; a new plan is made", error)
            return None
        asked = self._cycle.strategy
        if plan.period != self._cycle.period_s or asked != ("fountain" if plan.fountain else plan.strategy):
            return None
        self._price = None if price is None else msgspec.msgpack.decode(price, type=float)
        self._follow(plan)
        return plan

    def adopt(self, plan: Plan | None) -> None:
        """Use a new plan. If `plan` is None, because no plan could be made, keep the last plan."""
        if plan is None:
            self._metrics.inc("controller/plan_kept", self.plan is not None)
            return
        self._metrics.inc("controller/plan_adopted")
        logger.info(
            "Plan adopted: strategy %s, %d periods, %d recrawls and %d new pages, optimality gap %.1f %%, computed "
            "in %.2f s",
            "fountain" if plan.fountain else plan.strategy,
            plan.periods,
            sum(plan.recrawl),
            sum(plan.fresh),
            100 * plan.gap,
            plan.seconds,
            extra={"event": "controller/plan_adopted"},
        )
        self._follow(plan)

    def _follow(self, plan: Plan) -> None:
        self.plan = plan
        self._made, self._checked_at = 0, max(plan.start, self._checked_at)
        if plan.fountain:
            price = (
                self.schedule.price or self._price
            )  # the stored price had been adjusted to the budget; a plan's price comes from its census alone
            self.schedule = UrgencySchedule(plan, bounds=self._bounds, price=price, ranks=self._ranks)
        else:
            self.schedule = PlanSchedule(plan, bounds=self._bounds)
        self._hasten()

    def adopt_bounds(self, bounds: Bounds) -> None:
        """Apply the `revisit` bounds of an edited policy file."""
        self._bounds = bounds
        self.schedule.bind(bounds)
        self._hasten()

    def _hasten(self) -> None:
        self.hastened += 1
        self._slowest = self.schedule.pace

    def _check_pace(self) -> None:
        """If pages are now due much sooner than before, make the crawl compute the due times of parked sites again."""
        self._slowest = max(self._slowest, self.schedule.pace)
        if self.schedule.pace < FASTER * self._slowest:
            self._hasten()

    def obey(self, plan: bytes | None, price: float | None) -> None:
        """Use the plan and the price of another ant, the controller."""
        if plan is not None:
            self.resume(plan)
        if isinstance(self.schedule, UrgencySchedule):
            self.schedule.set_price(price)
            self._check_pace()

    def hand_over(self, *, ranks: bool, waiting: int, top: float = inf, level: float = 0.0) -> None:
        """Keep the worker's report about urgent pages, which comes with each batch.

        Parameters
        ----------
        ranks : True if urgency decides which pages are due
        waiting : number of pages that were made due or are worth the price, and are not fetched yet
        top : upper bound of the urgency of pages that were not made due, s
        level : urgency of the n-th most urgent page that was not made due, s, where n is `missing`
        """
        self._ranks, self._waiting, self._top, self._level = ranks, waiting, top, level
        if isinstance(self.schedule, UrgencySchedule):
            self.schedule.ranks = ranks

    def missing(self) -> int:
        """Return how many more pages should be made due.

        If the plan allows a fetch before the next check, return at least 1, because all due pages may be on a few
        sites.
        """
        plan = self.plan
        if plan is None or not self._ranks:
            return 0
        planned = self.share * (plan.fetches_until(self.check_at()) - plan.fetches_until(self._checked_at))
        least = max(self._left, 1) if planned >= 1.0 else 0
        return max(ceil(MOST_AHEAD * planned + self._owed) - self._waiting, least)

    def count(self) -> None:
        """Count one fetch."""
        self._made += 1

    def check_at(self) -> float:
        """Return when the number of fetches must next be compared with the plan, or inf if there is no plan."""
        return inf if self.plan is None else self._checked_at + self._cycle.period_s / CHECKS_PER_PERIOD

    def check(self, at: float, *, starved: bool = True) -> int:
        """Compare the number of fetches with the plan. Return how many more pages should now become due.

        Pass False for `starved` if pages are due but cannot be fetched now, because of politeness or a slow disk.
        """
        plan = self.plan
        self._starved = self._starved or starved
        if plan is None or at < self.check_at():
            return 0
        planned = self.share * (plan.fetches_until(at) - plan.fetches_until(self._checked_at))
        self._unspent = max(self._unspent + planned - self._made, 0.0)
        most = 2.0 * (1.0 + TOLERANCE * planned)  # a limit: fetches that were missed long ago are not made up for
        self._owed = min(max(self._owed + planned - self._made, -CHECKS_PER_PERIOD * planned), most)
        spending = Spending(
            planned, self._unspent, self._waiting, self._starved, self._owed, self._made, self._top, self._level
        )
        self._made, self._checked_at, self._starved = 0, at, False
        self.schedule.correct(spending)
        self._check_pace()
        if self._unspent > 1.0 + TOLERANCE * planned:
            self._unspent = 0.0
        self._left = ceil(spending.unspent) if spending.short else ceil(spending.owed) if spending.late else 0
        self._metrics.inc("controller/corrected", spending.short)
        return self._left
