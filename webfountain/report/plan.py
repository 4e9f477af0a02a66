"""A plan as plain data: decision, prediction, results so far, and the cost of a goal.

The controller of a crawl makes the plan in force; this module reads it from the store, even while a crawl runs. A crawl
without `cycle.capacity_pages_per_period` follows no plan. For such a crawl, `measured_plan` computes the plan for the
measured rate of fetches. Nothing of this is stored, and no crawl follows it. `goal_document` computes the cost of a
goal (`plan show --goal`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from webfountain.core.forecast import published
from webfountain.errors import InputError, NotConverged, WebfountainError
from webfountain.policy.units import PositiveDuration, spell_duration
from webfountain.report.plurals import counted
from webfountain.report.store_reading import policy_in_force
from webfountain.store.contract import FORECAST, PLAN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.core.census import Census
    from webfountain.core.forecast import Outlook
    from webfountain.core.goals import Goal
    from webfountain.frontier.planning.plan import GoalCost, Plan
    from webfountain.policy.tables import CycleTable
    from webfountain.store.contract import FrontierStore

__all__ = [
    "MeasuredCensus",
    "aim_words",
    "goal_document",
    "goal_of",
    "goal_words",
    "has_budget",
    "measured_census",
    "measured_plan",
    "plan_document",
    "plan_in_force",
    "plan_of",
    "plan_words",
]

_GOAL: Final = re.compile(r"(?:obsolete=|older=(?P<age>[^:]+):)(?P<share>[0-9.]+)%", re.ASCII)
CYCLES: Final = 6
"""Number of past cycles whose measured obsolete shares correct the model."""


class MeasuredCensus(NamedTuple):
    """A census, its cycle, and the fetches per period during the census."""

    census: Census
    cycle: CycleTable
    fetches: int
    recrawls: int
    """Fetches of known pages per period."""


def plan_in_force(store: FrontierStore, *, at: float) -> dict[str, Any] | None:
    """Return the plan in a store at the time `at` (UTC seconds), or None before the first plan.

    Raises
    ------
    StoreVersion
        if another version of webfountain wrote it.
    """
    plan = plan_of(store)
    return None if plan is None else plan_document(store, plan, at=at)


def plan_of(store: FrontierStore) -> Plan | None:
    """Return the plan in a store, or None before the first plan. Raise StoreVersion as `plan_in_force` does."""
    data = store.board.value(PLAN)
    if data is None:
        return None
    from webfountain.frontier.planning.plan import decode_plan  # noqa: PLC0415  numpy, 0.1 s

    return decode_plan(data)


def plan_document(store: FrontierStore, plan: Plan, *, at: float) -> dict[str, Any]:
    """Return a plan as `plan show` prints it, with the results so far."""
    kept = published(store.board.value(FORECAST)) if plan.fountain else None
    foretold = None if kept is None else kept.forecast.foretold
    return {
        "words": plan_words(plan, at=at, foretold=foretold),
        "foretold": None if kept is None else _outlook(kept.forecast.foretold, begin=kept.forecast.begin),
        "cycles": []
        if kept is None
        else [
            {**_outlook(cycle.foretold, begin=cycle.begin), "shown": cycle.shown, "found": cycle.found}
            for cycle in kept.forecast.cycles
        ],
        "strategy": plan.strategy,
        "fountain": plan.fountain,
        "start": plan.start,
        "end": plan.end,
        "period_s": plan.period,
        "periods": plan.periods,
        "period": plan.period_at(at) + 1,
        "buckets": len(plan.buckets),
        "pages": sum(plan.pages),
        "objective": plan.objective,
        "bound": plan.bound,
        "gap": plan.gap,
        "seconds": plan.seconds,
        "message": plan.message,
        "goal": None if plan.goal is None else {**msgspec.structs.asdict(plan.goal), "words": aim_words(plan.goal)},
        "by_period": list(_periods(store, plan)),
    }


def _periods(store: FrontierStore, plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield each period with its quotas, its prediction and its results."""
    forecast = plan.forecast
    for number, happened in enumerate(_happened(store, plan)):
        yield {
            "period": number + 1,
            "weight": plan.weights[number],
            "recrawl": plan.recrawl[number],
            "new": plan.fresh[number],
            "obsolete": forecast.obsolete[number],
            "obsolete_oldest_first": forecast.obsolete_oldest_first[number],
            "never_crawled": forecast.never_crawled[number],
            "known": forecast.pages[number],
            **happened,
        }


