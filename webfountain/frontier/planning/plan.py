"""The plan of a cycle: how it is made of a census, what it predicts, how it is kept in the store.

The plan in force is plain data, written as msgpack by `put_value`, read by the next start, by `status` and by `plan
show`. A schedule (`schedule`) turns it into what is due; nothing here decides.

Making a plan: from a census to weights, quotas, clocks, a price and a forecast. A pure function, for any thread.
Place in the walk (DESIGN 4): the store's census -> `core.buckets` -> optimiser -> quotas -> **the plan**, which a
schedule turns into what is due. The controller calls it beside the crawl and `simulate revisit` for its strategies 1
to 3, so that both spend a budget alike. At 10^7 pages it costs what it costs at 10^3: the census is by bucket.

The controller: when the next plan is to be made, and from which census. One ant has it, or none where none plans.
Place in the walk (DESIGN 4): at each cycle's end it asks for the store's census; `make_plan` turns that into a plan,
in a thread of its own, so the crawl goes on; every ant follows the plan (`schedule`). If planning fails the last plan
stays. A plan divides a budget: without `cycle.capacity_pages_per_period` there is nothing to plan, and no controller.
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from webfountain.core.buckets import (
    BUCKETS,
    Census,
    Phases,
    change_rates,
    instance_from,
    intervals_of,
    obsolete_of,
    of_every_bucket,
)
from webfountain.errors import NotConverged, StoreVersion
from webfountain.store.contract import LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.core.buckets import Quotas
    from webfountain.core.model import Instance
    from webfountain.core.optimizer import Solution, Solver
    from webfountain.frontier.batch import CensusTaken
    from webfountain.policy import CycleTable
    from webfountain.policy.files import Collection

    Array = npt.NDArray[np.float64]

__all__ = [
    "Bounds",
    "Controller",
    "Forecast",
    "Plan",
    "bounds_of",
    "census_of",
    "decode_plan",
    "encode_plan",
    "make_plan",
    "pack_phases",
]


class Bounds:
    """`revisit.min_interval` and `max_interval`, seconds; they bind crawled pages under every schedule."""

    __slots__ = ("longest", "shortest")

    def __init__(self, shortest: float = 0.0, longest: float = inf) -> None:
        self.shortest = shortest
        self.longest = longest

    def lanes(self, latest: Sequence[float], at: float) -> list[float]:
        """A horizon of all LANES from the bucket lanes' latest due orders."""
        oldest, youngest = at - self.longest, at - self.shortest
        kept = [youngest if order > youngest else oldest if order < oldest else order for order in latest]
        return kept + [at] * (LANES - BUCKETS)

    def due(self, order: float, wanted: float) -> float:
        """When a page that was crawled at `order` and is wanted at `wanted` comes due."""
        return min(max(wanted, order + self.shortest), order + self.longest)


def bounds_of(collection: Collection) -> Bounds:
    """The widest bounds of a collection's policies: `within_policy` keeps the pages of those that are narrower."""
    revisits = [collection.policies[name].revisit for name in collection.policies_in_use]
    longest = max(inf if each.max_interval is None else each.max_interval for each in revisits)
    return Bounds(min(each.min_interval for each in revisits), longest)


class Forecast(msgspec.Struct, frozen=True):
    """Pages expected at the end of each of the T periods.

    `obsolete` by equation (2), `obsolete_oldest_first` as pages are really taken; `never_crawled` is n, `pages` b.
    """

    obsolete: tuple[float, ...]
    obsolete_oldest_first: tuple[float, ...]
    never_crawled: tuple[float, ...]
    pages: tuple[float, ...]


