"""The policies that `simulate revisit` compares with ours, from a fixed interval to full knowledge.

Each policy scores the pages, and `simulate.revisit` fetches those with the greatest scores. The number of days since a
page's last fetch (or birth) is called tau.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from webfountain.core.urgency import urgency_of_known_rate

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.lab.simulate.trace import ChangeTrace

    Pages = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]
    Array = npt.NDArray[np.float64]

__all__ = [
    "RATES",
    "Array",
    "Clairvoyant",
    "Fetches",
    "Flags",
    "GreedyBayes",
    "LearnedPoisson",
    "Learner",
    "NutchAdaptive",
    "Pages",
    "PoissonOracle",
    "Proportional",
    "Uniform",
    "true_rates",
]

RATES: Final = np.geomspace(1 / 4096, 16.0, 33)
"""Grid of rates, changes per day."""
_PRIOR_PAGES: Final = 3.0
"""Weight of the first prior, in pages; under the first prior, all rates are equally likely."""
_SWEEPS: Final = 3
"""Number of steps of expectation maximisation per estimate."""
_EVERY: Final = 7
"""Days between two estimates of the prior."""


class Fetches(NamedTuple):
    """The results of one day's fetches; each array has one element per fetch."""

    pages: Pages
    tau: Pages
    """Days since the previous fetch, or since the page was born."""
    first: Flags
    """True if the page had no copy before the fetch."""
    changed: Flags
    """True if the page was obsolete, or if the fetch brought its first copy."""
    gone: Flags
    """True if the fetch found the page deleted."""
    waiting: int
    """Number of known pages that have no copy yet."""


class Learner(Protocol):
    """Interface of a policy to the simulation. A policy receives only what a crawler could see."""

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        """Return the urgency of known, crawled pages."""
        ...

    def learn(self, day: int, fetches: Fetches) -> None: ...


class Uniform:
    """Fetches every page equally often: the page whose last fetch is longest ago comes first."""

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return tau.astype(np.float64)

    def learn(self, day: int, fetches: Fetches) -> None:
        """Do nothing."""


class Proportional(Uniform):
    """Fetches pages in proportion to their true change rates: the page with the greatest tau * rate comes first.
    Fetching in proportion to change rates is worse than fetching all pages equally often.

    Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 4.
    """

    def __init__(self, trace: ChangeTrace) -> None:
        self._rate = true_rates(trace)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return np.asarray(tau * self._rate[pages])


class PoissonOracle(Uniform):
    """Fetches the most urgent page first, with urgencies computed from `true_rates`. So it knows how often each page
    changes in the trace. A page has at most one event per day, so the rates of fast pages are too small.
    """

    def __init__(self, trace: ChangeTrace) -> None:
        self._rate = true_rates(trace)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return urgency_of_known_rate(self._rate[pages], tau.astype(np.float64))


class LearnedPoisson:
    """Fetches like `PoissonOracle`, but with a learned rate: (changes + 1/2)/(T + 60 days). T is the sum of tau over
    all visits; a visit that found a change adds only half of its tau.
    """

    def __init__(self, pages: int) -> None:
        self._changes, self._observed_time = np.zeros(pages), np.zeros(pages)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        rate = (self._changes[pages] + 0.5) / (self._observed_time[pages] + 60)
        return urgency_of_known_rate(rate, tau.astype(np.float64))

    def learn(self, day: int, fetches: Fetches) -> None:
        self._changes[fetches.pages] += fetches.changed
        self._observed_time[fetches.pages] += np.where(fetches.changed, fetches.tau / 2 + 0.25, fetches.tau)


class NutchAdaptive:
    """Nutch's adaptive schedule: the interval of a page is multiplied by 0.8 after a change, otherwise by 1.4."""

    def __init__(self, pages: int) -> None:
        self._interval = np.full(pages, 30.0)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return np.asarray(tau / self._interval[pages])

    def learn(self, day: int, fetches: Fetches) -> None:
        factor = np.where(fetches.changed, 0.8, 1.4)
        self._interval[fetches.pages] = np.clip(self._interval[fetches.pages] * factor, 1, 365)


class Clairvoyant(Uniform):
    """Fetches first the obsolete pages whose next event is farthest in the future."""

    def __init__(self, trace: ChangeTrace) -> None:
        order = np.lexsort((trace.day, trace.page))
        # One sorted key per event; the next event of a page is the first key not below (page, day).
        self._span = trace.days + 1
        self._keys = trace.page[order] * self._span + trace.day[order]

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        at = np.searchsorted(self._keys, pages * self._span + day)
        following = np.append(self._keys, np.iinfo(np.int64).max)[at]
        same = following // self._span == pages
        return np.where(same, following % self._span, self._span).astype(np.float64)


def true_rates(trace: ChangeTrace) -> Array:
    """Return the (n,) rates of pages: events divided by days."""
    events = np.bincount(trace.page, minlength=len(trace.urls))
    return np.asarray(events / (trace.days - trace.born))


class GreedyBayes:
    """Fetches the page with the greatest posterior mean of the GREEDY index.

    Each page is assumed to have one of the rates in `RATES`. A visit d days after the previous one finds a change with
    probability 1 - e^(-rate d). The prior over `RATES` is fitted to past fetches of all pages by maximum likelihood.

    Source: Cho & Garcia-Molina, *Estimating frequency of change*, TOIT 2003 (likelihood); Efron, *Empirical Bayes
    deconvolution estimates*, Biometrika 2016 (prior on a grid); Azar et al., *Tractable near-optimal policies for
    crawling*, PNAS 2018 (index).
    """

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
        weights = np.exp(self._likelihood[pages]) * self._prior
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _estimate(self) -> None:
        visited = np.flatnonzero(self._visited)
        for _ in range(_SWEEPS if len(visited) else 0):
            found = self.posterior(visited).sum(axis=0) + _PRIOR_PAGES / len(RATES)
            self._prior = found / found.sum()
