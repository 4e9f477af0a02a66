"""Per bucket: the byte of a page, the census of a crawl, the quotas of a plan, its phase clocks, and its forecast.

The bucket byte: 256 classes of pages with a like change rate, spaced evenly in the logarithm. Every settled fetch
turns the page's estimated mean change interval into one byte; the census, the model and the quotas count pages per
byte. This file knows nothing of how the interval was estimated (`change_rate`). With `fastest` = period/96 and a
period of one day, bucket 0 is 15 minutes and bucket 255 two years.

Source: Edwards 2001, section 2 ("at most 256 change-frequency buckets, one byte of the page's metadata").

Phase clocks over time: how far each bucket's plan has come, and which time lies one whole visit back. V_i(t) is the
sum of the crawl fractions x_i/b_i until t; a page of bucket i is due when V_i has gained 1 since its last crawl
(DESIGN.md section 4). Kept as lines between knots, so that a page needs to remember no more than when it was crawled,
and a new plan only adds knots: no queue is rewritten. Before the first knot a bucket's clock runs at its own change
rate; after the last at the mean speed of the last plan.

From what a crawl counted to the constants of its model: all are measured, none assumed for long.

Every constant starts from a prior worth a stated number of observations and gives way to the counts: change fraction
per bucket from changes found in the time watched, crawl seconds and new links per fetch, births per bucket, arrivals
from outside, the obsolete estimate from the mean age of the copies. Place in the walk (DESIGN 4): store's census ->
**here** -> `model` -> `optimizer`.

Source: Edwards 2001, section 3, the constants a, c, d, oldnwt, newnwt, nconst, p of equations (1)-(4).

From a plan to what the sequencers use: whole-page quotas, the weight p, and the phase-clock increments. A plan speaks
of fractions of pages; a crawl fetches whole ones. Quotas follow the plan by largest remainder and use the capacity
exactly: no page that is there would still fit. What rounding takes from a bucket is carried to its next period, so
that a bucket planned at a third of a page a period is visited every third period.

Place in the walk (DESIGN 4): optimizer -> **quotas** -> weights of the site sequencers and the recrawl share of
each bucket. It chooses no page: selection inside a bucket is the sequencers'.

Source: Edwards 2001, section 3, "what the crawler uses": x[i,t]/b[i,t] and z[t]; the rounding is ours.

What a plan will have achieved at each period's end when pages are taken oldest first, as the crawler takes them.
Equation (2) draws the crawled pages of a bucket at random; a crawler that takes the oldest first leaves fewer
obsolete, because no page waits long. Both forecasts stand beside what is measured. Also here: the steady interval of
each bucket that equalises the price of a fetch, which is the continuous optimum that the `fountain` strategy follows.

Source: Edwards 2001, equation (2) and Figure 2; the price of a fetch: Cho & Garcia-Molina, *Effective page refresh
policies for web crawlers*, TODS 2003, section 4; Azar et al., PNAS 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from webfountain.core.model import Array, Instance, fractions, make_instance, simulate_plan, weights_of

if TYPE_CHECKING:
    Ints = npt.NDArray[np.int64]

__all__ = [
    "BUCKETS",
    "RATIO",
    "Census",
    "Phases",
    "Quotas",
    "bucket_of",
    "instance_from",
    "interval_of",
    "interval_of_rest",
    "intervals_at_price",
    "intervals_of",
    "make_quotas",
    "obsolete_of",
    "obsolete_oldest_first",
    "of_every_bucket",
    "price_of_budget",
]

BUCKETS = 256
"""Number of classes; the byte runs from 0, the fastest, to 255."""

RATIO = (730 * 96) ** (1 / 255)
"""Mean intervals of neighbouring buckets differ by this factor (about 1.0447)."""

_LN_RATIO = math.log(RATIO)
_SLOWEST_FACTOR = RATIO**255
_log = math.log


def bucket_of(interval: float, fastest: float) -> int:
    """Bucket byte of a mean change interval; both in the same unit of time.

    clip(round(ln(interval/fastest)/ln r), 0, 255). An interval of zero or less is the fastest class, an infinite one
    (never seen to change, no prior) the slowest.

    Parameters
    ----------
    interval : mean time between changes, s
    fastest : mean interval of bucket 0, s, above 0
    """
    relative = interval / fastest
    if relative <= 1.0:
        return 0
    if relative >= _SLOWEST_FACTOR:
        return 255
    return round(_log(relative) / _LN_RATIO)


def interval_of(bucket: int, fastest: float) -> float:
    """Mean change interval, s, at the centre of a bucket: the inverse of `bucket_of`."""
    return float(fastest * RATIO**bucket)


def intervals_of(buckets: npt.ArrayLike, fastest: float) -> npt.NDArray[np.float64]:
    """`interval_of` for an array of bucket bytes, of any shape; s."""
    return np.asarray(fastest * RATIO ** np.asarray(buckets, dtype=np.float64))


def of_every_bucket(known: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(256,) values of all buckets from those of the `known`, ascending ones: another lies between its neighbours."""
    return np.asarray(np.interp(np.arange(BUCKETS), known, values))


