"""A plan for a crawl without a budget: the best use of the measured rate of fetches.

Without `cycle.capacity_pages_per_period`, a crawl fetches as fast as politeness allows and follows no plan.
`webfountain plan show` makes this plan on demand from the census of the store, with the function that makes a crawl's
own plans. It is only shown: it is not stored, and no crawl follows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from webfountain.errors import NotConverged, WebfountainError
from webfountain.policy.edits import CollectionInForce
from webfountain.report.plan import plan_document
from webfountain.store.contract import COLLECTION

if TYPE_CHECKING:
    from webfountain.policy.tables import CycleTable
    from webfountain.records import CensusRow
    from webfountain.store.contract import FrontierStore

__all__ = ["has_budget", "measured_plan"]


def has_budget(store: FrontierStore) -> bool:
    """Return whether the policy file sets a capacity; True if the store contains no readable file."""
    cycle = _cycle(store)
    return cycle is None or cycle.capacity_pages_per_period is not None


def measured_plan(store: FrontierStore, *, at: float) -> dict[str, Any] | None:
    """Return the plan for the measured rate as `plan show` prints it, or None if too little was measured.

    It has the keys of a plan in force, and `in_force` (False) and `capacity`, pages a period.
    """
    # These imports take 0.5 s, and only a plan needs them.
    from webfountain.frontier.batch import CensusSnapshot  # noqa: PLC0415
    from webfountain.frontier.planning.controller import FEWEST_PAGES  # noqa: PLC0415
    from webfountain.frontier.planning.make_plan import census_of, make_plan  # noqa: PLC0415
    from webfountain.frontier.planning.plan import Bounds  # noqa: PLC0415

    cycle, census = _cycle(store), store.census.buckets()
    if cycle is None or sum(each.pages for each in census.values()) < FEWEST_PAGES:
        return None
    rows = store.census.rows(since=int(at // cycle.period_s) - cycle.periods)
    capacity = _measured(rows, cycle.period_s, at)
    if not capacity:
        return None
    taken = CensusSnapshot(at, census, rows, store.census.statistics().pages["never-crawled"])
    measured = msgspec.structs.replace(cycle, capacity_pages_per_period=capacity)
    try:
        plan = make_plan(census_of(taken, measured), at=at, cycle=measured, bounds=Bounds(), clocks=None)
    except NotConverged:
        return None
    found = plan_document(store, plan, at=at)
    words = (
        f"not in force, because no budget is set; with the measured rate, {capacity:,} pages a period: {found['words']}"
    )
    return {**found, "words": words, "in_force": False, "capacity": capacity}


def _cycle(store: FrontierStore) -> CycleTable | None:
    kept = store.board.value(COLLECTION)
    if kept is None:
        return None
    try:
        return CollectionInForce.decode(kept).read().cycle
    except WebfountainError:
        return None  # its seeds file is on another machine


def _measured(rows: list[CensusRow], period_s: float, at: float) -> int:
    """Return fetches per period, averaged over the periods of the rows and the elapsed part of the present one."""
    begun = min((row.period for row in rows if row.fetches), default=None)
    if begun is None:
        return 0
    passed = max(at / period_s - begun, 1.0)
    return max(round(sum(row.fetches for row in rows) / passed), 1)
