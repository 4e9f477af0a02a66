"""Decide when to make a plan, and make plans in a separate thread.

One ant, the controller, requests the store's census at the end of each cycle. `make_plan` makes a plan from the census
in a separate thread, while the crawl continues. The store keeps the plan, and all ants follow it (`plan_follower`). If
planning fails, the ants keep the last plan. Only the loop thread uses this module.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.core.goals import Goal
from webfountain.frontier.planning.make_plan import Aim, census_of, make_plan
from webfountain.frontier.planning.plan import bounds_of, encode_plan, plan_number
from webfountain.frontier.stage import Order

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.frontier.batch import Batch, BatchResult, CensusSnapshot
    from webfountain.frontier.cluster.membership import Others
    from webfountain.frontier.orders import OpenBatch
    from webfountain.frontier.planning.plan import Plan
    from webfountain.frontier.planning.plan_follower import PlanFollower
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.policy.collection import Collection

__all__ = ["FEWEST_PAGES", "Controller", "Planner"]

FEWEST_PAGES: Final = 20
"""Smallest number of copies for which a plan is made; with fewer copies, the planner tries again after one period."""


class Planner(Order):
    """The planner of one ant. `number` identifies the plan that is in the store (`plan_number`)."""

    def __init__(
        self,
        follower: PlanFollower,
        controller: Controller,
        *,
        sites: ActiveList,
        others: Others,
        batches: OpenBatch,
        number: int,
    ) -> None:
        self.follower = follower
        self._controller = controller
        self._sites = sites
        self._others = others
        self._batches = batches
        self.number = number
        self._taken: CensusSnapshot | None = None
        follower.check(batches.now(), starved=True)  # nothing is due, because no site is active yet
        self._set_due()

    def add(self, batch: Batch) -> None:
        """Add to the batch what the plan requires: the price, a search for due pages, or a request for a census."""
        if (plan := self.follower.plan) is not None:
            batch.price, batch.budget = self.follower.schedule.price, plan.fetches_per_period
            if short := self.follower.check(batch.at, starved=self._sites.is_starved()):
                self._sites.sites.refresh_soonest(short + 1, batch.at)
            batch.missing = self.follower.missing()
        if self._others.rules:
            batch.census_since = self._controller.census_since(batch.at)
        self._set_due()

    def _set_due(self) -> None:
        self.due = self._controller.due() if self.follower.plan is None else -inf

    def absorb(self, result: BatchResult) -> None:
        self._taken = result.census or self._taken
        self.follower.hand_over(ranks=result.ranks, waiting=result.waiting, top=result.top, level=result.level)

    def making(self) -> Callable[[], Plan | None] | None:
        """Return a function that makes a plan from a new census, or None if there is no new census.

        The caller must call the function in a separate thread, and pass the result to `adopt_plan`.
        """
        taken, self._taken = self._taken, None
        return None if taken is None else partial(self._controller.plan_from, taken)

    def adopt_plan(self, plan: Plan | None) -> None:
        """Use a new plan, and store it with the next batch. If `plan` is None, because planning failed, keep the last
        plan.
        """
        self.follower.adopt(plan)
        self._controller.planned(plan)
        if plan is not None:
            data = encode_plan(plan)
            self._batches.gather().plan = data
            self.number = plan_number(data)
        self._set_due()

    def obey(self, plan: bytes | None, price: float | None) -> None:
        """Use the plan and the price of another ant, the controller."""
        if plan is not None:
            self.number = plan_number(plan)
        self.follower.obey(plan, price)
        self._set_due()


class Controller:
    """Decides when to make the next plan, and makes the plan. `start` is the current time, UTC seconds. `last` is the
    plan of an earlier crawl, or None.
    """

    def __init__(self, collection: Collection, *, start: float, last: Plan | None = None) -> None:
        self._cycle = collection.cycle
        self._goal = collection.goal
        self._bounds = bounds_of(collection)
        self._asked_at = start  # time of the last request for a census, or the start of the crawl
        self._asked = False
        self._last = last
        # Periods until the next plan. The first plans are based on few observations and are replaced soon, so this
        # number doubles with each plan, up to a cycle.
        self._lasts = 1 if last is None else self._cycle.periods

    def due(self) -> float:
        """Return when the next plan is due, or inf while a plan is being made."""
        if self._asked:
            return inf
        ends_at = -inf if self._last is None else self._last.start + self._lasts * self._cycle.period_s
        return max(self._asked_at + self._cycle.period_s, ends_at)

    def census_since(self, at: float) -> int | None:
        """Return the first period that the census of the next plan must cover, or None if a plan is not due."""
        if at < self.due():
            return None
        self._asked, self._asked_at = True, at
        return int(at // self._cycle.period_s) - self._cycle.periods

    def plan_from(self, taken: CensusSnapshot) -> Plan | None:
        """Return a plan, or None if the collection has too few pages. Call this method in a separate thread.

        Raises
        ------
        NotConverged
            as `make_plan` does.
        """
        if sum(each.pages for each in taken.buckets.values()) < FEWEST_PAGES:
            return None
        clocks = None if self._last is None else self._last.clocks()
        census = census_of(taken, self._cycle)
        return make_plan(
            census,
            at=taken.at,
            cycle=self._cycle,
            bounds=self._bounds,
            clocks=clocks,
            aim=self._aim(),
        )

    def _aim(self) -> Aim | None:
        if self._goal is None:
            return None
        goal = Goal(self._goal.obsolete, self._goal.longer_than or 0.0)
        return Aim(goal, None if self._last is None else self._last.goal)

    def planned(self, plan: Plan | None) -> None:
        """Record the new plan; `plan` is None if no plan could be made."""
        self._asked = False
        if plan is None:
            return
        if self._last is not None:
            self._lasts = min(2 * self._lasts, self._cycle.periods)
        self._last = plan
