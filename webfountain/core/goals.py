"""Compute the number of fetches that a goal of freshness takes, and the share that fewer fetches would give.

A goal is an upper bound on the share of pages that are obsolete, or on the share of pages whose copy has been out of
date for longer than an age. Pages of a bucket are assumed to change by a Poisson process. Buckets are visited at the
intervals at which one more fetch gains the same in every bucket (`fetch_price`). So each rate of fetches gives a share,
and the rate for a goal is found by bisection. Pages that change together are obsolete more or less often than
independent pages. So if fetches have shown the share at the current rate, the model is corrected by it.

Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003 (freshness and age); Edwards
2001, section 5.4, suggests asking which resources a desired state of the repository requires.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.fetch_price import interval_of_rest, intervals_at_price, price_of_budget

if TYPE_CHECKING:
    from webfountain.core.model import Array

__all__ = ["Cost", "Goal", "PageClasses", "correction_of", "cost_of", "share_at"]

LESS: Final = 0.9
"""Number of fetches of the cheaper alternative, as a share of the fetches that the goal takes."""
LEAST_SHARE: Final = 1e-4
"""Lower limit for the measured share and for the model's share when their ratio, the correction, is computed."""
_HALVINGS: Final = 36
_MOST_VISITS: Final = 1e4
"""Largest number of visits per change that a goal may take."""


@dataclass(frozen=True, slots=True)
class Goal:
    """At most `share` of the pages may be out of date for longer than `age_s`; if `age_s` is 0, any obsolete page
    counts."""

    share: float
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PageClasses:
    """(B,) number of pages of each bucket, and changes per second of each page."""

    count: Array
    rate: Array


@dataclass(frozen=True, slots=True)
class Cost:
    """The fetches per second that a goal takes, and the share with only `LESS` times as many."""

    fetches_per_s: float
    share: float
    """Share of out-of-date pages at this rate; it is below the goal if the goal takes no fetches."""
    less_fetches_per_s: float
    less_share: float


def correction_of(found: float, pages: PageClasses, fetches_per_s: float) -> float:
    """Return the obsolete share that was found at a rate of fetches, divided by the model's share at this rate."""
    return max(found, LEAST_SHARE) / max(share_at(0.0, pages, fetches_per_s), LEAST_SHARE)


def cost_of(goal: Goal, pages: PageClasses, *, correction: float = 1.0) -> Cost | None:
    """Return what a goal costs; None if not even `_MOST_VISITS` visits per change would reach it.

    `correction` is the measured share divided by the model's share, both at the current rate (`correction_of`).
    """

    def share(fetches_per_s: float) -> float:
        return correction * share_at(goal.age_s, pages, fetches_per_s)

    low, high = 0.0, _MOST_VISITS * float((pages.count * pages.rate).sum())
    if share(high) > goal.share:
        return None
    if share(low) <= goal.share:
        return Cost(0.0, share(low), 0.0, share(low))
    least = 1e-9 * high
    for _ in range(_HALVINGS):
        middle = sqrt(max(low, least) * high)
        low, high = (low, middle) if share(middle) <= goal.share else (middle, high)
    return Cost(high, share(high), LESS * high, share(LESS * high))


def share_at(age_s: float, pages: PageClasses, fetches_per_s: float) -> float:
    """Return the share of pages that are out of date for longer than `age_s`, if they are visited at this rate."""
    interval = _intervals(pages, fetches_per_s)
    is_visited = np.isfinite(interval)
    late = np.where(is_visited, np.maximum(interval - age_s, 0.0), 0.0)
    x = pages.rate * late
    # The chance that the first change was more than `age_s` ago, averaged over the time between two visits.
    unseen = np.where(x > 1e-9, -np.expm1(-x) / np.maximum(pages.rate, 1e-300), late)
    share = np.where(is_visited, (late - unseen) / np.where(is_visited, interval, 1.0), pages.rate > 0)
    return float((pages.count * share).sum() / pages.count.sum())


def _intervals(pages: PageClasses, fetches_per_s: float) -> Array:
    if fetches_per_s <= 0.0:
        return np.full(len(pages.count), inf)
    price = price_of_budget(pages.count, pages.rate, fetches_per_s)
    rest = interval_of_rest(pages.count, pages.rate, price, fetches_per_s)
    return intervals_at_price(pages.rate, price, longest=rest)
