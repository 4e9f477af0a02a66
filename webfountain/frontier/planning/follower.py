"""How one ant follows the plan: the schedule that rules it, and its fetches held against what the plan means.

Place in the walk (DESIGN 4): a plan, made by this ant's controller or another's -> **here** -> a schedule -> the next
choice. No queue is rewritten when a plan comes. Within a cycle the fetches made are compared with those planned, and
pages come due sooner or later. Used in the loop thread.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from webfountain.errors import StoreVersion
from webfountain.frontier.planning.plan import decode_plan
from webfountain.frontier.planning.schedule import (
    CHOICES_PER_PERIOD,
    BucketSchedule,
    NoRecrawl,
    PlanSchedule,
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

TOLERANCE: Final = 0.03
"""Share of the planned fetches that may be left unspent between two checks, besides one page."""
SOONER: Final = 0.9
LATER: Final = 1.003
"""Factors on the intervals: when fetches were left unspent, and when not, for more may have been wanted."""


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
        self._urgent_sites: frozenset[str] = frozenset()
        self.plan: Plan | None = None
        self.schedule: Schedule = NoRecrawl()
        if recrawl:
            self.schedule = BucketSchedule(fastest=self._cycle.fastest_s, bounds=self._bounds)

    def resume(self, data: bytes | None) -> Plan | None:
        """Go on with the plan that the store kept, and return it; another version's, period's or strategy's is left."""
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
            self.schedule = UrgencySchedule(plan, bounds=self._bounds, ranked=self._urgent_sites)
        else:
            self.schedule = PlanSchedule(plan, bounds=self._bounds)

    def rank(self, sites: frozenset[str]) -> None:
        """The sites whose pages are chosen by their urgency from now on, as the worker said."""
        self._urgent_sites = sites
        if isinstance(self.schedule, UrgencySchedule):
            self.schedule.ranked = sites

    def count(self) -> None:
        """A page was handed out."""
        self._made += 1

    def check(self, at: float, *, starved: bool = True) -> bool:
        """Hold the fetches made against the plan, often in a period; whether pages are due sooner from now on.

        What the plan meant for new pages that did not come is for known ones: an unspent fetch is lost. But where
        pages are due and cannot be fetched (`starved` is False: politeness, a slow disk) more of them would not help:
        all would be due at once, and each site, however small, would get the same share.
        """
        plan = self.plan
        self._starved = self._starved or starved
        if plan is None or at < self._checked_at + self._cycle.period_s / CHOICES_PER_PERIOD:
            return False
        planned = plan.fetches_until(at) - plan.fetches_until(self._checked_at)
        self._unspent = max(self._unspent + planned - self._made, 0.0)
        self._made, self._checked_at = 0, at
        unspent = self._unspent > 1.0 + TOLERANCE * planned
        sooner, self._starved = unspent and self._starved, False
        if unspent:
            self._unspent = 0.0
        if sooner:
            self._metrics.inc("controller/corrected")
        self.schedule.correct(SOONER if sooner else LATER)
        return sooner
