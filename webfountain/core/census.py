"""From what a crawl counted to the constants of its model: all are measured, none assumed for long.

Every constant starts from a prior worth a stated number of observations and gives way to the counts: change fraction
per bucket from changes found in the time watched, crawl seconds and new links per fetch, births per bucket, arrivals
from outside, the obsolete estimate from the mean age of the copies. Place in the walk (DESIGN 4): store's census ->
**here** -> `model` -> `optimizer`.

Source: Edwards 2001, section 3, the constants a, c, d, oldnwt, newnwt, nconst, p of equations (1)-(4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.buckets import intervals_of
from webfountain.core.model import Instance, make_instance
from webfountain.core.strategies import weights_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = ["Census", "instance_from", "obsolete_of"]

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
