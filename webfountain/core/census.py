"""Estimate the constants of the optimisation model from the counts of a crawl.

The constants of a bucket are its change rate, its crawl time per page, its new links per fetch, and its share of the
new pages. The census also contains the number of obsolete pages, and the number of new URLs from seeds and sitemaps.

Source: Edwards 2001, section 3, the constants a, c, d, oldnwt, newnwt, nconst, p of equations (1)-(4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.buckets import intervals_of
from webfountain.core.model import Instance, make_instance, weights_of

if TYPE_CHECKING:
    from webfountain.core.arrays import Array, Ints

__all__ = ["MOST_FINDS", "PRIOR_LINKS", "Census", "change_rates", "instance_from", "obsolete_of"]

PRIOR_CHANGES: Final = 5.0
"""Weight, in changes, of the prior belief that pages change at the nominal interval of their bucket."""
PRIOR_FETCHES: Final = 20.0
"""Weight, in fetches, of the prior belief that a bucket has the mean cost and discovery rate of the collection."""
MOST_FINDS: Final = 0.9
"""Upper limit of newnwt, the mean number of new pages found by fetching a never-crawled page."""
EARLY: Final = 1e-3
"""Least weight of a period in the objective. Strategy 2 counts only the last period, so with a weight of 0 it would not
prefer an early crawl to a late one.
"""
PRIOR_LINKS: Final = 0.02
"""Before any fetch is counted, a fetch is assumed to find this many new URLs."""


@dataclass(frozen=True, slots=True)
class Census:
    """Counts of one collection over its last periods; arrays have one element per non-empty bucket.

    Attributes
    ----------
    buckets : (B,) bucket bytes, ascending
    pages : (B,) crawled pages
    mean_age : (B,) mean time since their last crawl, s
    fetches, changes, observed_time, seconds, links, births : (B,) counts of these periods; observed_time and seconds
        in s
    new_fetches, new_seconds, new_links : the same counts for never-crawled pages
    waiting : known pages without a copy
    arrivals : URLs from outside, per period
    recrawls : fetches of known pages per period, over the periods that were counted
    found : obsolete share that the fetches of the last complete cycle found; None before the first cycle is complete
    """

    buckets: Ints
    pages: Array
    mean_age: Array
    fetches: Array
    changes: Array
    observed_time: Array
    seconds: Array
    links: Array
    births: Array
    new_fetches: float
    new_seconds: float
    new_links: float
    waiting: float
    arrivals: float
    recrawls: float = 0.0
    found: float | None = None


def change_rates(census: Census, fastest: float) -> Array:
    """Return (B,) changes per page and second; the prior of a bucket is its nominal interval.

    The result is the posterior mean of a Poisson rate under a gamma prior of weight PRIOR_CHANGES. If nearly every
    check finds a change, the visits are too rare for an estimate, and the nominal interval is kept.
    """
    believed = 1.0 / intervals_of(census.buckets, fastest)
    found = np.divide(census.changes, census.fetches, out=np.zeros_like(census.pages), where=census.fetches > 0)
    gap = np.divide(census.observed_time, census.fetches, out=np.zeros_like(census.pages), where=census.fetches > 0)
    # An interval between two visits may contain several changes; correction: Cho & Garcia-Molina 2003, section 4.2.
    share = (census.fetches - census.changes + 0.5) / (census.fetches + 0.5)
    measured = np.where(gap > 0, -np.log(share) / np.where(gap > 0, gap, 1.0), believed)
    observed_time = np.where(found < 0.95, census.observed_time, 0.0)
    return np.asarray(
        (measured * observed_time + PRIOR_CHANGES) / (observed_time + PRIOR_CHANGES / believed), dtype=np.float64
    )


def obsolete_of(census: Census, rates: Array) -> Array:
    """Return the (B,) expected numbers of obsolete pages. The ages of copies are assumed to be evenly spread from 0 to
    twice their mean.
    """
    spread = 2.0 * rates * np.maximum(census.mean_age, 0.0)
    fresh = np.where(spread > 1e-9, -np.expm1(-spread) / np.where(spread > 1e-9, spread, 1.0), 1.0)
    return np.asarray(census.pages * (1.0 - fresh))


def instance_from(
    census: Census, *, strategy: int, periods: int, period: float, fastest: float, capacity: float, in_pages: bool
) -> Instance:
    """Build the model's instance for a live collection.

    A reachable page without a copy counts as obsolete, even before its URL is known (DESIGN.md section 1). The model's
    n counts only known pages, so a fetch of a new page that leads only to other new pages would seem worthless. To
    count unknown pages too, the weight of n is divided by 1 - newnwt, and oldnwt is multiplied by 1 - newnwt. A
    never-crawled URL counts as a fraction of a page: the measured chance that it leads to a page.

    Parameters
    ----------
    capacity : per period: fetches if `in_pages` (every page costs one), else crawling time, s
    """
    rates = change_rates(census, fastest)
    weights = np.maximum(weights_of(strategy, periods), EARLY)
    old_links = _per_fetch(census.links, census.fetches, PRIOR_LINKS)
    new_links = (census.new_links + PRIOR_LINKS * PRIOR_FETCHES) / (census.new_fetches + PRIOR_FETCHES)
    finds = min(new_links, MOST_FINDS)
    mean_s = (census.seconds.sum() + census.new_seconds + 1.0) / (census.fetches.sum() + census.new_fetches + 1.0)
    chance = min((census.births.sum() + PRIOR_FETCHES) / (census.new_fetches + PRIOR_FETCHES), 1.0)
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
        newwt=weights * chance / (1.0 - finds),
        periods=periods,
    )


def _per_fetch(counted: Array, fetches: Array, believed: float) -> Array:
    """Return (B,) counts per fetch; a bucket with few fetches gets about the mean of all buckets."""
    mean = (counted.sum() + believed * PRIOR_FETCHES) / (fetches.sum() + PRIOR_FETCHES)
    return np.asarray((counted + mean * PRIOR_FETCHES) / (fetches + PRIOR_FETCHES))
