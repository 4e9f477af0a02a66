"""Terms of the urgency computation: what applies to all sites, and when a site is computed.

A *step* is one 36th of the mean time between two visits to a page. A step is at least a fiftieth of a period and at
most a period. Within a step no page becomes more urgent. The steps of different sites begin at different moments, so
that sites are not all computed at once. Times are UTC seconds.

A site is asked when one of its pages may be worth the price (`UrgencyPace`). A site is also asked at intervals, because
the price may have fallen. With very many sites, each site waits between two computations, and many sites are asked at
the same moment.
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
"""A site has new steps when the interval between visits has changed by more than this factor."""
STEPS: Final = 36
"""Number of steps between two visits to a page, within the limits of a step's length."""
FEWEST_CHOICES: Final = 2
"""Smallest number of checks between two visits to a page for which pages are chosen by urgency."""
PAUSE: Final = 0.25
"""A site with waiting pages learns from changes at most once in this share of a step. To learn, the urgency of all
pages of the site is computed again."""
WAKES: Final = 0.5
"""Largest number of sites, per fetch, that are asked only because the price may have fallen."""
LEAST_WAKES: Final = 6000.0
"""Number of sites per period that may always be asked only because the price may have fallen."""
LESSONS: Final = 0.25
"""Number of site computations per fetch."""
REST: Final = 2.0
"""Largest number of steps that a site waits between two computations."""
AT_LEAST: Final = 50.0
"""Number of site computations per second that are always allowed, at the cost of a two-hundredth of a core."""
TOGETHER: Final = 40
"""Number of sites that are asked at the same moment. No site is delayed by more than the time between two checks."""
NEARLY: Final = 0.9
"""Share of the time between two checks after which the work of a check may be done again."""
READY_S: Final = 1.0
"""Longest time from asking a site until its pages are fetched, s."""


class UrgencyTerms(NamedTuple):
    """Terms for all sites of a collection."""

    signals: Signals
    """The signals, in periods."""
    period: float
    """Length of a period, s."""
    interval: float
    """Mean time between two visits to a page under the budget, s."""
    shortest: float
    """Shortest time between two fetches of a page, s."""
    weighed: bool
    """True if a page's importance counts, or the depth of a page without importance."""
    rests: Mapping[str, float] = {}
    """For each policy, the shortest time between two fetches of its pages, minus `shortest`, s."""

    @property
    def step_s(self) -> float:
        return self.period / self._steps

    @property
    def turnaround_s(self) -> float:
        """Return the time in which each window of a very large site has one turn, s."""
        return max(self.step_s, self.interval / STEPS)

    @property
    def beliefs(self) -> Signals:
        """Return the signals in steps."""
        return _beliefs(self.signals, self.interval / self.period, self._steps)

    @property
    def _steps(self) -> float:
        return min(max(1.0, STEPS * self.period / self.interval), CHECKS_PER_PERIOD)

    @property
    def rests_mark(self) -> int:
        """Return a checksum of `rests`, or 0 without rests. The saved data of a site are valid only for the same
        checksum."""
        return crc32(repr(sorted(self.rests.items())).encode()) if self.rests else 0

    def rounded(self) -> UrgencyTerms:
        """Return the terms with a rounded interval, so that many sites can be computed together."""
        return self._replace(interval=STRANGE ** round(log(self.interval) / log(STRANGE)))

    def fit(self, interval: float) -> bool:
        """Return whether the steps for an interval between visits are still good enough."""
        return 1 / STRANGE < interval / self.interval < STRANGE

    def weight(self, record: PageRecord) -> float:
        if not self.weighed:
            return 1.0
        return record.importance or float(importance_by_depth([path_of(record.url)])[0])

    def candidate_since(self, record: PageRecord) -> float:
        """Return the time after which `shortest` must pass before the page may be due, or inf while fetches fail.

        The time is the last fetch, or later if the page's policy requires more.
        """
        if record.failures or record.last_crawled is None:
            return inf
        return record.last_crawled + self.rests.get(record.policy, 0.0)


@lru_cache(64)
def _beliefs(signals: Signals, interval: float, steps: float) -> Signals:
    return signals.lasting(interval).spread(steps)


class SiteSteps(NamedTuple):
    """The steps in which one site counts time."""

    step_s: float
    phase: float
    """Share of a step by which the site's steps begin earlier."""

    @classmethod
    def of(cls, site: str, terms: UrgencyTerms) -> SiteSteps:
        return cls(terms.step_s, (crc32(site.encode()) & 1023) / 1024)

    def step(self, at: float) -> int:
        """Return the step that contains a time. The step counts as over, because a change found now happened before
        now.
        """
        return floor(at / self.step_s + self.phase) + 1

    def begin_of(self, step: int) -> float:
        return (step - 1 - self.phase) * self.step_s

    def next_at(self, at: float) -> float:
        """Return when the step after `at` begins."""
        return self.begin_of(self.step(at) + 1)


class UrgencyPace:
    """The current terms, and the intervals at which sites are asked and computed."""

    def __init__(self, terms: UrgencyTerms, *, capacity: float) -> None:
        """`capacity` is in fetches per period."""
        self.terms = terms
        self._capacity = capacity
        self.sleep_s = 0.0
        """Longest time until a site is asked again, s."""
        self.rest_s = 0.0
        """Shortest time until a site is computed again, s."""
        self.round_s = self.check_s
        """Sites are asked at multiples of this time, s."""

    def divide(self, pages: int, sites: int, *, coming: int = 0, budget: float | None = None) -> None:
        """Divide the budget among all pages, and compute the intervals anew.

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
        """Apply the shortest interval and each policy's rest, s, of an edited policy file."""
        self.terms = self.terms._replace(shortest=shortest, rests=rests)

    @property
    def ranks(self) -> bool:
        """True if pages are chosen by urgency, False if they follow the intervals of their buckets."""
        return self.terms.interval >= FEWEST_CHOICES * self.check_s

    @property
    def check_s(self) -> float:
        """Time between two checks of the price and of the forecast, s."""
        return self.terms.period / CHECKS_PER_PERIOD

    @property
    def pause_s(self) -> float:
        """Time for which a site with waiting pages does not learn again, s."""
        return max(self.check_s, PAUSE * self.terms.step_s)

    def fetches(self, checks: float) -> float:
        """Return the number of fetches that the budget allows in the time of a number of checks."""
        return checks * self._capacity / CHECKS_PER_PERIOD
