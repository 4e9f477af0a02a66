"""Make a plan from a census: divide the fetches of the next cycle among buckets of pages.

`make_plan` has no side effects and can run in any thread. The time to make a plan does not depend on the number of
pages, because the census has one row per bucket.
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import ceil, exp, log
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.core.buckets import BUCKETS, intervals_of, of_every_bucket
from webfountain.core.census import Census, change_rates, instance_from, obsolete_of
from webfountain.core.goals import LESS, PageClasses, correction_of, cost_of, share_at
from webfountain.core.phases import Phases
from webfountain.errors import NotConverged
from webfountain.frontier.planning.plan import Forecast, GoalCost, Plan, pack_phases

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.core.goals import Goal
    from webfountain.core.model import Instance
    from webfountain.core.optimizer import Solution, Solver
    from webfountain.core.quotas import Quotas
    from webfountain.frontier.batch import CensusSnapshot
    from webfountain.frontier.planning.plan import Bounds
    from webfountain.policy.tables import CycleTable
    from webfountain.records import CensusRow

    Array = npt.NDArray[np.float64]

__all__ = ["STALE_SHARE", "UNSEEN", "Aim", "Array", "census_of", "fetches_per_period", "make_plan"]

STALE_SHARE: Final = 0.25
"""Share of obsolete pages in a collection above which the plan uses strategy 2 (Edwards 2001)."""
UNSEEN: Final = 0.5
"""Assumed number of changes of pages on which no change was ever observed."""
LEARNED: Final = 0.5
"""Weight of the newest measurement in `GoalCost.correction`. If old measurements had no weight, the number of planned
fetches would oscillate from cycle to cycle.
"""
_NEVER_S: Final = 1e12
"""Interval in a plan for pages that are never fetched again, in seconds."""


class Aim(NamedTuple):
    """The goal that a policy file sets, and its cost in the last plan."""

    goal: Goal
    last: GoalCost | None = None


def make_plan(
    census: Census,
    *,
    at: float,
    cycle: CycleTable,
    bounds: Bounds,
    clocks: Phases | None,
    solver: Solver = "auto",
    seed: int = 0,
    aim: Aim | None = None,
) -> Plan:
    """Return the plan of a cycle that begins at `at` (UTC seconds). The first call of `make_plan` imports scipy.

    Parameters
    ----------
    cycle : length, period, strategy and capacity; the capacity must be set
    clocks : the clocks of the last plan, or None for the first plan
    solver, seed : as for `core.optimizer.solve`
    aim : the goal, if the policy has a goal; it limits the fetches of known pages

    Raises
    ------
    NotConverged
        if no solver improves on the uniform plan; keep the last plan then.
    """
    begun = time.thread_time()
    rates = change_rates(census, cycle.fastest_s)
    strategy = _strategy(census, rates, cycle)
    instance, solution = _solved(census, strategy, cycle, solver, seed)
    quotas, cost = _aimed(aim, census, rates, _quotas(instance, solution, census, cycle), period_s=cycle.period_s)
    price, every = _priced(census, rates, quotas, at=at, clocks=clocks, cycle=cycle, bounds=bounds)
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
        goal=cost,
    )


def _aimed(
    aim: Aim | None, census: Census, rates: Array, quotas: Quotas, *, period_s: float
) -> tuple[Quotas, GoalCost | None]:
    """Limit the fetches of known pages to the number that the goal needs. Return the new quotas, and the cost of the
    goal.
    """
    if aim is None:
        return quotas, None
    goal, last = aim
    room = float(quotas.recrawl.sum(axis=1).mean())
    pages = PageClasses(census.pages, rates)
    correction = 1.0 if last is None else last.correction
    if census.found is not None and census.recrawls:
        measured = correction_of(census.found, pages, census.recrawls / period_s)
        correction = measured if last is None else exp(LEARNED * log(measured) + (1.0 - LEARNED) * log(correction))

    def share(fetches: float) -> float:
        return min(correction * share_at(goal.age_s, pages, fetches / period_s), 1.0)

    cost = cost_of(goal, pages, correction=correction)
    fetches = None if cost is None else cost.fetches_per_s * period_s
    # At least one fetch is planned, or a later change of the pages would never be found.
    planned = room if fetches is None else min(max(fetches, 1.0), room)
    less = LESS * planned
    expected = GoalCost(goal.share, goal.age_s, correction, fetches, planned, share(planned), less, share(less))
    return _limited(quotas, ceil(planned)), expected


def _limited(quotas: Quotas, most: int) -> Quotas:
    """Return the quotas, reduced to at most `most` fetches of known pages per period."""
    recrawl = quotas.recrawl.sum(axis=1)
    share = np.minimum(most / np.maximum(recrawl, 1), 1.0)
    by_bucket = np.floor(quotas.recrawl * share[:, None]).astype(np.int64)
    by_bucket[:, -1] += np.minimum(recrawl, most) - by_bucket.sum(axis=1)
    planned = by_bucket.sum(axis=1) + quotas.fresh
    return replace(quotas, recrawl=by_bucket, weight=quotas.fresh / np.maximum(planned, 1))


def _solved(census: Census, strategy: int, cycle: CycleTable, solver: Solver, seed: int) -> tuple[Instance, Solution]:
    # These imports take 0.5 s, and a crawl does not need them to start.
    from webfountain.core.optimizer import solve  # noqa: PLC0415

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
        raise NotConverged(f"the plan of {len(census.buckets)} buckets and {cycle.periods} periods: {solution.message}")
    return instance, solution


def _quotas(instance: Instance, solution: Solution, census: Census, cycle: CycleTable) -> Quotas:
    """Convert the solution of the model to whole numbers of fetches that use the whole budget."""
    from webfountain.core.quotas import make_quotas  # noqa: PLC0415

    assert cycle.capacity_pages_per_period is not None
    quotas = make_quotas(instance, solution.x, solution.z)
    if cycle.strategy == "fountain":
        return _all_spent(quotas, cycle.capacity_pages_per_period)
    return _left_over(quotas, census.pages, cycle.capacity_pages_per_period)


def _all_spent(quotas: Quotas, capacity: int) -> Quotas:
    """Give known pages all fetches that never-crawled pages do not need."""
    recrawl = capacity - quotas.fresh
    planned = quotas.recrawl.sum(axis=1)
    share = recrawl / np.maximum(planned, 1)
    by_bucket = np.rint(quotas.recrawl * share[:, None]).astype(np.int64)
    by_bucket[:, -1] += recrawl - by_bucket.sum(axis=1)
    return replace(quotas, recrawl=by_bucket, weight=quotas.fresh / capacity)


def _left_over(quotas: Quotas, pages: Array, capacity: int) -> Quotas:
    """Divide the unused part of the budget equally among all known pages.

    Strategy 2 considers only the state at the end of the cycle, so it may leave budget of earlier periods unused.
    """
    known = float(pages.sum())
    left = np.clip(capacity - quotas.fresh - quotas.recrawl.sum(axis=1), 0, int(known))
    if not left.any():
        return quotas
    shares = np.cumsum(np.outer(left, pages / known), axis=1).round()  # the last column is `left`
    recrawl = quotas.recrawl + np.diff(shares, axis=1, prepend=0.0).astype(np.int64)
    planned = recrawl.sum(axis=1) + quotas.fresh
    weight = np.divide(quotas.fresh, planned, out=np.full(len(planned), 0.5), where=planned > 0)
    return replace(quotas, recrawl=recrawl, weight=weight, increment=quotas.increment + (left / known)[:, None])


def _priced(
    census: Census, rates: Array, quotas: Quotas, *, at: float, clocks: Phases | None, cycle: CycleTable, bounds: Bounds
) -> tuple[float, Array]:
    """Return the price of a fetch, in seconds, and the interval between fetches for each of the 256 buckets, in
    seconds. With the returned intervals, each fetch adds an equal time in which a copy is fresh: the price.
    """
    from webfountain.core.fetch_price import interval_of_rest, intervals_at_price, price_of_budget  # noqa: PLC0415

    least = UNSEEN / max(cycle.period_s, 0.0 if clocks is None else at - float(clocks.times[0]))
    budget = float(quotas.recrawl.sum()) / (cycle.periods * cycle.period_s)
    feared = np.maximum(rates, least)
    price = price_of_budget(census.pages, feared, budget, longest=bounds.longest, shortest=bounds.shortest)
    defined = intervals_of(np.arange(BUCKETS), cycle.fastest_s)
    # An empty bucket has no measured rate. It is assumed to deviate from its nominal rate as its neighbours' rates do.
    off = np.exp(of_every_bucket(census.buckets, np.log(rates * defined[census.buckets])))
    rest = interval_of_rest(census.pages, feared, price, budget)
    return price, intervals_at_price(np.maximum(off / defined, least), price, longest=rest)


def _forecast(instance: Instance, solution: Solution, mean_age: Array) -> Forecast:
    """Return the plan's forecast; `mean_age` (B,) is in periods."""
    from webfountain.core.model import obsolete_oldest_first, simulate_plan  # noqa: PLC0415

    path = simulate_plan(instance, solution.x, solution.z)
    return Forecast(
        obsolete=tuple(path.y[1:].sum(axis=1).tolist()),
        obsolete_oldest_first=tuple(obsolete_oldest_first(instance, path.x, path.z, mean_age=mean_age).tolist()),
        never_crawled=tuple(path.n[1:].tolist()),
        pages=tuple(path.b[1:].sum(axis=1).tolist()),
    )


