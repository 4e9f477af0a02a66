"""Values from which the urgencies of all sites are computed, and the times at which they are computed.

Time is divided into *steps*; within a step, urgencies do not grow. A step is one 36th of the mean time between two
visits to a page, but at least a fiftieth of a period, and at most a period. The steps of different sites begin at
different moments, so that not all sites are computed at once. Times are UTC seconds.

A site is searched for urgent pages when one of its pages may have become urgent. Every site is searched for urgent
pages at regular intervals, because the price of a fetch may have fallen.
"""

from __future__ import annotations

from functools import lru_cache
from math import floor, inf, log
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from webfountain.core.importance import importance_by_depth
from webfountain.frontier.planning.schedule import CHECKS_PER_PERIOD
from webfountain.urls import path_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.core.signals import Signals
    from webfountain.records import PageRecord

__all__ = [
    "LESSONS",
    "NEARLY",
    "PAUSE",
    "STEPS",
    "SiteSteps",
    "UrgencyPace",
    "UrgencyTerms",
]

STRANGE: Final = 1.5
"""Factor by which the interval between visits must change before a site's time steps get a new length."""
STEPS: Final = 36
"""Number of time steps into which the mean interval between two visits to a page is divided."""
FEWEST_CHOICES: Final = 2
"""Pages are chosen by urgency only if at least this many price checks fit between two visits to an average page."""
PAUSE: Final = 0.25
"""For a site with due pages, the minimum time between two computations of its urgencies, as a share of a step."""
WAKES: Final = 0.5
"""Maximum number of regular searches of sites for urgent pages, per fetch."""
LEAST_WAKES: Final = 6000.0
"""Number of regular searches of sites for urgent pages that are allowed per period, even with a small budget."""
LESSONS: Final = 0.25
"""Maximum number of sites whose urgencies are computed, on average for each fetch."""
REST: Final = 2.0
"""Largest value of `UrgencyPace.rest_s`, in time steps."""
AT_LEAST: Final = 50.0
"""Even with a small budget, the urgencies of this many sites may be computed per second, which takes 0.5 % of
a core.
"""
TOGETHER: Final = 40
"""Approximate number of sites that are searched for urgent pages at the same moment.
"""
NEARLY: Final = 0.9
"""`PageSupply` counts its pages again after this share of the time between two price checks."""
READY_S: Final = 1.0
"""If the time between two price checks is shorter than this, in seconds, `UrgencyPace.rest_s` is 0."""


class UrgencyTerms(NamedTuple):
    """Values from which the urgencies of all sites of a collection are computed."""

    signals: Signals
    """The signals from which urgencies are computed (`core.signals`), with times in periods."""
    period: float
    """Length of a period, in seconds."""
    interval: float
    """Mean time between two visits to a page, given the budget, in seconds."""
    shortest: float
    """Shortest time that any policy allows between two fetches of a page, in seconds."""
    weighed: bool
    """True if urgencies are weighted by the importance of pages; a page without importance is weighted by its depth."""
    rests: Mapping[str, float] = {}
    """For each policy, its `revisit.min_interval` minus `shortest`, in seconds."""

    @property
    def step_s(self) -> float:
        return self.period / self._steps

    @property
    def turnaround_s(self) -> float:
        """Return how long it takes until each window of a very large site has been in memory once, in seconds."""
        return max(self.step_s, self.interval / STEPS)

    @property
    def beliefs(self) -> Signals:
        """Return `signals` with times in steps instead of periods."""
        return _beliefs(self.signals, self.interval / self.period, self._steps)

    @property
    def _steps(self) -> float:
        return min(max(1.0, STEPS * self.period / self.interval), CHECKS_PER_PERIOD)

    @property
    def rests_mark(self) -> int:
        """Return a checksum of `rests`, or 0 if `rests` is empty. A site's saved data are used only while the checksum
        is the same.
        """
        return crc32(repr(sorted(self.rests.items())).encode()) if self.rests else 0

    def rounded(self) -> UrgencyTerms:
        """Return the terms with a rounded interval, so that the urgencies of many sites can be computed together."""
        return self._replace(interval=STRANGE ** round(log(self.interval) / log(STRANGE)))

    def fit(self, interval: float) -> bool:
        """Return whether `interval` is close enough to the terms' own interval between visits."""
        return 1 / STRANGE < interval / self.interval < STRANGE

    def weight(self, record: PageRecord) -> float:
        if not self.weighed:
            return 1.0
        return record.importance or float(importance_by_depth([path_of(record.url)])[0])

    def candidate_since(self, record: PageRecord) -> float:
        """Return the time of a page's last fetch plus the entry of its policy in `rests`, or inf if the last fetch
        failed.

        The page may be fetched again `shortest` seconds after the returned time.
        """
        if record.failures or record.last_crawled is None:
            return inf
        return record.last_crawled + self.rests.get(record.policy, 0.0)


