"""Small plans and censuses for the tests of plan, schedules and controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webfountain.frontier.batch import CensusSnapshot
from webfountain.frontier.planning.make_plan import census_of, make_plan
from webfountain.frontier.planning.plan import Bounds, Forecast, Plan, pack_phases
from webfountain.policy.tables import CycleTable
from webfountain.policy.units import PositiveDuration
from webfountain.records import CensusRow
from webfountain.store.answers import BucketCensus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webfountain.core.phases import Phases

DAY = 86_400.0


def cycle_of(**values: Any) -> CycleTable:
    return CycleTable(**({"period": PositiveDuration(86_400), "capacity_pages_per_period": 100} | values))


def census(
    pages: Mapping[int, int],
    *,
    at: float = 100 * DAY,
    age: float = 3 * DAY,
    waiting: int = 0,
    rows: Iterable[CensusRow] = (),
    periods: int = 14,
    checked: float = 0.2,
) -> CensusSnapshot:
    """Buckets with `pages` each; `checked` of them were checked a day, one in ten changed."""
    buckets = {bucket: BucketCensus(n, n * (at - age)) for bucket, n in pages.items()}
    counted = [
        CensusRow(int(at // DAY) - day, bucket, int(n * checked), int(n * checked / 10), 0.2 * n * checked,
                  int(n * checked / 50), 1, n * checked * age)
        for bucket, n in pages.items()
        for day in range(periods)
    ]  # fmt: skip
    return CensusSnapshot(at, buckets, counted + list(rows), waiting)


def plan_of(
    taken: CensusSnapshot,
    *,
    shortest: float = 0.0,
    longest: float = float("inf"),
    clocks: Phases | None = None,
    **values: Any,
) -> Plan:
    cycle = cycle_of(**values)
    bounds = Bounds(shortest, longest)
    return make_plan(census_of(taken, cycle), at=taken.at, cycle=cycle, bounds=bounds, clocks=clocks)


def hand_made(
    phases: Phases,
    *,
    intervals: tuple[float, ...] | None = None,
    recrawl: tuple[int, ...] = (10, 20),
    fresh: tuple[int, ...] = (5, 0),
    start: float = 0.0,
    period: float = DAY,
    waiting: tuple[float, ...] = (50.0, 50.0),
) -> Plan:
    """A plan of two periods, written by hand."""
    planned = [r + f for r, f in zip(recrawl, fresh, strict=True)]
    weights = tuple(f / n if n else 0.5 for f, n in zip(fresh, planned, strict=True))
    return Plan(
        start=start, period=period, strategy=3, fountain=False, weights=weights, recrawl=recrawl, fresh=fresh,
        buckets=(7,), pages=(100.0,), rates=(1e-5,), quotas=((10,), (20,)),
        forecast=Forecast((9.0, 8.0), (7.0, 6.0), waiting, (100.0, 105.0)),
        objective=8.0, bound=7.5, gap=0.06, message="by hand", seconds=0.1, price=3.0,
        intervals=intervals or (DAY,) * 256, phases=pack_phases(phases),
    )  # fmt: skip