def _outlook(outlook: Outlook, *, begin: float) -> dict[str, Any]:
    """Return the forecast of the obsolete share in a cycle: median, mean, and an 80 % interval."""
    return {
        "begin": begin,
        "obsolete": outlook.median,
        "mean": outlook.mean,
        "low": outlook.low,
        "high": outlook.high,
        "evidence": outlook.cycles,
    }


def plan_words(plan: Plan, *, at: float, foretold: Outlook | None = None) -> str:
    """Return a plan in a few words, for one line."""
    name = "fountain" if plan.fountain else f"strategy {plan.strategy}"
    now = plan.period_at(at)
    words = f"{name}, period {now + 1} of {plan.periods}"
    if foretold is not None:
        rests = f"from {counted(foretold.cycles, 'cycle')}" if foretold.cycles else "before the first whole cycle"
        likely = f"{foretold.low:.1%} to {foretold.high:.1%} with a probability of 80 %, {rests}"
        return f"{words}, forecasts {foretold.median:.1%} obsolete pages in its cycle ({likely})"
    if plan.fountain:  # a model of independent pages cannot foresee a release
        return words
    known = plan.forecast.pages[now]
    share = plan.forecast.obsolete_oldest_first[now] / known if known else 0.0
    return f"{words}, forecasts {share:.1%} obsolete pages at its end"


def aim_words(goal: GoalCost) -> str:
    """Return the cost of a policy's goal in words."""
    late = f" for longer than {spell_duration(goal.age_s)}" if goal.age_s else ""
    wanted = f"the goal of at most {goal.share:.2%} obsolete{late}"
    less = f"{goal.less_fetches:,.0f} would leave {goal.less_share:.2%}"
    if goal.fetches is None:
        return (
            f"{wanted}: no number of fetches reaches it; {goal.planned:,.0f} per period would leave {goal.expected:.2%}"
        )
    if goal.fetches > goal.planned > 1.0:
        rest = f"the capacity allows {goal.planned:,.0f}, which would leave {goal.expected:.2%}"
        return f"{wanted} takes {goal.fetches:,.0f} fetches of known pages per period; {rest}; {less}"
    return f"{wanted} takes {goal.planned:,.0f} fetches of known pages per period; {less}"


def _happened(store: FrontierStore, plan: Plan) -> list[dict[str, int]]:
    """Return fetches of known pages, fetches of new pages, and changes found, for each period of the cycle."""
    first = round(plan.start / plan.period)
    found = [{"recrawled": 0, "crawled_new": 0, "changes": 0} for _ in range(plan.periods)]
    for row in store.census.rows(since=first):
        if row.period - first < plan.periods:
            counts = found[row.period - first]
            counts["crawled_new" if row.bucket is None else "recrawled"] += row.fetches
            counts["changes"] += row.changes if row.bucket is not None else 0
    return found


def has_budget(store: FrontierStore) -> bool:
    """Return whether the policy file sets a capacity. Return True if the store contains no readable file."""
    cycle = _cycle(store)
    return cycle is None or cycle.capacity_pages_per_period is not None


def measured_plan(store: FrontierStore, *, at: float) -> dict[str, Any] | None:
    """Return the plan for the measured rate, or None if too little was measured.

    The dictionary has the keys of a plan in force, and also `in_force` (False) and `capacity` (pages per period).
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
    """Return the goal that a text states, such as "obsolete=2%" or "older=7d:5%". The second means: at most 5 % of the
    copies may be out of date for more than 7 days.

    Raise InputError if the text has neither form.
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
    pages predicts at the current rate.
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
    """Return the cost of a goal in words."""
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
