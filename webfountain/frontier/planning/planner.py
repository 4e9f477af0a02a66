"""The plan between the threads: what it demands of each batch, its making, its adoption.

Place in the walk: in the loop thread. With each batch the planner names the price and the missing pages. When a plan is
due it orders a census (`controller`). From the census the plan is made, in a separate thread. Then it is followed
(`plan_follower`), and stored with the next batch.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from webfountain.frontier.order import Order
from webfountain.frontier.planning.plan import bounds_of, encode_plan, plan_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.frontier.batch import Batch, BatchResult, CensusSnapshot, OpenBatch
    from webfountain.frontier.cluster.others import Others
    from webfountain.frontier.planning.controller import Controller, NoController
    from webfountain.frontier.planning.plan import Plan
    from webfountain.frontier.planning.plan_follower import PlanFollower
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.policy.collection import Collection

__all__ = ["Planner"]


class Planner(Order):
    """The planner of one ant. `number` names the plan in the store, 0: none (`plan_number`)."""

    def __init__(
        self,
        follower: PlanFollower,
        controller: Controller | NoController,
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

    def add(self, batch: Batch) -> None:
        """Set the price in the batch, refresh sites if too few pages were due, and request a census for a plan."""
        starved = self._sites.is_starved()
        batch.price = self.follower.schedule.price
        if short := self.follower.check(batch.at, starved=starved):
            self._sites.sites.refresh_soonest(short + 1, batch.at)
        batch.missing = self.follower.missing()
        batch.rules = self._others.rules
        if batch.rules:
            batch.census_since = self._controller.census_since(batch.at)

    def absorb(self, result: BatchResult) -> None:
        self._taken = result.census or self._taken
        self.follower.hand_over(ranks=result.ranks, waiting=result.waiting, top=result.top, level=result.level)

    def adopt(self, collection: Collection) -> None:
        self.follower.adopt_bounds(bounds_of(collection))

    def making(self) -> Callable[[], Plan | None] | None:
        """Return the function that makes a plan, once, for a separate thread. Pass its result to `adopt_plan`."""
        taken, self._taken = self._taken, None
        return None if taken is None else partial(self._controller.plan_from, taken)

    def adopt_plan(self, plan: Plan | None) -> None:
        """Use a plan, and store it with the next batch. None (planning failed) keeps the last plan."""
        self.follower.adopt(plan)
        self._controller.planned(plan)
        if plan is not None:
            data = encode_plan(plan)
            self._batches.gather().plan = data
            self.number = plan_number(data)

    def obey(self, plan: bytes | None, price: float | None) -> None:
        """Follow another ant that is the controller: its plan, if it is new, and its price."""
        if plan is not None:
            self.number = plan_number(plan)
        self.follower.obey(plan, price)
