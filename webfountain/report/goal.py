"""What a goal of freshness takes: fetches per period, beside those of now, and what a little less would save.

`webfountain plan show --goal` answers from the census of the store, whether a crawl runs or not. Nothing is stored.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from webfountain.core.forecast import published
from webfountain.errors import InputError
from webfountain.policy.units import PositiveDuration, spell_duration
from webfountain.report.plurals import counted
from webfountain.store.contract import FORECAST

if TYPE_CHECKING:
    from webfountain.core.goals import Goal
    from webfountain.store.contract import FrontierStore

__all__ = ["goal_document", "goal_of", "goal_words"]

_GOAL: Final = re.compile(r"(?:obsolete=|older=(?P<age>[^:]+):)(?P<share>[0-9.]+)%", re.ASCII)
CYCLES: Final = 6
"""Number of the last cycles whose found share corrects the model."""
LEAST_SHARE: Final = 1e-4


def goal_of(text: str) -> Goal:
    """Read "obsolete=2%" or "older=7d:5%": at most 5 % of the copies may have been out of date for more than 7 days.

    Raises InputError if it is neither.
    """
    from webfountain.core.goals import Goal  # noqa: PLC0415  numpy, 0.1 s

    found = _GOAL.fullmatch(text.strip())
    wrong = InputError(f"--goal: {text!r} is neither like obsolete=2% nor like older=7d:5%, from 0 to 100 %")
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

    `correction` is the share that the last cycles found over that of independent pages at the present rate.
    """
    from webfountain.core.census import change_rates  # noqa: PLC0415  numpy, 0.1 s
    from webfountain.core.goals import PageClasses, cost_of, share_at  # noqa: PLC0415
    from webfountain.report.plan import measured_census  # noqa: PLC0415

    measured = measured_census(store, at=at)
    if measured is None:
        return None
    pages = PageClasses(measured.census.pages, change_rates(measured.census, measured.cycle.fastest_s))
    period = measured.cycle.period_s
    rate = measured.recrawls / period
    by_model = max(share_at(0.0, pages, rate), LEAST_SHARE)
    kept = published(store.board.value(FORECAST))
    cycles = [] if kept is None else [cycle.found for cycle in kept.forecast.cycles[-CYCLES:]]
    correction = max(sum(cycles) / len(cycles), LEAST_SHARE) / by_model if cycles else 1.0
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
    now = (
        f"at {found['fetches_now']:,} fetches a period {found['share_now']:.2%} of {found['pages']:,.0f} copies {what}"
    )
    basis = "by independent pages" if not found["cycles"] else f"corrected by {counted(found['cycles'], 'cycle')}"
    if found["fetches"] is None:
        return f"{now} ({basis}); no number of fetches reaches {found['goal']:.2%}"
    return (
        f"{now} ({basis}); {found['goal']:.2%} takes {found['fetches']:,.0f} a period; "
        f"{found['less_fetches']:,.0f} would leave {found['less_share']:.2%}"
    )