class Plan(msgspec.Struct, frozen=True):
    """One cycle's decisions. `start` and `period` are seconds; T = len(weights) periods.

    `weights` is p, the never-crawled share of each period's fetches; `recrawl` and `fresh` are whole-page quotas of
    known and never-crawled pages, `quotas` (T, B) the same by bucket of `buckets`. `strategy` is the one solved for.
    `rates` (B,) are the measured changes per second, `phases` the clocks of all 256 buckets, `intervals` (256,) those
    at which every fetch is worth `price`, s.
    """

    start: float
    period: float
    strategy: int
    fountain: bool
    weights: tuple[float, ...]
    recrawl: tuple[int, ...]
    fresh: tuple[int, ...]
    buckets: tuple[int, ...]
    pages: tuple[float, ...]
    rates: tuple[float, ...]
    quotas: tuple[tuple[int, ...], ...]
    forecast: Forecast
    objective: float
    bound: float
    gap: float
    message: str
    seconds: float
    price: float
    intervals: tuple[float, ...]
    phases: bytes

    @property
    def periods(self) -> int:
        """T."""
        return len(self.weights)

    @property
    def end(self) -> float:
        """When the cycle is over, UTC seconds."""
        return self.start + self.period * self.periods

    def period_at(self, at: float) -> int:
        """Index of the period that holds `at`, within the cycle."""
        return min(max(int((at - self.start) // self.period), 0), self.periods - 1)

    def fetches_until(self, at: float) -> float:
        """Pages to be fetched from the start on, each period's evenly; after the end as in the last period."""
        period = self.period_at(at)
        begun = self.start + period * self.period
        now = self.recrawl[period] + self.fresh[period]
        return sum(self.recrawl[:period]) + sum(self.fresh[:period]) + now * (at - begun) / self.period

    def weights_at(self, at: float) -> tuple[float, float]:
        """Weights of the never-crawled and the recrawl queue: p and 1 - p.

        Where the plan leaves less than a tenth of a period's fetches waiting, new pages go first: that many are
        planned, and more of them came than was foreseen.
        """
        period = self.period_at(at)
        if self.forecast.never_crawled[period] <= 0.1 * (self.recrawl[period] + self.fresh[period]):
            return (1.0, 0.0)
        p = self.weights[period]
        return (p, 1.0 - p)

    def clocks(self) -> Phases:
        """The phase clocks."""
        return _unpack(self.phases)


def encode_plan(plan: Plan) -> bytes:
    """The bytes that `put_value` keeps."""
    return msgspec.msgpack.encode(plan)


def decode_plan(data: bytes) -> Plan:
    """The plan that `encode_plan` wrote.

    Raises
    ------
    StoreVersion
        when another version wrote it: a crawl makes a new one.
    """
    try:
        return msgspec.msgpack.decode(data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreVersion(f"the plan in the store was written by another version: {error}") from None


def pack_phases(phases: Phases) -> bytes:
    """Clocks as bytes: numbers of knots and lanes, then float64 rows."""
    knots, lanes = phases.values.shape
    head = np.array([knots, lanes], dtype=np.float64)
    parts = (head, phases.times, phases.values.ravel(), phases.before, phases.after)
    return np.concatenate(parts).astype("<f8").tobytes()


def _unpack(data: bytes) -> Phases:
    numbers: npt.NDArray[np.float64] = np.frombuffer(data, dtype="<f8").astype(np.float64)
    knots, lanes = int(numbers[0]), int(numbers[1])
    ends = np.cumsum([2, knots, knots * lanes, lanes])
    times, values, before, after = np.split(numbers, ends)[1:]
    return Phases(times, values.reshape(knots, lanes), before, after)


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
    from webfountain.core.buckets import make_quotas  # noqa: PLC0415
    from webfountain.core.optimizer import solve  # noqa: PLC0415

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
    from webfountain.core.buckets import interval_of_rest, intervals_at_price, price_of_budget  # noqa: PLC0415

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
    from webfountain.core.buckets import obsolete_oldest_first  # noqa: PLC0415
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


FEWEST_PAGES: Final = 20
"""Fewer copies than this tell nothing; the first plan waits another period."""


class Controller:
    """Keeps when to plan. `start` is now, UTC seconds; `last` the plan that goes on from an earlier crawl."""

    def __init__(self, collection: Collection, *, start: float, last: Plan | None = None) -> None:
        self._cycle = collection.cycle
        self._bounds = bounds_of(collection)
        self._asked_at = start  # when the census was last asked for, or the crawl began
        self._asked = False
        self._last = last
        # Periods until the next plan: the first are made from little, so they double up to a cycle.
        self._lasts = 1 if last is None else self._cycle.periods

    def census_since(self, at: float) -> int | None:
        """When it is time to plan, the first period whose counts the plan needs, one cycle back; else None.

        A number is told once, until `planned`.
        """
        period, last = self._cycle.period_s, self._last
        if self._asked or at < self._asked_at + period:
            return None
        if last is not None and at < last.start + self._lasts * period:
            return None
        self._asked, self._asked_at = True, at
        return int(at // period) - self._cycle.periods

    def plan_from(self, taken: CensusTaken) -> Plan | None:
        """The next plan; None while there is too little to plan with. Run it in a thread, and give `planned` the end.

        Raises
        ------
        NotConverged
            as `make_plan`.
        """
        if sum(each.pages for each in taken.buckets.values()) < FEWEST_PAGES:
            return None
        clocks = None if self._last is None else self._last.clocks()
        census = census_of(taken, self._cycle)
        return make_plan(census, at=taken.at, cycle=self._cycle, bounds=self._bounds, clocks=clocks)

    def planned(self, plan: Plan | None) -> None:
        """A plan was made, or None: none could be."""
        self._asked = False
        if plan is None:
            return
        if self._last is not None:
            self._lasts = min(2 * self._lasts, self._cycle.periods)
        self._last = plan
