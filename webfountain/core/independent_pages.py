"""Explain a site's changes by independent pages: each page changes at its own rate.

If the pages of a site change independently, `activity` mistakes coincidences for bursts. Each page is assumed to have
one of the rates in `RATES`. A visit d steps after the previous one finds a change with probability 1 - e^(-rate d). The
prior over the rates is fitted to past fetches of the site's pages by maximum likelihood.

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

    from webfountain.core.arrays import Array, Flags


__all__ = ["COLUMNS", "FIRST_PRIOR", "RATES", "PageEstimates", "PageRates", "evidence_of", "likelier_prior"]

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

    def alone(self, age: Array) -> PageEstimates:
        worth = urgency_of_known_rate(self._rates, age[:, None])
        return PageEstimates((self.chances * worth).sum(axis=1), self.chances @ self._rates)


def evidence_of(age: Array, changed: Flags) -> Array:
    """Return what one visit adds to the past of each page, (`COLUMNS`, pages); the previous visit was `age` steps
    earlier.
    """
    return np.stack([changed, np.where(changed, np.log(np.maximum(age, 1e-9)), 0.0), np.where(changed, 0.0, age)])


def likelier_prior(past: Array, prior: Array, *, usual_rate: float) -> npt.NDArray[np.float32]:
    """Return a prior that fits the site's pages better, by one step of expectation maximisation."""
    rates = PageRates(past[:, past[0] + past[2] > 0], prior[None], usual_rate=usual_rate)
    found = rates.chances.sum(axis=0) + PRIOR_PAGES * FIRST_PRIOR
    return np.asarray(found / found.sum(), dtype=np.float32)


def _first_prior() -> npt.NDArray[np.float32]:
    weights = np.exp(-(np.log(RATES) ** 2) / 2 / SPREAD**2)
    return np.asarray(weights / weights.sum(), dtype=np.float32)


FIRST_PRIOR: Final = _first_prior()
"""(rates,) prior of a site whose pages were not visited yet."""