@dataclass(frozen=True, slots=True)
class Phases:
    """Immutable; `planned` gives the next.

    Attributes
    ----------
    times : (K,) UTC s, ascending, K >= 1
    values : (K, L) phase of each of L lanes at the knots, never falling
    before, after : (L,) phase per second before the first and after the last knot
    """

    times: Array
    values: Array
    before: Array
    after: Array

    @classmethod
    def running(cls, speed: Array, *, start: float) -> Phases:
        """Clocks that have always run at `speed` (L,), phase per second."""
        return cls(np.array([start]), np.zeros((1, speed.size)), speed, speed)

    def planned(self, increments: Array, *, start: float, period: float, keep: int = 64) -> Phases:
        """From `start` on a plan of (T, L) increments, one a `period`; what was to come after `start` is dropped.

        `keep` knots of the past stay; what lies before them counts at the mean speed of those that stay.
        """
        past = self.times < start
        begin = self.at(start)
        steps = np.vstack([begin, begin + np.cumsum(increments, axis=0)])
        times = np.concatenate([self.times[past][-keep:], start + period * np.arange(len(increments) + 1)])
        values = np.vstack([self.values[past][-keep:], steps])
        before = self.before
        if past.sum() > keep:
            before = (begin - values[0]) / (start - times[0])
        return Phases(times, values, before, increments.mean(axis=0) / period)

    def at(self, t: float) -> Array:
        """(L,) phase at a time."""
        if t <= self.times[0]:
            return np.asarray(self.values[0] - self.before * (self.times[0] - t))
        if t >= self.times[-1]:
            return np.asarray(self.values[-1] + self.after * (t - self.times[-1]))
        k = int(np.searchsorted(self.times, t, side="right"))
        share = (t - self.times[k - 1]) / (self.times[k] - self.times[k - 1])
        return np.asarray(self.values[k - 1] + share * (self.values[k] - self.values[k - 1]))

    def horizon(self, t: float, *, gain: float = 1.0) -> Array:
        """(L,) the latest time from which a lane's clock has gained `gain` by `t`; -inf where it never moved."""
        return self._latest(self.at(t) - gain)

    def due(self, lane: int, order: float, *, gain: float = 1.0) -> float:
        """When the clock of a lane will have gained `gain` since `order`; inf when the plan stands still."""
        line, phase = self.values[:, lane], float(self.at(order)[lane]) + gain
        if phase < line[0]:
            return float(self.times[0] - (line[0] - phase) / self.before[lane])
        if phase <= line[-1]:
            return self._between(lane, phase, late=False)
        speed = float(self.after[lane])
        return float(self.times[-1] + (phase - line[-1]) / speed) if speed > 0 else np.inf

    def _latest(self, phase: Array) -> Array:
        """(L,) the latest time at which each lane's clock showed `phase`; -inf where it never did."""
        found = np.full(phase.size, -np.inf)
        first, last = self.values[0], self.values[-1]
        early = phase < first
        moving = early & (self.before > 0)
        found[moving] = self.times[0] - (first[moving] - phase[moving]) / self.before[moving]
        beyond = (phase > last) & (self.after > 0)
        found[beyond] = self.times[-1] + (phase[beyond] - last[beyond]) / self.after[beyond]
        for lane in np.flatnonzero(~early & (phase <= last)):
            found[lane] = self._between(int(lane), float(phase[lane]), late=True)
        return found

    def _between(self, lane: int, phase: float, *, late: bool) -> float:
        """When a lane's clock shows a phase between its first and last knot: the last or first time, if it rested."""
        line = self.values[:, lane]
        k = int(np.searchsorted(line, phase, side="right" if late else "left"))
        if k == 0:
            return float(self.times[0])
        if k == len(line):
            return float(self.times[-1])
        rise = line[k] - line[k - 1]
        share = (phase - line[k - 1]) / rise if rise > 0 else 1.0
        return float(self.times[k - 1] + share * (self.times[k] - self.times[k - 1]))


