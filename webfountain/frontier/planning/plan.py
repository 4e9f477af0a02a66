"""The plan in force: what the controller decided for a cycle, what it predicts, and how it is kept in the store.

Plain data, written as msgpack by `put_value`, read by the next start, by `status` and by `plan show`. A schedule
(`schedule`) turns it into what is due; nothing here decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from webfountain.core.phases import Phases
from webfountain.errors import StoreVersion

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Forecast", "Plan", "decode_plan", "encode_plan", "pack_phases"]


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
