"""GREEDY with empirical-Bayes rates: the policy from the literature that ours is compared with, for pages that change
independently.

Each page has one rate from a grid. A visit d days after the last finds a change with probability 1 - e^(-rate d), so
the likelihood of a page's past is exact for each rate, even far beyond one change per visit. The prior over the grid
is the one that makes the pasts of all pages together most likely (nonparametric empirical Bayes, by expectation
maximisation). The page with the greatest posterior mean of the GREEDY index is fetched first; this includes the value
of learning a rate.

Source: Cho & Garcia-Molina, *Estimating frequency of change*, TOIT 2003 (likelihood); Efron, *Empirical Bayes
deconvolution estimates*, Biometrika 2016 (prior on a grid); Azar et al., *Tractable near-optimal policies for
crawling*, PNAS 2018 (index).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.urgency import urgency_of_known_rate

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.lab.simulate.rivals import Fetches

    Array = npt.NDArray[np.float64]
    Pages = npt.NDArray[np.int64]

__all__ = ["RATES", "GreedyBayes"]

RATES: Final = np.geomspace(1 / 4096, 16.0, 33)
"""Changes per day; neighbours differ by the factor √2."""
_PRIOR_PAGES: Final = 3.0
"""Weight, in pages, of the prior before any visit, which gives all rates equal weights."""
_SWEEPS: Final = 3
"""Number of steps of expectation maximisation per estimate; the prior continues from the last one."""
_EVERY: Final = 7
"""Days between two estimates of the prior."""


class GreedyBayes:
    """A policy of `simulate revisit` that learns."""

    def __init__(self, pages: int, days: int) -> None:
        self._likelihood = np.zeros((pages, len(RATES)))  # logarithms, up to a constant per page
        self._prior = np.full(len(RATES), 1.0 / len(RATES))
        self._visited = np.zeros(pages, dtype=np.bool_)
        self._estimated = -_EVERY
        ages = np.arange(days + 1, dtype=np.float64)[:, None]
        self._worth = urgency_of_known_rate(RATES, ages)  # (ages, rates)
        with np.errstate(divide="ignore"):
            self._log_change = np.log(-np.expm1(-RATES * ages))

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        if day >= self._estimated + _EVERY:
            self._estimate()
            self._estimated = day
        return np.asarray((self.posterior(pages) * self._worth[tau]).sum(axis=1))

    def learn(self, day: int, fetches: Fetches) -> None:
        seen = ~fetches.first & ~fetches.gone & (fetches.tau > 0)
        pages, tau, changed = fetches.pages[seen], fetches.tau[seen], fetches.changed[seen]
        likelihood = np.where(changed[:, None], self._log_change[tau], -RATES * tau[:, None])
        self._likelihood[pages] += likelihood
        self._likelihood[pages] -= self._likelihood[pages].max(axis=1, keepdims=True)
        self._visited[pages] = True

    def posterior(self, pages: Pages) -> Array:
        """Return (pages, rates) the probability of each rate."""
        weights = np.exp(self._likelihood[pages]) * self._prior
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _estimate(self) -> None:
        visited = np.flatnonzero(self._visited)
        for _ in range(_SWEEPS if len(visited) else 0):
            found = self.posterior(visited).sum(axis=0) + _PRIOR_PAGES / len(RATES)
            self._prior = found / found.sum()
