"""The plan in force as plain data: what was decided, what it predicts, what happened so far.

Read from a store, also beside the crawl that follows the plan. The controller makes plans; nothing is judged here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webfountain.frontier.planning.plan import decode_plan
from webfountain.store.contract import PLAN

if TYPE_CHECKING:
    from webfountain.frontier.planning.plan import Plan
    from webfountain.store.contract import FrontierStore

__all__ = ["plan_in_force", "plan_words"]


def plan_in_force(store: FrontierStore, *, at: float) -> dict[str, Any] | None:
    """The plan of a store at the time `at` (UTC seconds); None before the first.

    Raises
    ------
    StoreVersion
        when another version of webfountain wrote it.
    """
    data = store.value(PLAN)
    if data is None:
        return None
    plan = decode_plan(data)
    forecast = plan.forecast
    return {
        "words": plan_words(plan, at=at),
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
        "by_period": [
            {
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
            for number, happened in enumerate(_happened(store, plan))
        ],
    }


def plan_words(plan: Plan, *, at: float) -> str:
    """A plan in a few words, for a line of status or of progress."""
    name = f"fountain (from strategy {plan.strategy})" if plan.fountain else f"strategy {plan.strategy}"
    now = plan.period_at(at)
    known = plan.forecast.pages[now]
    share = plan.forecast.obsolete_oldest_first[now] / known if known else 0.0
    return f"{name}, period {now + 1} of {plan.periods}, predicts {share:.1%} obsolete at its end"


def _happened(store: FrontierStore, plan: Plan) -> list[dict[str, int]]:
    """Fetches of known and of new pages, and changes found, in each period of the cycle."""
    first = round(plan.start / plan.period)
    found = [{"recrawled": 0, "crawled_new": 0, "changes": 0} for _ in range(plan.periods)]
    for row in store.census_rows(since=first):
        if row.period - first < plan.periods:
            counts = found[row.period - first]
            counts["crawled_new" if row.bucket is None else "recrawled"] += row.fetches
            counts["changes"] += row.changes if row.bucket is not None else 0
    return found
