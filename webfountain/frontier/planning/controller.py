"""The controller decides when to plan, and requests the census for it.

One ant is the controller; if nothing is planned, none is. Place in the walk: at the end of each cycle the controller
requests the store's census. `make_plan` turns it into a plan, in a separate thread, while the crawl continues. Every
ant follows the plan (`schedule`). If planning fails, the last plan stays. A plan divides a budget: without
`cycle.capacity_pages_per_period` there is no plan and no controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.frontier.planning.make_plan import census_of, make_plan
from webfountain.frontier.planning.plan import bounds_of

if TYPE_CHECKING:
    from webfountain.frontier.batch import CensusSnapshot
    from webfountain.frontier.planning.plan import Plan
    from webfountain.policy.collection import Collection

__all__ = ["FEWEST_PAGES", "Controller", "NoController"]

FEWEST_PAGES: Final = 20
"""With fewer copies than this, the first plan waits another period."""


class Controller:
    """Decides when to plan. `start` is now, UTC seconds; `last` is the plan of an earlier crawl, which continues."""

    def __init__(self, collection: Collection, *, start: float, last: Plan | None = None) -> None:
        self._cycle = collection.cycle
        self._bounds = bounds_of(collection)
        self._asked_at = start  # time of the last request for a census, or the start of the crawl
        self._asked = False
        self._last = last
        # Periods until the next plan. The first plans rest on few observations, so this doubles up to a cycle.
        self._lasts = 1 if last is None else self._cycle.periods

    def census_since(self, at: float) -> int | None:
        """Return the first period whose counts the next plan needs, one cycle back, or None before it is time to plan.

        It returns a period once, until `planned` is called.
        """
        period, last = self._cycle.period_s, self._last
        if self._asked or at < self._asked_at + period:
            return None
        if last is not None and at < last.start + self._lasts * period:
            return None
        self._asked, self._asked_at = True, at
        return int(at // period) - self._cycle.periods

    def plan_from(self, taken: CensusSnapshot) -> Plan | None:
        """Return the next plan, or None while there are too few pages. Run it in a thread, and pass the result to
        `planned`.

        Raises
        ------
        NotConverged
            as `make_plan` does.
        """
        if sum(each.pages for each in taken.buckets.values()) < FEWEST_PAGES:
            return None
        clocks = None if self._last is None else self._last.clocks()
        census = census_of(taken, self._cycle)
        return make_plan(census, at=taken.at, cycle=self._cycle, bounds=self._bounds, clocks=clocks)

    def planned(self, plan: Plan | None) -> None:
        """Receive a plan; None: no plan could be made."""
        self._asked = False
        if plan is None:
            return
        if self._last is not None:
            self._lasts = min(2 * self._lasts, self._cycle.periods)
        self._last = plan


class NoController:
    """The counterpart of a controller where nothing is planned."""

    def census_since(self, at: float) -> int | None:
        """Return None: no census is needed."""
        del at
        return None

    def plan_from(self, taken: CensusSnapshot) -> Plan | None:
        """Return None."""
        del taken
        return None

    def planned(self, plan: Plan | None) -> None:
        """Do nothing."""
        del plan
