"""The controller of one process: when to plan, what from, and what then rules the ant.

At each cycle's end it takes the store's census, measures the model's constants, solves, and puts a new schedule in
force; no queue is rewritten. Within a cycle it compares what was recrawled with the quota and corrects. Planning is a
pure function of the census, run in a thread of its own, so the crawl goes on. If it fails the last plan stays.

A plan divides a budget: without `cycle.capacity_pages_per_period` pages are due by their bucket alone.
"""

from __future__ import annotations

import logging
import time
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.buckets import BUCKETS, intervals_of, of_every_bucket
from webfountain.core.census import Census, change_rates, instance_from, obsolete_of
from webfountain.core.phases import Phases
from webfountain.core.signals import Signals
from webfountain.errors import NotConverged, StoreVersion
from webfountain.frontier.planning.plan import Forecast, Plan, decode_plan, pack_phases
from webfountain.frontier.planning.schedule import LOOKS_PER_PERIOD, Bounds, BucketSchedule, NoRecrawl, PlanSchedule
from webfountain.frontier.planning.urgency_schedule import FountainSchedule
from webfountain.frontier.planning.urgent_pages import Watch

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.core.model import Instance
    from webfountain.core.optimizer import Solution
    from webfountain.core.quotas import Quotas
    from webfountain.frontier.planning.schedule import Schedule
    from webfountain.frontier.store_worker import CensusTaken
    from webfountain.metrics import Metrics
    from webfountain.policy.files import Collection
    from webfountain.policy.tables import CycleTable

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = ["Controller", "make_plan"]

logger = logging.getLogger(__name__)

FEWEST_PAGES: Final = 20
"""Fewer copies than this tell nothing; the first plan waits another period."""
STALE_SHARE: Final = 0.25
"""Strategy 2 while a larger share of the collection is obsolete (Edwards 2001: bring it down, then hold it)."""
_NEVER_S: Final = 1e12
"""An interval of 30,000 years stands for none."""
UNSEEN: Final = 0.5
"""Changes believed of a page in the time that its collection was watched, though none was found."""
TOLERANCE: Final = 0.03
"""Share of the planned fetches that may be left unspent between two looks, besides one page."""
SOONER: Final = 0.9
LATER: Final = 1.003
"""Factors on the intervals: when fetches were left unspent, and when not, for more may have been wanted."""