PRIOR_CHANGES: Final = 5.0
"""Changes seen that a bucket's own definition (its mean interval) is worth against what was found in it."""
PRIOR_FETCHES: Final = 20.0
"""Fetches that the collection's mean cost and discovery rate are worth against a bucket's own."""
MOST_FINDS: Final = 0.9
"""newnwt at most: while a site is being discovered every new page brings more than one."""
EARLY: Final = 1e-3
"""Weight of a period at least, against ties: what may be crawled early or late without loss is crawled early."""
PRIOR_LINKS: Final = 0.02
"""New URLs that a fetch of a known page is believed to bring before anything is counted."""


@dataclass(frozen=True, slots=True)
class Census:
    """One collection as it stands, and what its last periods counted, by non-empty bucket.

    Attributes
    ----------
    buckets : (B,) bucket bytes, ascending
    pages : (B,) crawled pages
    mean_age : (B,) s since their last crawl
    fetches, changes, watched, seconds, links, births : (B,) counts of the periods looked at; watched and seconds in s
    new_fetches, new_seconds, new_links : the same of never-crawled pages
    waiting : known pages without a copy
    arrivals : URLs from outside, per period
    """

    buckets: Ints
    pages: Array
    mean_age: Array
    fetches: Array
    changes: Array
    watched: Array
    seconds: Array
    links: Array
    births: Array
    new_fetches: float
    new_seconds: float
    new_links: float
    waiting: float
    arrivals: float


def change_rates(census: Census, fastest: float) -> Array:
    """(B,) changes per second of a page: changes in the time watched, a bucket's definition as PRIOR_CHANGES of them.

    Posterior mean of a Poisson rate under a gamma prior. Where nearly every check finds a change the counts tell
    only that the gaps are too long, and the definition, which was estimated by likelihood (`change_rate`), stays.
    """
    believed = 1.0 / intervals_of(census.buckets, fastest)
    found = np.divide(census.changes, census.fetches, out=np.zeros_like(census.pages), where=census.fetches > 0)
    gap = np.divide(census.watched, census.fetches, out=np.zeros_like(census.pages), where=census.fetches > 0)
    # Cho's correction, for a gap that may hold more than one change; Cho & Garcia-Molina 2003, section 4.2.
    share = (census.fetches - census.changes + 0.5) / (census.fetches + 0.5)
    measured = np.where(gap > 0, -np.log(share) / np.where(gap > 0, gap, 1.0), believed)
    watched = np.where(found < 0.95, census.watched, 0.0)
    return np.asarray((measured * watched + PRIOR_CHANGES) / (watched + PRIOR_CHANGES / believed), dtype=np.float64)


def obsolete_of(census: Census, rates: Array) -> Array:
    """(B,) pages expected to be obsolete, their ages spread evenly over twice the mean (steady recrawling)."""
    spread = 2.0 * rates * np.maximum(census.mean_age, 0.0)
    fresh = np.where(spread > 1e-9, -np.expm1(-spread) / np.where(spread > 1e-9, spread, 1.0), 1.0)
    return np.asarray(census.pages * (1.0 - fresh))


def instance_from(
    census: Census, *, strategy: int, periods: int, period: float, fastest: float, capacity: float, in_pages: bool
) -> Instance:
    """The model's instance of a live collection.

    A reachable page without a copy is obsolete whether it is known or not (DESIGN.md section 1), but the model's n
    counts the known alone: taken literally, crawling a new page that brings another gains nothing. So the weight of n
    is divided by 1 - newnwt, which makes a first copy worth one obsolete page, and oldnwt is scaled with it.

    Parameters
    ----------
    capacity : per period: fetches when `in_pages` (every page costs one), else crawling time, s
    """
    rates = change_rates(census, fastest)
    weights = np.maximum(weights_of(strategy, periods), EARLY)
    old_links = _per_fetch(census.links, census.fetches, PRIOR_LINKS)
    new_links = (census.new_links + PRIOR_LINKS * PRIOR_FETCHES) / (census.new_fetches + PRIOR_FETCHES)
    finds = min(new_links, MOST_FINDS)
    mean_s = (census.seconds.sum() + census.new_seconds + 1.0) / (census.fetches.sum() + census.new_fetches + 1.0)
    births = census.births + PRIOR_FETCHES * census.pages / max(census.pages.sum(), 1.0)
    return make_instance(
        a=-np.expm1(-rates * period),
        C=np.full(periods, capacity),
        b0=census.pages,
        y0=obsolete_of(census, rates),
        n0=census.waiting,
        c=1.0 if in_pages else _per_fetch(census.seconds, census.fetches, mean_s),
        d=1.0 if in_pages else (census.new_seconds + mean_s * PRIOR_FETCHES) / (census.new_fetches + PRIOR_FETCHES),
        o=old_links * (1.0 - finds),
        w=finds,
        nconst=census.arrivals,
        p=births,
        oldwt=weights[:, None],
        newwt=weights / (1.0 - finds),
        periods=periods,
    )


