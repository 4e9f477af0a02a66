"""A plan as plain data: the planned fetches, the prediction, and the results so far.

The crawl makes the plan, and this module only reads it from the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from webfountain.core.forecast import published
from webfountain.policy.units import spell_duration
from webfountain.report.plurals import counted
from webfountain.store.contract import FORECAST, PLAN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.core.forecast import Outlook
    from webfountain.frontier.planning.plan import GoalCost, Plan
    from webfountain.store.contract import FrontierStore

__all__ = ["aim_words", "plan_document", "plan_in_force", "plan_of", "plan_words"]


def plan_in_force(store: FrontierStore, *, at: float) -> dict[str, Any] | None:
    """Return the plan in a store with the results up to `at` (UTC seconds), or None before the first plan.

    Raises
    ------
    StoreVersion
        if another version of webfountain wrote it.
    """
    plan = plan_of(store)
    return None if plan is None else plan_document(store, plan, at=at)


def plan_of(store: FrontierStore) -> Plan | None:
    """Return the plan in a store, or None before the first plan. Raise StoreVersion if another version of webfountain
    wrote the plan."""
    data = store.board.value(PLAN)
    if data is None:
        return None
    from webfountain.frontier.planning.plan import decode_plan  # noqa: PLC0415  numpy, 0.1 s

    return decode_plan(data)


def plan_document(store: FrontierStore, plan: Plan, *, at: float) -> dict[str, Any]:
    """Return a plan as plain data, with the results so far."""
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
    """Yield each time period with its planned fetches, its prediction and its results."""
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
    """Return the forecast share of obsolete pages in a cycle of the plan: median, mean, and 80 % interval."""
    return {
        "begin": begin,
        "obsolete": outlook.median,
        "mean": outlook.mean,
        "low": outlook.low,
        "high": outlook.high,
        "evidence": outlook.cycles,
    }


def plan_words(plan: Plan, *, at: float, foretold: Outlook | None = None) -> str:
    """Return a plan in a few words that fit into one line."""
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
    """Return in words how many fetches a policy needs to reach its freshness goal."""
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
    """Return how many fetches and changes there were in each period of the plan's cycle."""
    first = round(plan.start / plan.period)
    found = [{"recrawled": 0, "crawled_new": 0, "changes": 0} for _ in range(plan.periods)]
    for row in store.census.rows(since=first):
        if row.period - first < plan.periods:
            counts = found[row.period - first]
            counts["crawled_new" if row.bucket is None else "recrawled"] += row.fetches
            counts["changes"] += row.changes if row.bucket is not None else 0
    return found
