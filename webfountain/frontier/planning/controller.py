"""The controller: when the next plan is to be made, and from which census. One ant has it, or none where none plans.

Place in the walk (DESIGN 4): at each cycle's end it asks for the store's census; `make_plan` turns that into a plan,
in a thread of its own, so the crawl goes on; every ant follows the plan (`follower`). If planning fails the last plan
stays. A plan divides a budget: without `cycle.capacity_pages_per_period` there is nothing to plan, and no controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.frontier.planning.make_plan import census_of, make_plan
from webfountain.frontier.planning.schedule import bounds_of

if TYPE_CHECKING:
    from webfountain.frontier.batch import CensusTaken
    from webfountain.frontier.planning.plan import Plan
    from webfountain.policy.files import Collection

__all__ = ["Controller"]

FEWEST_PAGES: Final = 20
"""Fewer copies than this tell nothing; the first plan waits another period."""


class Controller:
    """Keeps when to plan. `start` is now, UTC seconds; `last` the plan that goes on from an earlier crawl."""

    def __init__(self, collection: Collection, *, start: float, last: Plan | None = None) -> None:
        self._cycle = collection.cycle
        self._bounds = bounds_of(collection)
        self._asked_at = start  # when the census was last asked for, or the crawl began
        self._asked = False
        self._last = last
        # Periods until the next plan: the first are made from little, so they double up to a cycle.
        self._lasts = 1 if last is None else self._cycle.periods

    def census_since(self, at: float) -> int | None:
        """When it is time to plan, the first period whose counts the plan needs, one cycle back; else None.

        A number is told once, until `planned`.
        """
        period, last = self._cycle.period_s, self._last
        if self._asked or at < self._asked_at + period:
            return None
        if last is not None and at < last.start + self._lasts * period:
            return None
        self._asked, self._asked_at = True, at
        return int(at // period) - self._cycle.periods

    def plan_from(self, taken: CensusTaken) -> Plan | None:
        """The next plan; None while there is too little to plan with. Run it in a thread, and give `planned` the end.

        Raises
        ------
        NotConverged
            as `make_plan`.
        """
        if sum(each.pages for each in taken.buckets.values()) < FEWEST_PAGES:
            return None
        clocks = None if self._last is None else self._last.clocks()
        census = census_of(taken, self._cycle)
        return make_plan(census, at=taken.at, cycle=self._cycle, bounds=self._bounds, clocks=clocks)

    def planned(self, plan: Plan | None) -> None:
        """A plan was made, or None: none could be."""
        self._asked = False
        if plan is None:
            return
        if self._last is not None:
            self._lasts = min(2 * self._lasts, self._cycle.periods)
        self._last = plan