def _clocks(census: Census, quotas: Quotas, at: float, cycle: CycleTable, clocks: Phases | None) -> Phases:
    """Return the phase clocks of all buckets, which continue the clocks of the last plan. Before the first plan, the
    clocks run at nominal rates.
    """
    speed = 1.0 / intervals_of(np.arange(BUCKETS), cycle.fastest_s)
    running = Phases.running(speed, start=at) if clocks is None else clocks
    increments = np.array([of_every_bucket(census.buckets, row) for row in quotas.increment])
    return running.planned(increments, start=at, period=cycle.period_s)


def census_of(taken: CensusSnapshot, cycle: CycleTable) -> Census:
    """Convert a census of the store to arrays, with one entry for each bucket that has pages."""
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
            counted = (row.fetches, row.changes, row.observed_time, row.seconds, row.links, row.births)
            counts[:, index[row.bucket]] += counted
    return Census(
        buckets,
        pages,
        taken.at - crawled / pages,
        fetches=counts[0],
        changes=counts[1],
        observed_time=counts[2],
        seconds=counts[3],
        links=counts[4],
        births=counts[5],
        new_fetches=float(new[0]),
        new_seconds=float(new[1]),
        new_links=float(new[2]),
        waiting=float(taken.waiting),
        arrivals=_arrivals(taken, cycle.period_s),
        recrawls=fetches_per_period(taken.rows, at=taken.at, period_s=cycle.period_s, known=True),
        found=taken.found,
    )


