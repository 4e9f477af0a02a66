"""Due times of sites after the schedule made pages due earlier.

Place in the walk: in the loop thread, with each batch. Active sites are updated at once; parked ones by the worker,
some with each batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.frontier.order import Order
from webfountain.frontier.orders.chores import ChoreTimer

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.cluster.others import Others
    from webfountain.frontier.planning.plan_follower import PlanFollower
    from webfountain.frontier.sites.active_list import ActiveList

__all__ = ["EarlierDueTimes"]


class EarlierDueTimes(Order):
    """The update of due times. The ant that counts also orders it after a start and every `every_s` seconds, because
    other ants may park sites late.
    """

    def __init__(
        self, follower: PlanFollower, sites: ActiveList, others: Others, *, every_s: float, start: float
    ) -> None:
        self._follower = follower
        self._sites = sites
        self._others = others
        self._timer = ChoreTimer(every_s, start=start)
        self._hastened = 0
        self._hastening = False
        self._is_settled_in = False  # whether any batch has come back

    def add(self, batch: Batch) -> None:
        batch.schedule = self._follower.schedule
        if self._follower.hastened != self._hastened:
            self._hastened = self._follower.hastened
            self._sites.sites.refresh(self._sites.sites.by_name, batch.at)
            self._timer.hasten()
        if self._is_settled_in and self._others.counts:
            batch.hastened = self._timer.take(batch.at)
            batch.hastening = self._hastening

    def absorb(self, result: BatchResult) -> None:
        self._hastening = result.hastening
        self._is_settled_in = True