@lru_cache(64)
def _beliefs(signals: Signals, interval: float, steps: float) -> Signals:
    return signals.lasting(interval).spread(steps)


class SiteSteps(NamedTuple):
    """The time steps of one site."""

    step_s: float
    phase: float
    """Fraction of a step by which the site's steps are shifted, so that the steps of sites begin at different times."""

    @classmethod
    def of(cls, site: str, terms: UrgencyTerms) -> SiteSteps:
        return cls(terms.step_s, (crc32(site.encode()) & 1023) / 1024)

    def step(self, at: float) -> int:
        """Return the number of the step that contains a time."""
        return floor(at / self.step_s + self.phase) + 1

    def begin_of(self, step: int) -> float:
        return (step - 1 - self.phase) * self.step_s

    def next_at(self, at: float) -> float:
        """Return when the first step after the time `at` begins."""
        return self.begin_of(self.step(at) + 1)


class UrgencyPace:
    """Decides how often sites are searched for urgent pages, and how often urgencies are computed."""

    def __init__(self, terms: UrgencyTerms, *, capacity: float) -> None:
        """`capacity` is the budget, in fetches per period."""
        self.terms = terms
        self._capacity = capacity
        self.sleep_s = 0.0
        """Maximum time between two searches of a site for urgent pages, in seconds."""
        self.rest_s = 0.0
        """Minimum time between two computations of a site's urgencies, in seconds."""
        self.round_s = self.check_s
        """Sites are searched for urgent pages at multiples of this time, in seconds."""

    def divide(self, pages: int, sites: int, *, coming: int = 0, budget: float | None = None) -> None:
        """Compute from the budget how often pages are visited and sites are searched.

        Parameters
        ----------
        pages : number of crawled pages
        coming : number of never-crawled pages, which count up to one period's fetches
        budget : fetches per period in the plan, or None without a plan
        """
        self._capacity = budget or self._capacity
        period = self.terms.period
        pages += min(coming, int(self._capacity))
        self.terms = self.terms._replace(interval=max(pages, 1) / self._capacity * period)
        rate = self._capacity / period
        reckoned = max(LESSONS * rate, AT_LEAST)
        self.sleep_s = max(self.check_s, sites / max(WAKES * rate, LEAST_WAKES / period))
        self.rest_s = min(sites / reckoned, REST * self.terms.step_s) if self.check_s >= READY_S else 0.0
        self.round_s = min(self.check_s, TOGETHER / reckoned)

    def adopt(self, *, shortest: float, rests: Mapping[str, float]) -> None:
        """Set `UrgencyTerms.shortest` and `rests` to the values of an edited policy file."""
        self.terms = self.terms._replace(shortest=shortest, rests=rests)

    @property
    def ranks(self) -> bool:
        """True if pages are chosen by urgency. False if the budget is so large that each page is fetched at the
        interval of its bucket.
        """
        return self.terms.interval >= FEWEST_CHOICES * self.check_s

    @property
    def check_s(self) -> float:
        """Time between two checks of the price and of the forecast, in seconds."""
        return self.terms.period / CHECKS_PER_PERIOD

    @property
    def pause_s(self) -> float:
        """For a site with due pages, the minimum time between two computations of its urgencies, in seconds."""
        return max(self.check_s, PAUSE * self.terms.step_s)

    def fetches(self, checks: float) -> float:
        """Return how many fetches the budget allows in the time of `checks` price checks."""
        return checks * self._capacity / CHECKS_PER_PERIOD