def fetches_per_period(rows: Sequence[CensusRow], *, at: float, period_s: float, known: bool) -> float:
    """Return the mean number of fetches per period: of all pages, or only of known pages if `known` is True."""
    begun = min((row.period for row in rows if row.fetches), default=None)
    if begun is None:
        return 0.0
    made = sum(row.fetches for row in rows if not known or row.bucket is not None)
    return made / max(at / period_s - begun, 1.0)


def _arrivals(taken: CensusSnapshot, period_s: float) -> float:
    """Return how many URLs per period come from seeds and sitemaps. The crawl's first period is ignored, because most
    seeds are loaded then.
    """
    first = min((row.period for row in taken.rows), default=0) + 1
    came = sum(row.births for row in taken.rows if row.bucket is None and row.period >= first)
    return came / max(taken.at / period_s - first, 1.0)


def _strategy(census: Census, rates: Array, cycle: CycleTable) -> int:
    """Return the strategy of the model (1, 2 or 3). The strategy `fountain` uses strategy 2 of the model if a large
    share of the collection is obsolete, else strategy 3.
    """
    if cycle.strategy != "fountain":
        return cycle.strategy
    stale = float(obsolete_of(census, rates).sum()) + census.waiting
    return 2 if stale > STALE_SHARE * (float(census.pages.sum()) + census.waiting) else 3
