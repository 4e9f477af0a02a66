"""Compute how many fetches a freshness goal takes, and how many pages would be obsolete with fewer fetches.

A goal limits the share of obsolete pages, or of pages whose copies have been out of date for some time. Pages of a
bucket are assumed to change by a Poisson process. Visits are divided among the buckets so that one more fetch gains the
same in every bucket (`fetch_price`). Real pages do not change independently, so the model is corrected by the obsolete
share that real fetches found.

Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003 (freshness and age); Edwards
2001, section 5.4 (resources for a desired state of the repository).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.fetch_price import interval_of_rest, intervals_at_price, price_of_budget

if TYPE_CHECKING:
    from webfountain.core.arrays import Array

__all__ = ["Cost", "Goal", "PageClasses", "correction_of", "cost_of", "share_at"]

LESS: Final = 0.9
"""The obsolete share is also shown for this share of the fetches that a goal needs."""
LEAST_SHARE: Final = 1e-4
"""Lower limit of the obsolete shares from which corrections are computed; smaller shares are raised to this limit."""
_HALVINGS: Final = 36
_MOST_VISITS: Final = 1e4
"""A goal that takes more visits per change than this counts as out of reach."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A freshness goal: at most `share` of the pages may be out of date for longer than `age_s`. With `age_s` 0, every
    obsolete page counts.
    """

    share: float
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PageClasses:
    """Pages by bucket: (B,) the number of pages, and (B,) the changes per second of one page."""

    count: Array
    rate: Array


@dataclass(frozen=True, slots=True)
class Cost:
    """Fetches per second that a goal needs, the resulting out-of-date share, and both numbers for `LESS` times the
    fetches.
    """

    fetches_per_s: float
    share: float
    less_fetches_per_s: float
    less_share: float


def correction_of(found: float, pages: PageClasses, fetches_per_s: float) -> float:
    """Return the measured obsolete share divided by the share that the model predicts for `fetches_per_s`."""
    return max(found, LEAST_SHARE) / max(share_at(0.0, pages, fetches_per_s), LEAST_SHARE)


def cost_of(goal: Goal, pages: PageClasses, *, correction: float = 1.0) -> Cost | None:
    """Return the cost of a goal; None if even `_MOST_VISITS` visits per change do not reach the goal."""

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
    """Return which share of the pages is out of date for longer than `age_s` when pages are fetched at a given rate."""
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
