"""Estimate the mean interval between a page's changes from few checks at irregular intervals.

A check shows only whether a page changed, not how often. Changes are assumed to be a Poisson process of rate r (Cho
2000). A check after t seconds finds a change with probability 1 - exp(-r t). `append` keeps the last 24 checks of a
page in 24 bytes. After each fetch, `estimate_interval` uses the history, the totals of the page and the prior of the
site.

`freshness` estimates the fresh share of a collection from the census. Copies of a bucket are assumed to have evenly
spread ages, because the crawl fetches the oldest copies first. This module does not import numpy, so that `status`
starts at once.

Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 2 (freshness).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "HISTORY_CHECKS",
    "NO_HISTORY",
    "BucketAges",
    "Check",
    "Prior",
    "Totals",
    "append",
    "decode",
    "estimate_interval",
    "fresh_share",
    "freshness",
]

HISTORY_CHECKS = 24
"""Largest number of checks in a history, one byte each."""

NO_HISTORY = b""
"""History of a page that was fetched at most once."""

_SHORTEST, _LONGEST, _STEPS = 0.05, 20 * 365 * 86400.0, 127
_LN_STEP = math.log(_LONGEST / _SHORTEST) / _STEPS
_INTERVALS = [_SHORTEST * math.exp(_LN_STEP * step) for step in range(_STEPS + 1)]
_TOLERANCE, _ROUNDS = 1e-4, 60
_expm1, _exp, _log = math.expm1, math.exp, math.log


class Check(NamedTuple):
    """One comparison of a page with its copy."""

    interval: float
    """Time since the previous fetch, in seconds."""
    changed: bool
    """True if the check found a change that counts."""


class Totals(NamedTuple):
    """Sums over all checks of a page, including checks older than its history."""

    checks: int
    changes: int
    observed_time: float
    """Time from the first copy to the last check, in seconds."""


class Prior(NamedTuple):
    """A prior belief: a page changes once per `interval` on average. The prior belief counts as much as `weight`
    observed changes.
    """

    interval: float
    """Mean time between changes of similar pages (same site or section), s, above 0."""
    weight: float = 0.5
    """Weight of the prior, as a number of changes, above 0."""


def append(history: bytes, interval: float, changed: bool) -> bytes:
    """Return a history with one more check.

    A byte consists of the flag `changed` (high bit) and one of 128 classes of intervals, from 50 ms to 20 years.
    """
    clipped = min(max(interval, _SHORTEST), _LONGEST)
    step = round(_log(clipped / _SHORTEST) / _LN_STEP)
    return (history + bytes((step | (128 if changed else 0),)))[-HISTORY_CHECKS:]


def decode(history: bytes) -> list[Check]:
    """Return the checks that `history` encodes, oldest first; their intervals are rounded."""
    return [Check(_INTERVALS[code & 127], code > 127) for code in history]


def estimate_interval(history: bytes, *, totals: Totals | None = None, prior: Prior) -> float:
    """Return a page's mean change interval, in seconds: 1/r at the mode of the posterior of ln r.

    ln posterior = w ln r - w D0 r - r (unchanged time) + sum over changed checks of ln(1 - exp(-r t)). The posterior is
    concave in ln r, so safeguarded Newton steps find its maximum. The gamma prior keeps the estimate finite if no
    check, or every check, found a change. The history contains only the newest checks, so `totals` supplies the older
    ones. A call takes about 10 µs for 24 checks.

    Source: likelihood for irregular intervals: Singh, *Estimating the rate of web page updates*, IJCAI 2007, and Cho &
    Garcia-Molina, *Estimating frequency of change*, TOIT 2003, section 6; the gamma prior is ours.
    """
    still, groups = _sufficient(history)
    if totals is not None and totals.checks > len(history):
        still = _add_older(groups, still, history, totals)
    return 1.0 / _mode(still + prior.weight * prior.interval, list(groups.items()), prior.weight)


def _sufficient(history: bytes) -> tuple[float, dict[float, float]]:
    still, groups = 0.0, dict[float, float]()
    for code in history:
        if code > 127:
            interval = _INTERVALS[code - 128]
            groups[interval] = groups.get(interval, 0.0) + 1.0
        else:
            still += _INTERVALS[code]
    return still, groups


def _add_older(groups: dict[float, float], still: float, history: bytes, totals: Totals) -> float:
    checks = totals.checks - len(history)
    changes = min(max(0, totals.changes - sum(code > 127 for code in history)), checks)
    observed_time = totals.observed_time - sum(_INTERVALS[code & 127] for code in history)
    if observed_time <= 0:  # rounded intervals may sum to more than the observed time
        return still
    mean = observed_time / checks
    if changes:
        groups[mean] = groups.get(mean, 0.0) + changes
    return still + (checks - changes) * mean


def _mode(still: float, groups: list[tuple[float, float]], weight: float) -> float:
    """Return the solution r of weight - r still + sum n x/(exp(x) - 1) = 0, where x = r t. `still` must be above 0, and
    so must `weight` or the number of changes.
    """
    top = weight + sum(number for _, number in groups)
    rate = top / (still + sum(number * interval for interval, number in groups) / 2)
    low, high = rate, top / still
    for _ in range(_ROUNDS):
        value, slope = weight - rate * still, -rate * still
        for interval, number in groups:
            x = rate * interval
            if x < 700.0:
                part = number * x / _expm1(x)
                value += part
                slope += part * (1.0 - x) - part * part / number
        if value > 0.0:
            low = rate
        else:
            high = rate
        proposed = rate * _exp(min(-value / slope, 50.0))
        if not low <= proposed <= high:
            proposed = math.sqrt(low * high)
        if abs(proposed - rate) <= _TOLERANCE * rate:
            return proposed
        rate = proposed
    return rate


class BucketAges(Protocol):
    """Number of crawled pages of a bucket, and the sum of the times of their last fetches, UTC seconds."""

    @property
    def pages(self) -> int: ...

    @property
    def sum_last_crawled(self) -> float: ...


def freshness(census: Mapping[int, BucketAges], *, never_crawled: int, at: float, fastest_s: float) -> float | None:
    """Return the estimated fresh share of the known live pages at time `at`; None if no page is known.

    Parameters
    ----------
    census : number and fetch times of the pages by bucket byte
    never_crawled : known pages without a copy, which are not fresh
    fastest_s : mean change interval of bucket 0, s
    """
    known = never_crawled + sum(row.pages for row in census.values())
    fresh = sum(
        row.pages * fresh_share(at - row.sum_last_crawled / row.pages, bucket, fastest_s=fastest_s)
        for bucket, row in census.items()
        if row.pages
    )
    return fresh / known if known else None


def fresh_share(mean_age: float, bucket: int, *, fastest_s: float) -> float:
    """Return the expected fresh share of a bucket, (1 - e^-2x)/2x with x = mean age / mean interval.

    Ages of copies are assumed to spread evenly from 0 to twice `mean_age` (in seconds).
    """
    # `core.buckets` imports numpy, 0.1 s at start. This line repeats its formula; a test compares them.
    interval = fastest_s * (730 * 96) ** (bucket / 255)
    twice = 2.0 * max(0.0, mean_age) / interval
    return -math.expm1(-twice) / twice if twice > 1e-9 else 1.0