def _per_fetch(counted: Array, fetches: Array, believed: float) -> Array:
    """(B,) counted per fetch; where a bucket has few, the mean over all buckets, and that drawn to the belief."""
    mean = (counted.sum() + believed * PRIOR_FETCHES) / (fetches.sum() + PRIOR_FETCHES)
    return np.asarray((counted + mean * PRIOR_FETCHES) / (fetches + PRIOR_FETCHES))


Counts = npt.NDArray[np.int64]

_DUST = 1e-9


@dataclass(frozen=True, slots=True)
class Quotas:
    """What to fetch in each period.

    ``recrawl`` (T, B) and ``fresh`` (T,) are whole pages, of the known and of the never-crawled ones.
    ``weight`` (T,) is p, the never-crawled share of the planned fetches; 0.5 in a period that plans none.
    ``increment`` (T, B) is what each bucket's phase clock gains: the crawled fraction of the bucket.
    """

    recrawl: Counts
    fresh: Counts
    weight: Array
    increment: Array


def make_quotas(instance: Instance, x: Array, z: Array) -> Quotas:
    """The quotas of the plan ``x`` (T, B), ``z`` (T,) in pages.

    Invariant: quotas are never negative, never above the pages that the plan expects to be there, and in each
    period cost at most the capacity. A period that plans to use its capacity leaves less than one page's time.
    """
    path = simulate_plan(instance, x, z)
    wanted = np.column_stack([path.x, path.z])
    present = np.floor(np.column_stack([path.b[:-1], path.n[:-1]]) + _DUST).astype(np.int64)
    cost = np.column_stack([instance.c, instance.d])
    given, carried = np.zeros_like(present), np.zeros(instance.B + 1)
    for t in range(instance.T):
        given[t] = _whole(wanted[t], carried, present[t], cost[t], _room(instance, path.used, t))
        carried = np.clip(carried + wanted[t] - given[t], -1.0, 1.0)
    increment, _ = fractions(instance, path.x, path.z)
    return Quotas(given[:, :-1], given[:, -1], _weights(path.x.sum(axis=1), path.z), increment)


def _room(instance: Instance, used: Array, t: int) -> float:
    """The time to spend in a period: all of it if the plan leaves less than half a page, else what it uses."""
    dearest = max(float(instance.c[t].max(initial=0.0)), float(instance.d[t]))
    capacity = float(instance.C[t])
    return capacity if capacity - used[t] < 0.5 * dearest else float(used[t])


def _whole(wanted: Array, carried: Array, present: Counts, cost: Array, room: float) -> Counts:
    """Whole pages (B+1,) for one period: floors, then a page each by largest remainder, then what still fits."""
    given = np.minimum(np.floor(wanted + _DUST).astype(np.int64), present)
    left = room * (1.0 + 1e-12) + _DUST * cost.max(initial=0.0) - float(given @ cost)
    order = np.argsort(-(wanted + carried - given), kind="stable")
    for k in order:
        if given[k] < present[k] and cost[k] <= left and (wanted[k] > _DUST or carried[k] > 0.0):
            given[k] += 1
            left -= cost[k]
    for k in order:
        if 0.0 < cost[k] <= left:
            more = min(int(left / cost[k]), int(present[k] - given[k]))
            given[k] += more
            left -= more * cost[k]
    return given


def _weights(old: Array, new: Array) -> Array:
    both = old + new
    return np.asarray(np.divide(new, both, out=np.full(both.size, 0.5), where=both > 0.0), dtype=np.float64)


_COHORTS: Final = 16
_GIVEN_UP: Final = 1.0 - 1e-9
_LARGEST_X: Final = 50.0
_HALVINGS: Final = 45


