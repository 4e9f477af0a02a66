"""The plan of a cycle as plain data.

The store keeps the plan as msgpack. A schedule (`schedule`) follows the plan, and decides which pages are due.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import xxhash

from webfountain.core.buckets import BUCKETS
from webfountain.core.phases import Phases
from webfountain.errors import StoreVersion
from webfountain.store.lanes import LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.policy.collection import Collection

__all__ = [
    "Bounds",
    "Forecast",
    "GoalCost",
    "Plan",
    "bounds_of",
    "decode_plan",
    "encode_plan",
    "pack_phases",
    "plan_number",
]


class Bounds:
    """The shortest and the longest time between two visits to a page, in seconds."""

    __slots__ = ("longest", "shortest")

    def __init__(self, shortest: float = 0.0, longest: float = inf) -> None:
        self.shortest = shortest
        self.longest = longest

    def lanes(self, latest: Sequence[float], at: float) -> list[float]:
        """Return a time for each lane: a page of the lane is due at `at` if its last crawl was before that time.
        `latest` contains, for each bucket's lane, the time that would be returned without the bounds.
        """
        oldest, youngest = at - self.longest, at - self.shortest
        kept = [youngest if order > youngest else oldest if order < oldest else order for order in latest]
        return kept + [at] * (LANES - BUCKETS)

    def due(self, order: float, wanted: float) -> float:
        """Return the time nearest to `wanted` at which a page that was last fetched at `order` may be fetched."""
        return min(max(wanted, order + self.shortest), order + self.longest)


def bounds_of(collection: Collection) -> Bounds:
    """Return the smallest `min_interval` and the largest `max_interval` of all policies of a collection."""
    revisits = [collection.policies[name].revisit for name in collection.policies_in_use]
    longest = max(inf if each.max_interval is None else each.max_interval for each in revisits)
    return Bounds(min(each.min_interval for each in revisits), longest)


class Forecast(msgspec.Struct, frozen=True):
    """The expected numbers of pages at the end of each of the T periods.

    `obsolete` is computed by equation (2) of `core.model`, which assumes that pages are fetched in random order.
    `obsolete_oldest_first` assumes the real order, in which the page with the oldest copy is fetched first. The model
    calls `never_crawled` n and `pages` b.
    """

    obsolete: tuple[float, ...]
    obsolete_oldest_first: tuple[float, ...]
    never_crawled: tuple[float, ...]
    pages: tuple[float, ...]


class GoalCost(msgspec.Struct, frozen=True):
    """The cost of a goal: how many fetches of known pages per period the goal needs."""

    share: float
    age_s: float
    """The goal is that at most `share` of the copies are out of date for longer than `age_s` seconds."""
    correction: float
    """Measured share of obsolete pages in the last cycles, divided by the share that the model predicts."""
    fetches: float | None
    """Number of fetches per period that reaches the goal, or None if no number is enough."""
    planned: float
    """Number of fetches per period in the plan: fewer than `fetches` if the capacity is too small."""
    expected: float
    """Expected share of copies that are out of date for longer than `age_s`, with `planned` fetches per period."""
    less_fetches: float
    """A smaller number of fetches per period than `planned`, as an example."""
    less_share: float
    """Expected share of copies that are out of date for longer than `age_s`, with `less_fetches` fetches per period."""


class Plan(msgspec.Struct, frozen=True):
    """The decisions for one cycle of T = len(weights) periods. `start` is UTC seconds, and `period` is the length of a
    period, in seconds.

    `weights` contains, for each period, the share of fetches that go to never-crawled pages (p in the model). For each
    period, `recrawl` and `fresh` are the numbers of fetches of known and of never-crawled pages. `quotas` (T, B)
    divides `recrawl` by bucket, in the order of `buckets`. `rates` (B,) contains the measured changes per second of
    each bucket. `phases` contains the clocks of all 256 buckets (`core.phases`). `intervals` contains the time between
    two fetches of a page for each bucket, in seconds. If pages are fetched at the plan's intervals, each fetch adds
    `price` seconds in which a copy is fresh.
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
    goal: GoalCost | None = None

    @property
    def periods(self) -> int:
        """Return T."""
        return len(self.weights)

    @property
    def end(self) -> float:
        """Return the end of the cycle, UTC seconds."""
        return self.start + self.period * self.periods

    @property
    def fetches_per_period(self) -> float:
        """Return the mean number of pages to fetch in a period."""
        return (sum(self.recrawl) + sum(self.fresh)) / self.periods

    def period_at(self, at: float) -> int:
        """Return the index of the period that contains `at`. Times after the end of the cycle belong to its last
        period.
        """
        return min(max(int((at - self.start) // self.period), 0), self.periods - 1)

    def fetches_until(self, at: float) -> float:
        """Return how many pages should be fetched between the start of the cycle and `at`. After the end of the cycle,
        fetches continue at the rate of the last period.
        """
        period = self.period_at(at)
        begun = self.start + period * self.period
        now = self.recrawl[period] + self.fresh[period]
        return sum(self.recrawl[:period]) + sum(self.fresh[:period]) + now * (at - begun) / self.period

    def weights_at(self, at: float) -> tuple[float, float]:
        """Return (p, 1 - p): the shares of fetches that go to the never-crawled queue and to the recrawl queue.

        Return (1, 0) if the plan leaves almost no never-crawled pages, so that new pages are fetched at once.
        """
        period = self.period_at(at)
        if self.forecast.never_crawled[period] <= 0.1 * (self.recrawl[period] + self.fresh[period]):
            return (1.0, 0.0)
        p = self.weights[period]
        return (p, 1.0 - p)

    def clocks(self) -> Phases:
        return _unpack(self.phases)


def encode_plan(plan: Plan) -> bytes:
    """Encode a plan for the store."""
    return msgspec.msgpack.encode(plan)


def plan_number(plan: bytes | None) -> int:
    """Return a hash that identifies an encoded plan, or 0 if there is no plan."""
    return 0 if plan is None else xxhash.xxh3_64_intdigest(plan) or 1


def decode_plan(data: bytes) -> Plan:
    """Return the plan that `encode_plan` wrote.

    Raises
    ------
    StoreVersion
        if another version wrote the plan.
    """
    try:
        return msgspec.msgpack.decode(data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreVersion(f"the plan in the store was written by another version: {error}") from None


def pack_phases(phases: Phases) -> bytes:
    """Encode phase clocks as float64: the number of points, the number of buckets, and the values of the clocks at each
    point.
    """
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
