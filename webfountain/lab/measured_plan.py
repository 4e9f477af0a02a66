"""A crawl's plan and the cost of a goal, computed from the measured number of fetches per period.

Without `cycle.capacity_pages_per_period`, a crawl fetches as fast as politeness allows and follows no plan. For a crawl
without a budget, `measured_plan` makes a plan on demand, from the census of the store and the measured rate of fetches.
The cost of a goal (`plan show --goal`) consists of the fetches that it needs, the present fetches, and the effect of
slightly fewer fetches. Plans and costs from this module are only shown: the store does not keep them, and no crawl
follows them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from webfountain.core.forecast import published
from webfountain.errors import InputError, NotConverged, WebfountainError
from webfountain.policy.units import PositiveDuration, spell_duration
from webfountain.report.plan import plan_document
from webfountain.report.plurals import counted
from webfountain.report.store_reading import policy_in_force
from webfountain.store.contract import FORECAST

if TYPE_CHECKING:
    from webfountain.core.census import Census
    from webfountain.core.goals import Goal
    from webfountain.policy.tables import CycleTable
    from webfountain.store.contract import FrontierStore

__all__ = ["goal_document", "goal_of", "goal_words", "has_budget", "measured_plan"]

_GOAL: Final = re.compile(r"(?:obsolete=|older=(?P<age>[^:]+):)(?P<share>[0-9.]+)%", re.ASCII)
CYCLES: Final = 6
"""Number of past cycles whose measured obsolete shares correct the model."""


class MeasuredCensus(NamedTuple):
    """A census, the settings of the cycle, and the measured number of fetches per period."""

    census: Census
    cycle: CycleTable
    fetches: int
    recrawls: int
    """Fetches of known pages per period."""


def has_budget(store: FrontierStore) -> bool:
    """Return whether the policy file sets a capacity. Return True if the store contains no readable policy file."""
    cycle = _cycle(store)
    return cycle is None or cycle.capacity_pages_per_period is not None


def measured_plan(store: FrontierStore, *, at: float) -> dict[str, Any] | None:
    """Return a plan for the measured number of fetches, or None if too little was measured.

    The dictionary has the keys of a crawl's plan, and the keys `in_force` (False) and `capacity` (pages per period).
    """
    # These imports take 0.5 s, and only a plan needs them.
    from webfountain.frontier.planning.make_plan import make_plan  # noqa: PLC0415
    from webfountain.frontier.planning.plan import Bounds  # noqa: PLC0415

    measured = measured_census(store, at=at)
    if measured is None:
        return None
    capacity = measured.fetches
    cycle = msgspec.structs.replace(measured.cycle, capacity_pages_per_period=capacity)
    try:
        plan = make_plan(measured.census, at=at, cycle=cycle, bounds=Bounds(), clocks=None)
    except NotConverged:
        return None
    found = plan_document(store, plan, at=at)
    rate = counted(capacity, "page")
    words = f"not in force, because no budget is set; with the measured rate of {rate} per period: {found['words']}"
    return {**found, "words": words, "in_force": False, "capacity": capacity}


def measured_census(store: FrontierStore, *, at: float) -> MeasuredCensus | None:
    """Return the census of the last cycle, or None if too little was measured."""
    from webfountain.frontier.batch import CensusSnapshot  # noqa: PLC0415  numpy, 0.1 s
    from webfountain.frontier.planning.make_plan import census_of, fetches_per_period  # noqa: PLC0415
    from webfountain.frontier.planning.planner import FEWEST_PAGES  # noqa: PLC0415

    cycle, buckets = _cycle(store), store.census.buckets()
    if cycle is None or sum(each.pages for each in buckets.values()) < FEWEST_PAGES:
        return None
    rows = store.census.rows(since=int(at // cycle.period_s) - cycle.periods)
    fetches = fetches_per_period(rows, at=at, period_s=cycle.period_s, known=False)
    if not fetches:
        return None
    recrawls = fetches_per_period(rows, at=at, period_s=cycle.period_s, known=True)
    taken = CensusSnapshot(at, buckets, rows, store.census.statistics().pages["never-crawled"])
    return MeasuredCensus(census_of(taken, cycle), cycle, max(round(fetches), 1), round(recrawls))


def _cycle(store: FrontierStore) -> CycleTable | None:
    kept = policy_in_force(store)
    try:
        return None if kept is None else kept.read().cycle
    except WebfountainError:
        return None  # its seeds file is on another machine


def goal_of(text: str) -> Goal:
    """Parse a goal, such as "obsolete=2%" or "older=7d:5%". With the goal "older=7d:5%", at most 5 % of the copies may
    be out of date for more than 7 days.

    Raise InputError if the text has another form.
    """
    from webfountain.core.goals import Goal  # noqa: PLC0415  numpy, 0.1 s

    found = _GOAL.fullmatch(text.strip())
    wrong = InputError(f"--goal: {text!r} is not a goal (allowed: obsolete=2% or older=7d:5%, from 0 to 100 %)")
    if found is None:
        raise wrong
    try:
        share = float(found["share"]) / 100.0
        age_s = 0.0 if found["age"] is None else PositiveDuration.parse(found["age"])
    except ValueError as error:
        raise wrong from error
    if not 0.0 < share < 1.0:
        raise wrong
    return Goal(share, age_s)


def goal_document(store: FrontierStore, goal: Goal, *, at: float) -> dict[str, Any] | None:
    """Return the cost of a goal, or None if too little was measured.

    `correction` is the measured obsolete share of the last cycles, divided by the share that the model of independent
    pages predicts.
    """
    from webfountain.core.census import change_rates  # noqa: PLC0415  numpy, 0.1 s
    from webfountain.core.goals import PageClasses, correction_of, cost_of, share_at  # noqa: PLC0415

    measured = measured_census(store, at=at)
    if measured is None:
        return None
    pages = PageClasses(measured.census.pages, change_rates(measured.census, measured.cycle.fastest_s))
    period = measured.cycle.period_s
    rate = measured.recrawls / period
    kept = published(store.board.value(FORECAST))
    cycles = [] if kept is None else [cycle.found for cycle in kept.forecast.cycles[-CYCLES:]]
    correction = correction_of(sum(cycles) / len(cycles), pages, rate) if cycles else 1.0
    cost = cost_of(goal, pages, correction=correction)
    return {
        "goal": goal.share,
        "age_s": goal.age_s,
        "pages": float(pages.count.sum()),
        "period_s": period,
        "fetches_now": measured.recrawls,
        "share_now": min(correction * share_at(goal.age_s, pages, rate), 1.0),
        "correction": correction,
        "cycles": len(cycles),
        "fetches": None if cost is None else cost.fetches_per_s * period,
        "less_fetches": None if cost is None else cost.less_fetches_per_s * period,
        "less_share": None if cost is None else min(cost.less_share, 1.0),
    }


def goal_words(found: dict[str, Any]) -> str:
    age = spell_duration(found["age_s"])
    what = "are obsolete" if not found["age_s"] else f"have been out of date for more than {age}"
    share = f"{found['share_now']:.2%} of {found['pages']:,.0f} copies {what}"
    now = f"at {found['fetches_now']:,} fetches per period {share}"
    basis = (
        "if pages change independently" if not found["cycles"] else f"corrected by {counted(found['cycles'], 'cycle')}"
    )
    if found["fetches"] is None:
        return f"{now} ({basis}); no number of fetches reaches {found['goal']:.2%}"
    return (
        f"{now} ({basis}); {found['goal']:.2%} takes {found['fetches']:,.0f} per period; "
        f"{found['less_fetches']:,.0f} would leave {found['less_share']:.2%}"
    )
