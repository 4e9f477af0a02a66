"""Making a plan: from a census to weights, quotas, clocks, a price and a forecast. A pure function, for any thread.

Place in the walk (DESIGN 4): the store's census -> `core.census` -> optimiser -> quotas -> **the plan**, which a
schedule turns into what is due. The controller calls it beside the crawl and `simulate revisit` for its strategies 1
to 3, so that both spend a budget alike. At 10^7 pages it costs what it costs at 10^3: the census is by bucket.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.buckets import BUCKETS, intervals_of, of_every_bucket
from webfountain.core.census import Census, change_rates, instance_from, obsolete_of
from webfountain.core.phases import Phases
from webfountain.errors import NotConverged
from webfountain.frontier.planning.plan import Forecast, Plan, pack_phases

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.core.model import Instance
    from webfountain.core.optimizer import Solution, Solver
    from webfountain.core.quotas import Quotas
    from webfountain.frontier.batch import CensusTaken
    from webfountain.frontier.planning.schedule import Bounds
    from webfountain.policy.tables import CycleTable

    Array = npt.NDArray[np.float64]

__all__ = ["census_of", "make_plan"]

STALE_SHARE: Final = 0.25
"""Strategy 2 while a larger share of the collection is obsolete (Edwards 2001: bring it down, then hold it)."""
UNSEEN: Final = 0.5
"""Changes believed of a page in the time that its collection was watched, though none was found."""
_NEVER_S: Final = 1e12
"""An interval of 30,000 years stands for none."""


def make_plan(
    census: Census,
    *,
    at: float,
    cycle: CycleTable,
    bounds: Bounds,
    clocks: Phases | None,
    solver: Solver = "auto",
    seed: int = 0,
) -> Plan:
    """The plan of a cycle that begins at `at` (UTC seconds). Imports scipy when first used.

    Parameters
    ----------
    cycle : length, period, strategy and capacity; the capacity must be set
    clocks : those of the plan before, which go on; None: this is the first
    solver, seed : as for `core.optimizer.solve`

    Raises
    ------
    NotConverged
        when no solver got further than the uniform plan; the last plan should stay.
    """
    # 0.5 s of imports that a crawl does not need to start.
    from webfountain.core.optimizer import solve  # noqa: PLC0415
    from webfountain.core.quotas import make_quotas  # noqa: PLC0415

    begun = time.thread_time()
    rates = change_rates(census, cycle.fastest_s)
    strategy = _strategy(census, rates, cycle)
    assert cycle.capacity_pages_per_period is not None
    instance = instance_from(
        census,
        strategy=strategy,
        periods=cycle.periods,
        period=cycle.period_s,
        fastest=cycle.fastest_s,
        capacity=float(cycle.capacity_pages_per_period),
        in_pages=True,
    )
    solution = solve(instance, solver=solver, seed=seed)
    if solution.status != "solved":
        raise NotConverged(f"the plan of {len(rates)} buckets and {cycle.periods} periods: {solution.message}")
    quotas = make_quotas(instance, solution.x, solution.z)
    if cycle.strategy == "fountain":
        quotas = _all_spent(quotas, cycle.capacity_pages_per_period)
    watched = cycle.period_s if clocks is None else max(at - float(clocks.times[0]), cycle.period_s)
    price, every = _priced(census, rates, quotas, least=UNSEEN / watched, cycle=cycle, bounds=bounds)
    return Plan(
        start=at,
        period=cycle.period_s,
        strategy=strategy,
        fountain=cycle.strategy == "fountain",
        weights=tuple(quotas.weight.tolist()),
        recrawl=tuple(quotas.recrawl.sum(axis=1).tolist()),
        fresh=tuple(quotas.fresh.tolist()),
        buckets=tuple(census.buckets.tolist()),
        pages=tuple(census.pages.tolist()),
        rates=tuple(rates.tolist()),
        quotas=tuple(tuple(row) for row in quotas.recrawl.tolist()),
        forecast=_forecast(instance, solution, census.mean_age / cycle.period_s),
        objective=float(solution.objective),
        bound=float(solution.bound),
        gap=float(solution.gap),
        message=solution.message,
        seconds=time.thread_time() - begun,
        price=price,
        intervals=tuple(np.minimum(every, _NEVER_S).tolist()),
        phases=pack_phases(_clocks(census, quotas, at, cycle, clocks)),
    )


def _all_spent(quotas: Quotas, capacity: int) -> Quotas:
    """What no new page takes goes to known ones: they are fetched by urgency, as many as the budget has room for."""
    recrawl = capacity - quotas.fresh
    planned = quotas.recrawl.sum(axis=1)
    share = recrawl / np.maximum(planned, 1)
    by_bucket = np.rint(quotas.recrawl * share[:, None]).astype(np.int64)
    by_bucket[:, -1] += recrawl - by_bucket.sum(axis=1)
    return replace(quotas, recrawl=by_bucket, weight=quotas.fresh / capacity)


def _priced(
    census: Census, rates: Array, quotas: Quotas, *, least: float, cycle: CycleTable, bounds: Bounds
) -> tuple[float, Array]:
    """(price, (256,) intervals): every fetch of the planned recrawls buys the same fresh time; s.

    No page is believed to change at less than `least`, per second: the pages of a site change together, so that many
    of them seen unchanged tell no more of the next release than one.
    """
    from webfountain.core.forecast import interval_of_rest, intervals_at_price, price_of_budget  # noqa: PLC0415

    budget = float(quotas.recrawl.sum()) / (cycle.periods * cycle.period_s)
    feared = np.maximum(rates, least)
    price = price_of_budget(census.pages, feared, budget, longest=bounds.longest, shortest=bounds.shortest)
    defined = intervals_of(np.arange(BUCKETS), cycle.fastest_s)
    # An empty bucket is believed to be off its definition as its planned neighbours are.
    off = np.exp(of_every_bucket(census.buckets, np.log(rates * defined[census.buckets])))
    rest = interval_of_rest(census.pages, feared, price, budget)
    return price, intervals_at_price(np.maximum(off / defined, least), price, longest=rest)


def _forecast(instance: Instance, solution: Solution, mean_age: Array) -> Forecast:
    """What the plan promises; `mean_age` (B,) in periods."""
    from webfountain.core.forecast import obsolete_oldest_first  # noqa: PLC0415
    from webfountain.core.model import simulate_plan  # noqa: PLC0415

    path = simulate_plan(instance, solution.x, solution.z)
    return Forecast(
        obsolete=tuple(path.y[1:].sum(axis=1).tolist()),
        obsolete_oldest_first=tuple(obsolete_oldest_first(instance, path.x, path.z, mean_age=mean_age).tolist()),
        never_crawled=tuple(path.n[1:].tolist()),
        pages=tuple(path.b[1:].sum(axis=1).tolist()),
    )


def _clocks(census: Census, quotas: Quotas, at: float, cycle: CycleTable, clocks: Phases | None) -> Phases:
    """The phase clocks of all buckets, going on from those before, else from the buckets' own rates."""
    speed = 1.0 / intervals_of(np.arange(BUCKETS), cycle.fastest_s)
    running = Phases.running(speed, start=at) if clocks is None else clocks
    increments = np.array([of_every_bucket(census.buckets, row) for row in quotas.increment])
    return running.planned(increments, start=at, period=cycle.period_s)