def obsolete_oldest_first(instance: Instance, x: Array, z: Array, *, mean_age: Array) -> Array:
    """(T,) obsolete pages at each period's end, the never-crawled not among them.

    Parameters
    ----------
    x : (T, B) pages recrawled, z : (T,) never-crawled pages crawled
    mean_age : (B,) periods since the last crawl; ages are taken as spread evenly up to twice that
    """
    ages = (np.arange(_COHORTS) + 0.5)[::-1] * (2.0 / _COHORTS)
    # (B, cohorts) pages of a cohort and their obsolete share, the longest uncrawled first; each period appends one.
    pages = np.concatenate([np.repeat(instance.b0[:, None] / _COHORTS, _COHORTS, axis=1), np.zeros_like(x).T], axis=1)
    obsolete = np.zeros_like(pages)
    obsolete[:, :_COHORTS] = 1.0 - (1.0 - instance.a[0])[:, None] ** (ages * mean_age[:, None])
    total = np.zeros(instance.T)
    for t in range(instance.T):
        older = np.cumsum(pages, axis=1) - pages
        pages -= np.clip(x[t][:, None] - older, 0.0, pages)
        obsolete = 1.0 - (1.0 - obsolete) * (1.0 - instance.a[t])[:, None]
        pages[:, _COHORTS + t] = x[t] + instance.p * z[t]
        obsolete[:, _COHORTS + t] = 0.0
        total[t] = (pages * obsolete).sum()
    return total


def intervals_at_price(rates: Array, price: float, *, longest: float = inf) -> Array:
    """(B,) interval at which a fetch of a page of each rate buys `price` of fresh time; s, `longest` where none does.

    Solves (1 - e^-x (1 + x)) / rate = price, x = rate * interval, by bisection. A page that changes so fast that no
    fetch is worth the price is given up, as is one that never changes; and at `_GIVEN_UP` of that, for nearer to it no
    price that a float can have tells a fetch every 30 changes from one every 50.
    """
    low, high = np.zeros_like(rates), np.full_like(rates, _LARGEST_X)
    wanted = np.minimum(price * rates, 1.0)
    for _ in range(_HALVINGS):
        x = (low + high) / 2
        short = _worth(x) < wanted
        low, high = np.where(short, x, low), np.where(short, high, x)
    interval = np.divide(high, rates, out=np.full_like(rates, longest), where=(rates > 0) & (wanted < _GIVEN_UP))
    return np.asarray(np.minimum(interval, longest))


def _worth(x: Array) -> Array:
    """1 - e^-x (1 + x), by its series where the difference would lose its digits."""
    return np.where(x < 1e-4, x * x * (0.5 - x / 3.0), -np.expm1(-x) - x * np.exp(-x))


def price_of_budget(
    pages: Array, rates: Array, fetches_per_s: float, *, longest: float = inf, shortest: float = 0.0
) -> float:
    """The price at which all pages together ask for `fetches_per_s`; 0 where the budget exceeds every wish.

    Bisection on the logarithm; the answer is the dual of "fetches <= budget" in the steady state. `longest` and
    `shortest` (s) bound every interval; where `longest` alone asks for more than the budget, so does the answer.
    """
    low, high = 1e-12, max(1.0 / max(float(rates.min(initial=inf)), 1e-12), 1.0)
    if _asked(pages, rates, low, longest, shortest) <= fetches_per_s:
        return 0.0
    for _ in range(_HALVINGS):
        price = float(np.sqrt(low * high))
        if _asked(pages, rates, price, longest, shortest) > fetches_per_s:
            low = price
        else:
            high = price
    return high


def _asked(pages: Array, rates: Array, price: float, longest: float, shortest: float) -> float:
    """Fetches per second that all pages ask for at a price."""
    intervals = np.maximum(intervals_at_price(rates, price, longest=longest), max(shortest, 1e-9))
    return float((pages / intervals).sum())


def interval_of_rest(pages: Array, rates: Array, price: float, fetches_per_s: float) -> float:
    """Interval of the pages that the price gives up, s: they share what the others leave; inf where nothing is left.

    Where even the slowest pages change many times between two fetches no price is worth paying, and the budget
    would lie idle; a visit still finds a change and its links. It is the longest of all pages' intervals: those that
    the price would visit more seldom than that share with them.
    """
    intervals = intervals_at_price(rates, price)
    sharing, rest = np.zeros(len(rates), dtype=np.bool_), inf
    while (more := (intervals > rest if np.isfinite(rest) else np.isinf(intervals)) & ~sharing).any():
        sharing |= more
        left = fetches_per_s - float((pages / np.maximum(intervals, 1e-9))[~sharing].sum())
        if left <= 1e-3 * fetches_per_s:
            return inf
        rest = float(pages[sharing].sum()) / left
    return rest
