"""From a census by bucket to the model's instance, and from a plan to the pages that are due: phase clocks.

Each bucket has a clock V that gains the planned crawl fraction of the bucket in each period; a page is due when V has
gained 1 since its last crawl. A page remembers only V at its last crawl, so a new plan rewrites no queue, and inside
a bucket the order is oldest crawled first. The plan between the two is made in `optimizer`.

Source: Edwards 2001, section 3 (what the crawler uses: x[i,t]/b[i,t]); the clocks are DESIGN section 4's.
"""

from __future__ import annotations

__all__ = ["STRATEGIES", "PhaseClocks", "instance_of", "weights_of"]

from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.buckets import BUCKETS, intervals_of
from webfountain.core.model import Instance, make_instance

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

STRATEGIES = (1, 2, 3)
"""1: equal weights in all periods; 2: the last period only; 3: the last, and very little before."""

_LOW = 0.008  # strategy 3's weight of the periods before the last, as calibrated to the paper's Table 3


def weights_of(strategy: int, periods: int) -> Array:
    """(T,) weights of the periods in the objective. Source: Edwards 2001, section 4.1.

    Raises ValueError when `strategy` is none of `STRATEGIES`.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy {strategy}; must be one of {STRATEGIES}")
    weights = np.full(periods, {1: 1.0, 2: 0.0, 3: _LOW}[strategy])
    weights[-1] = 1.0
    return weights


def instance_of(
    buckets: Ints,
    pages: Array,
    obsolete: Array,
    *,
    strategy: int,
    periods: int,
    period: float,
    fastest: float,
    capacity: float,
    waiting: float,
    arrivals: float,
) -> Instance:
    """The model's instance for the non-empty buckets of a census.

    Parameters
    ----------
    buckets : (B,) bucket bytes
    pages, obsolete : (B,) pages in each, and how many of them are expected to be obsolete
    period, fastest : length of a period and mean interval of bucket 0, s
    capacity : fetches per period; old and new pages cost the same here
    waiting : known pages never crawled
    arrivals : new pages per period
    """
    changing = -np.expm1(-period / intervals_of(buckets, fastest))
    weights = weights_of(strategy, periods)
    return make_instance(
        a=np.tile(changing, (periods, 1)),
        C=np.full(periods, capacity),
        b0=pages,
        y0=obsolete,
        n0=waiting,
        nconst=np.full(periods, arrivals),
        p=pages / pages.sum(),
        oldwt=np.tile(weights[:, None], (1, len(buckets))),
        newwt=weights,
    )


class PhaseClocks:
    """One clock per bucket byte; a page keeps the `mark` of its last crawl."""

    def __init__(self) -> None:
        self._phase = np.zeros(BUCKETS)

    def advance(self, buckets: Ints, increments: Array) -> None:
        """Let a period pass: the crawl fractions x/b of the buckets that the plan knows.

        A bucket that was empty when the plan was made goes with its nearest planned neighbour; where two are as near,
        the faster.
        """
        order = np.argsort(buckets)
        known, gained = buckets[order], increments[order]
        middles = (known[1:] + known[:-1]) / 2
        self._phase += gained[np.searchsorted(middles, np.arange(BUCKETS))]

    def mark(self, buckets: Ints) -> Array:
        """(n,) what pages of these buckets, crawled now, keep."""
        return np.asarray(self._phase[buckets])

    def progress(self, buckets: Ints, marks: Array) -> Array:
        """(n,) how far pages are on the way to their next crawl; at 1 they are due."""
        return np.asarray(self._phase[buckets] - marks)
