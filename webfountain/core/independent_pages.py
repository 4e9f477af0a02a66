"""Explain a site's changes by independent pages: each page changes at its own rate.

If the pages of a site change independently, `activity` mistakes coincidences for bursts. Each page is assumed to have
one of the rates in `RATES`. A visit d steps after the previous one finds a change with probability 1 - e^(-rate d). The
prior over the rates is fitted to past fetches of the site's pages by maximum likelihood.

If every visit of a page found a change, its rate may be any rate above one change per visit. A page that changes fast
is hardly worth a fetch, so it would be given up and nobody would notice that it changes slowly: bursts make slow pages
look fast. So the pages of a sample (`is_in_sample`) are never given up. Their visits are closer together, and show
which part of the changing pages is fast.

Source: Cho & Garcia-Molina, *Estimating frequency of change*, TOIT 2003 (likelihood); Efron, *Empirical Bayes
deconvolution estimates*, Biometrika 2016 (prior on a grid); Azar et al., *Tractable near-optimal policies for
crawling*, PNAS 2018 (urgency).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.core.urgency import urgency_of_known_rate

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.core.arrays import Array, Flags, Ints


__all__ = [
    "COLUMNS", "FIRST_PRIOR", "RATES", "PageEstimates", "PageRates", "evidence_of", "is_in_sample", "likelier_prior",
]  # fmt: skip

RATES: Final = np.geomspace(0.03, 2000.0, 16)
"""Possible rates of a page, as multiples of `Signals.prior_rate`."""
COLUMNS: Final = 3
"""The past of a page is three numbers:

- number of visits that found a change
- sum of the logarithms of the intervals before these visits
- sum of the intervals before the other visits, steps
"""
SPREAD: Final = 4.0
PRIOR_PAGES: Final = 3.0
"""The first prior of a site counts as much as this many pages."""
LEAST_SPACING: Final = 16
"""At most one page in this many belongs to the sample of a site."""
CONTRADICTION: Final = 2.0
"""The sample contradicts what all changing pages show if both differ by more than this many standard errors."""
_TINY: Final = 1e-300


class PageEstimates(NamedTuple):
    """Estimates for pages that change independently; one element per page."""

    urgency: Array
    """Urgency, steps."""
    rate: Array
    """Mean rate, changes per step."""


class PageRates:
    """Probability that a page has each of the rates in `RATES`, for some pages."""

    def __init__(self, past: Array, prior: Array, *, usual_rate: float) -> None:
        """Compute the probability of each change rate for each page. `past` has the shape (len(`COLUMNS`), pages), and
        `prior` the shape (pages, rates)."""
        self._rates = RATES * usual_rate
        found, logs, quiet = past
        after = np.exp(logs / np.maximum(found, 1.0))
        likelihood = np.log(np.maximum(-np.expm1(-np.outer(after, self._rates)), _TINY))
        likelihood *= found[:, None]
        likelihood -= np.outer(quiet, self._rates)
        likelihood -= likelihood.max(axis=1, keepdims=True)
        chances = np.exp(likelihood) * prior
        self.chances = chances / np.maximum(chances.sum(axis=1, keepdims=True), _TINY)
        """Probability of each rate for each page, (pages, rates)."""

    def changed(self, age: Array) -> Array:
        """Return the probability that each page changed within `age` steps."""
        return np.asarray((self.chances * -np.expm1(-np.outer(age, self._rates))).sum(axis=1))

    def growing(self, age: Array) -> Array:
        """Return the probability that each page becomes obsolete in the next step."""
        return np.asarray((self.chances * self._rates * np.exp(-np.outer(age, self._rates))).sum(axis=1))

    def alone(self, age: Array, *, sample: Flags, tellable: float) -> PageEstimates:
        """Return the estimates for pages that were fetched `age` steps ago. For the pages of the sample, no rate above
        `tellable` is believed.
        """
        worth = urgency_of_known_rate(self._rates, age[:, None])
        worth[sample] = urgency_of_known_rate(np.minimum(self._rates, tellable), age[sample, None])
        return PageEstimates((self.chances * worth).sum(axis=1), self.chances @ self._rates)


def evidence_of(age: Array, changed: Flags) -> Array:
    """Return what one visit adds to the past of each page, (`COLUMNS`, pages); the previous visit was `age` steps
    earlier.
    """
    return np.stack([changed, np.where(changed, np.log(np.maximum(age, 1e-9)), 0.0), np.where(changed, 0.0, age)])


def is_in_sample(page: Ints, pages: Ints | int) -> Flags:
    """Return whether each page belongs to the sample of its site, given its number and the number of pages of the site.

    The sample has about half as many pages as the square root of the number of pages. While a site grows, the page
    numbers in the sample are seldom replaced.
    """
    spacing = np.maximum(2 ** np.rint(np.log2(2.0 * np.sqrt(np.maximum(pages, 1)))), LEAST_SPACING)
    return np.asarray(page % spacing == spacing - 1)


def likelier_prior(past: Array, prior: Array, *, usual_rate: float, tellable: float) -> npt.NDArray[np.float32]:
    """Return a prior that fits the site's pages better, by one step of expectation maximisation.

    Which part of the changing pages is faster than `tellable`, in changes per step, is estimated from the sample alone
    if the sample contradicts what all changing pages show.
    """
    visited = np.flatnonzero(past[0] + past[2] > 0)
    chances = PageRates(past[:, visited], prior[None], usual_rate=usual_rate).chances
    changing, first = past[0, visited] > 0, PRIOR_PAGES * FIRST_PRIOR
    found, fast = chances[changing].sum(axis=0), RATES * usual_rate > tellable
    sample = chances[changing & is_in_sample(visited, past.shape[1])].sum(axis=0) + first
    part, total = sample[fast].sum() / sample.sum(), max(found.sum(), _TINY)
    believed = min(found[fast].sum() / total, 1.0)
    error = np.sqrt(believed * (1.0 - believed) / sample.sum())
    if past.shape[1] >= LEAST_SPACING and abs(part - believed) > CONTRADICTION * error > 0.0:
        found[fast] *= part / believed
        found[~fast] *= (1.0 - part) / (1.0 - believed)
    found += chances[~changing].sum(axis=0) + first
    return np.asarray(found / found.sum(), dtype=np.float32)


def _first_prior() -> npt.NDArray[np.float32]:
    weights = np.exp(-(np.log(RATES) ** 2) / 2 / SPREAD**2)
    return np.asarray(weights / weights.sum(), dtype=np.float32)


FIRST_PRIOR: Final = _first_prior()
"""(rates,) prior of a site whose pages were not visited yet."""
