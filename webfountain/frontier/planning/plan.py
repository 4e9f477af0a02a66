"""The plan of a cycle as plain data: its contents, and its form in the store.

A plan is stored as msgpack by `put_value`; the next start, `status` and `plan show` read it. This module decides
nothing: a schedule (`schedule`) decides from the plan what is due.
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
    """`revisit.min_interval` and `max_interval`, seconds. They apply to crawled pages under every schedule."""

    __slots__ = ("longest", "shortest")

    def __init__(self, shortest: float = 0.0, longest: float = inf) -> None:
        self.shortest = shortest
        self.longest = longest

    def lanes(self, latest: Sequence[float], at: float) -> list[float]:
        """Return the horizons of all LANES; `latest` gives the latest due order of each bucket lane."""
        oldest, youngest = at - self.longest, at - self.shortest
        kept = [youngest if order > youngest else oldest if order < oldest else order for order in latest]
        return kept + [at] * (LANES - BUCKETS)

    def due(self, order: float, wanted: float) -> float:
        """Return the due time of a page that was fetched at `order`: the time `wanted`, but not before the shortest and
        not after the longest interval since the fetch."""
        return min(max(wanted, order + self.shortest), order + self.longest)


def bounds_of(collection: Collection) -> Bounds:
    """Return the widest bounds of a collection's policies; `within_policy` enforces narrower ones."""
    revisits = [collection.policies[name].revisit for name in collection.policies_in_use]
    longest = max(inf if each.max_interval is None else each.max_interval for each in revisits)
    return Bounds(min(each.min_interval for each in revisits), longest)


class Forecast(msgspec.Struct, frozen=True):
    """The numbers of pages that are expected at the end of each of the T periods.

    `obsolete` follows equation (2); `obsolete_oldest_first` follows the order in which pages are really taken.
    `never_crawled` is the model's n, and `pages` its b.
    """

    obsolete: tuple[float, ...]
    obsolete_oldest_first: tuple[float, ...]
    never_crawled: tuple[float, ...]
    pages: tuple[float, ...]


class GoalCost(msgspec.Struct, frozen=True):
    """Fetches of known pages per period that the policy's goal takes, and the obsolete share with fewer fetches."""

    share: float
    age_s: float
    """The goal: at most this share of the copies is out of date for longer than `age_s`."""
    correction: float
    """A ratio: the obsolete share that the last cycles found, divided by the one expected for independent pages at the
    same rate of fetches."""
    fetches: float | None
    """None if no number of fetches reaches the goal."""
    planned: float
    """Number of fetches in the plan; less than `fetches` if the capacity is smaller."""
    expected: float
    """Obsolete share in the long run with the planned fetches."""
    less_fetches: float
    """A somewhat smaller number of fetches."""
    less_share: float
    """Obsolete share in the long run with `less_fetches`."""


class Plan(msgspec.Struct, frozen=True):
    """The decisions for one cycle. `start` and `period` are seconds; T = len(weights) periods.

    `weights` is p, the never-crawled share of each period's fetches. `recrawl` and `fresh` are the quotas of known and
    of never-crawled pages, in whole pages. `quotas` (T, B) divides the known pages by bucket, in the order of
    `buckets`. `strategy` is the one that was solved for. `rates` (B,) are the measured changes per second, and `phases`
    are the clocks of all 256 buckets. At the `intervals` (256,), s, every fetch gains `price`, s. `goal` is None if the
    policy has none.
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
        """Return the index of the period that contains `at`, within the cycle."""
        return min(max(int((at - self.start) // self.period), 0), self.periods - 1)

    def fetches_until(self, at: float) -> float:
        """Return how many pages should be fetched from the start until `at`.

        Fetches are spread evenly over each period. After the end, the rate of the last period continues.
        """
        period = self.period_at(at)
        begun = self.start + period * self.period
        now = self.recrawl[period] + self.fresh[period]
        return sum(self.recrawl[:period]) + sum(self.fresh[:period]) + now * (at - begun) / self.period

    def weights_at(self, at: float) -> tuple[float, float]:
        """Return the weights of the never-crawled and the recrawl queue: p and 1 - p.

        If the plan leaves almost no never-crawled pages at the end of the period (at most a tenth of its fetches), new
        pages come first: the plan fetches all of them, even if more arrive than expected.
        """
        period = self.period_at(at)
        if self.forecast.never_crawled[period] <= 0.1 * (self.recrawl[period] + self.fresh[period]):
            return (1.0, 0.0)
        p = self.weights[period]
        return (p, 1.0 - p)

    def clocks(self) -> Phases:
        """Return the phase clocks."""
        return _unpack(self.phases)


def encode_plan(plan: Plan) -> bytes:
    """Return the bytes for `put_value`."""
    return msgspec.msgpack.encode(plan)


def plan_number(plan: bytes | None) -> int:
    """Return the number by which a controller names an encoded plan; 0 for none."""
    return 0 if plan is None else xxhash.xxh3_64_intdigest(plan) or 1


def decode_plan(data: bytes) -> Plan:
    """Return the plan that `encode_plan` wrote.

    Raises
    ------
    StoreVersion
        if another version wrote it; then a crawl makes a new plan.
    """
    try:
        return msgspec.msgpack.decode(data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreVersion(f"the plan in the store was written by another version: {error}") from None


def pack_phases(phases: Phases) -> bytes:
    """Return clocks as bytes: first the number of knots and the number of lanes, then float64 rows."""
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
