"""The policies that `simulate revisit` compares ours with, from a clock to clairvoyance.

Each scores pages by what it is allowed to know; `simulate.revisit` fetches the greatest scores. The definitions are
those of the comparison's specification: tau is the number of days since the page's last fetch (or birth).
"""

from __future__ import annotations

__all__ = [
    "Clairvoyant",
    "Fetches",
    "Learner",
    "NutchAdaptive",
    "PoissonLearned",
    "PoissonOracle",
    "Proportional",
    "Uniform",
]

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from webfountain.core.urgency import urgency_of_known_rate

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.simulate.trace import Trace

    Array = npt.NDArray[np.float64]
    Pages = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]


class Fetches(NamedTuple):
    """What a day's fetches found, one array element each."""

    pages: Pages
    tau: Pages
    """Days since the fetch before, or since the birth."""
    first: Flags
    """Whether there was no copy before."""
    changed: Flags
    """Whether the page was obsolete (a first copy always is)."""
    gone: Flags
    """Whether the page was found deleted."""


class Learner(Protocol):
    """What the simulation asks of a policy. It never tells more than a crawler could see."""

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        """Urgency of known, crawled pages; ties go to the lower page."""
        ...

    def learn(self, day: int, fetches: Fetches) -> None:
        """Take in what the day's fetches found."""
        ...


class Uniform:
    """Every page equally often: the greatest tau first."""

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return tau.astype(np.float64)

    def learn(self, day: int, fetches: Fetches) -> None:
        """Nothing to learn."""


class Proportional(Uniform):
    """As often as the page truly changes: the greatest tau * rate first. Known to be worse than uniform.

    Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 4.
    """

    def __init__(self, trace: Trace) -> None:
        self._rate = true_rates(trace)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return np.asarray(tau * self._rate[pages])


class PoissonOracle(Uniform):
    """Optimal were the pages Poisson processes of known rate: the greatest index at the true rate first."""

    def __init__(self, trace: Trace) -> None:
        self._rate = true_rates(trace)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return urgency_of_known_rate(self._rate[pages], tau.astype(np.float64))


class PoissonLearned:
    """The oracle's index at a learned rate: (changes + 1/2)/(T + 60 days), half of tau counting when one was found."""

    def __init__(self, pages: int) -> None:
        self._changes, self._watched = np.zeros(pages), np.zeros(pages)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        rate = (self._changes[pages] + 0.5) / (self._watched[pages] + 60)
        return urgency_of_known_rate(rate, tau.astype(np.float64))

    def learn(self, day: int, fetches: Fetches) -> None:
        self._changes[fetches.pages] += fetches.changed
        self._watched[fetches.pages] += np.where(fetches.changed, fetches.tau / 2 + 0.25, fetches.tau)


class NutchAdaptive:
    """Nutch's adaptive schedule: the interval shrinks by 0.8 on a change and grows by 1.4 without one."""

    def __init__(self, pages: int) -> None:
        self._interval = np.full(pages, 30.0)

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        return np.asarray(tau / self._interval[pages])

    def learn(self, day: int, fetches: Fetches) -> None:
        factor = np.where(fetches.changed, 0.8, 1.4)
        self._interval[fetches.pages] = np.clip(self._interval[fetches.pages] * factor, 1, 365)


class Clairvoyant(Uniform):
    """The bound: of the obsolete pages that exist, those whose next event is farthest. It alone sees the truth."""

    def __init__(self, trace: Trace) -> None:
        order = np.lexsort((trace.day, trace.page))
        # One sorted key per event; the next event of a page is the first key not below (page, day).
        self._span = trace.days + 1
        self._keys = trace.page[order] * self._span + trace.day[order]

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        at = np.searchsorted(self._keys, pages * self._span + day)
        following = np.append(self._keys, np.iinfo(np.int64).max)[at]
        same = following // self._span == pages
        return np.where(same, following % self._span, self._span).astype(np.float64)


def true_rates(trace: Trace) -> Array:
    """(n,) a page's events in the window per day since the start or its birth."""
    events = np.bincount(trace.page, minlength=len(trace.urls))
    return np.asarray(events / (trace.days - trace.born))