def census_of(taken: CensusTaken, cycle: CycleTable) -> Census:
    """The census by non-empty bucket, with the counts of the periods that `rows` holds."""
    buckets = np.array(sorted(bucket for bucket, each in taken.buckets.items() if each.pages), dtype=np.int64)
    index = {int(bucket): i for i, bucket in enumerate(buckets)}
    pages = np.array([taken.buckets[int(bucket)].pages for bucket in buckets], dtype=np.float64)
    crawled = np.array([taken.buckets[int(bucket)].sum_last_crawled for bucket in buckets])
    counts = np.zeros((6, len(buckets)))
    new = np.zeros(3)
    for row in taken.rows:
        if row.bucket is None:
            new += (row.fetches, row.seconds, row.links)
        elif row.bucket in index:
            counted = (row.fetches, row.changes, row.watched, row.seconds, row.links, row.births)
            counts[:, index[row.bucket]] += counted
    return Census(
        buckets,
        pages,
        taken.at - crawled / pages,
        fetches=counts[0],
        changes=counts[1],
        watched=counts[2],
        seconds=counts[3],
        links=counts[4],
        births=counts[5],
        new_fetches=float(new[0]),
        new_seconds=float(new[1]),
        new_links=float(new[2]),
        waiting=float(taken.waiting),
        arrivals=_arrivals(taken, cycle.period_s),
    )


def _arrivals(taken: CensusTaken, period_s: float) -> float:
    """URLs from outside per period; the first counted one is left out, for it may have brought the seeds."""
    first = min((row.period for row in taken.rows), default=0) + 1
    came = sum(row.births for row in taken.rows if row.bucket is None and row.period >= first)
    return came / max(taken.at / period_s - first, 1.0)


def _strategy(census: Census, rates: Array, cycle: CycleTable) -> int:
    """The strategy to solve for: as the policy says, or 2 while the collection is stale and 3 to hold it."""
    if cycle.strategy != "fountain":
        return cycle.strategy
    stale = float(obsolete_of(census, rates).sum()) + census.waiting
    return 2 if stale > STALE_SHARE * (float(census.pages.sum()) + census.waiting) else 3