class Controller:
    """Holds the cycle. All but `make_plan` runs in the loop thread."""

    def __init__(self, collection: Collection, *, metrics: Metrics, start: float, recrawl: bool = True) -> None:
        cycle, revisit = collection.cycle, collection.policy.revisit
        self._cycle = cycle
        self._metrics = metrics
        self._bounds = Bounds(revisit.min_interval, inf if revisit.max_interval is None else revisit.max_interval)
        self._asked_at = start  # when the census was last asked for, or the crawl began
        self._asked = False
        self._checked_at = start
        self._made = 0
        self._unspent = 0.0
        self._starved = False  # whether nothing was due at some moment since the last check
        self._lasts = 1  # periods until the next plan: the first are made from little, so they double up to a cycle
        self.plan: Plan | None = None
        self.schedule: Schedule = NoRecrawl()
        if recrawl:
            self.schedule = BucketSchedule(fastest=cycle.fastest_s, bounds=self._bounds)
        self._may_plan = recrawl and cycle.capacity_pages_per_period is not None
        self.watch = self._make_watch(collection) if self._may_plan and cycle.strategy == "fountain" else None

    def _make_watch(self, collection: Collection) -> Watch:
        cycle, signals = collection.cycle, collection.signals
        assert cycle.capacity_pages_per_period is not None
        return Watch(
            signals=Signals(
                siblings=signals.siblings,
                sections=signals.sections,
                history=signals.history,
                forgetting=signals.forgetting,
                weekdays=signals.weekdays,
            ),
            period=cycle.period_s,
            capacity=float(cycle.capacity_pages_per_period),
            shortest=self._bounds.shortest,
            weighed=signals.importance,
        )

    def resume(self, data: bytes | None) -> None:
        """Go on with the plan that the store kept; one of another version, period or strategy is left."""
        if data is None or not self._may_plan:
            return
        try:
            plan = decode_plan(data)
        except StoreVersion as error:
            logger.warning("%s; a new one is made", error)
            return
        asked = self._cycle.strategy
        if plan.period == self._cycle.period_s and (plan.fountain if asked == "fountain" else plan.strategy == asked):
            self._rule_by(plan)
            self._lasts = self._cycle.periods

    def wants_census(self, at: float) -> bool:
        """Whether it is time to plan; a True is told once until a plan is adopted or failed."""
        if not self._may_plan or self._asked:
            return False
        period = self._cycle.period_s
        if at < self._asked_at + period or (self.plan is not None and at < self.plan.start + self._lasts * period):
            return False
        self._asked, self._asked_at = True, at
        return True

    def look_back(self, at: float) -> int:
        """Number of the first census period that a plan made `at` looks at: one cycle back."""
        return int(at // self._cycle.period_s) - self._cycle.periods

    def plan_from(self, taken: CensusTaken) -> Plan | None:
        """A plan for the next cycle; None while there is too little to plan with. Pure; run it in a thread."""
        if sum(each.pages for each in taken.buckets.values()) < FEWEST_PAGES:
            return None
        clocks = self.plan.clocks() if self.plan is not None else None
        return make_plan(taken, cycle=self._cycle, bounds=self._bounds, clocks=clocks)

    def adopt(self, plan: Plan | None) -> None:
        """Put a plan in force; None: the last one stays."""
        self._asked = False
        if plan is None:
            self._metrics.inc("controller/plan_kept", self.plan is not None)
            return
        self._metrics.inc("controller/plan_adopted")
        if self.plan is not None:
            self._lasts = min(2 * self._lasts, self._cycle.periods)
        logger.info(
            "Plan adopted: strategy %s, %d periods, %d recrawls and %d new pages, gap %.1f %%, %.2f s",
            "fountain" if plan.fountain else plan.strategy,
            plan.periods,
            sum(plan.recrawl),
            sum(plan.fresh),
            100 * plan.gap,
            plan.seconds,
        )
        self._rule_by(plan)

    def _rule_by(self, plan: Plan) -> None:
        self.plan = plan
        self._made, self._checked_at = 0, max(plan.start, self._checked_at)
        if plan.fountain and self.watch is not None:
            watch = self.watch
            self.schedule = FountainSchedule(
                plan, bounds=self._bounds, watched=watch.holds, sites=lambda: watch.many_sites
            )
        else:
            self.schedule = PlanSchedule(plan, bounds=self._bounds)

    def count(self) -> None:
        """A page was handed out."""
        self._made += 1

    def check(self, at: float, *, starved: bool = True) -> bool:
        """Hold the fetches made against the plan, often in a period; whether pages are due sooner from now on.

        What the plan meant for new pages that did not come is for known ones: an unspent fetch is lost. But where
        pages are due and cannot be fetched (`starved` is False: politeness, a slow disk) more of them would not help:
        all would be due at once, and each site, however small, would get the same share.
        """
        plan = self.plan
        self._starved = self._starved or starved
        if plan is None or at < self._checked_at + self._cycle.period_s / LOOKS_PER_PERIOD:
            return False
        planned = plan.fetches_until(at) - plan.fetches_until(self._checked_at)
        self._unspent = max(self._unspent + planned - self._made, 0.0)
        self._made, self._checked_at = 0, at
        unspent = self._unspent > 1.0 + TOLERANCE * planned
        sooner, self._starved = unspent and self._starved, False
        if unspent:
            self._unspent = 0.0
        if sooner:
            self._metrics.inc("controller/corrected")
        self.schedule.correct(SOONER if sooner else LATER)
        return sooner


def make_plan(taken: CensusTaken, *, cycle: CycleTable, bounds: Bounds, clocks: Phases | None) -> Plan:
    """Census to plan: measured instance, solution, quotas, clocks, price, forecasts. Imports scipy when first used.

    At 10^7 pages it costs what it costs at 10^3: the census is by bucket.

    Raises
    ------
    NotConverged
        when no solver got further than the uniform plan.
    """
    # 0.5 s of imports that a crawl does not need to start.
    from webfountain.core.optimizer import solve  # noqa: PLC0415
    from webfountain.core.quotas import make_quotas  # noqa: PLC0415

    begun = time.thread_time()
    census = census_of(taken, cycle)
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
    solution = solve(instance)
    if solution.status != "solved":
        raise NotConverged(f"the plan of {len(rates)} buckets and {cycle.periods} periods: {solution.message}")
    quotas = make_quotas(instance, solution.x, solution.z)
    watched = cycle.period_s if clocks is None else max(taken.at - float(clocks.times[0]), cycle.period_s)
    price, every = _priced(census, rates, quotas, least=UNSEEN / watched, cycle=cycle, bounds=bounds)
    return Plan(
        start=taken.at,
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
        phases=pack_phases(_clocks(census, quotas, taken.at, cycle, clocks)),
    )


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
