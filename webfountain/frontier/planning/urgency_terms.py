"""Terms of the urgency computation, and the steps in which a site counts time.

The terms are the same for all sites of a collection. A *step* is one 36th of the mean time between two visits to a
page, but at most a period and at least a fiftieth of a period. Within a step nothing becomes more urgent. The steps of
different sites begin at different moments; otherwise all sites would need a computation at once. Times are UTC seconds.
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

__all__ = ["STEPS", "SiteSteps", "UrgencyTerms"]

STRANGE: Final = 1.5
"""A site gets new steps when the interval between visits has changed by more than this factor."""
STEPS: Final = 36
"""Number of steps between two visits to a page, unless a limit of the step's length applies."""


class UrgencyTerms(NamedTuple):
    """Terms for all sites of a collection at a time."""

    signals: Signals
    """The signals, in periods."""
    period: float
    """Length of a period, s."""
    interval: float
    """Mean time between two visits to a page that the budget allows, s."""
    shortest: float
    """Shortest time between two fetches of a page, s."""
    weighed: bool
    """True if a page's importance counts. For a page without importance, its depth counts."""
    rests: Mapping[str, float] = {}
    """For each policy, the shortest time between two fetches of its pages, minus `shortest`, s."""

    @property
    def step_s(self) -> float:
        """Return the length of a step, s."""
        return self.period / self._steps

    @property
    def turnaround_s(self) -> float:
        """Return the time in which each window of a very large site has one turn, s: a step, or less if steps are
        long.
        """
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
        """Return a checksum of `rests`; 0 if there are none. It is saved with a site's results, to show for which
        `rests` they are valid."""
        return crc32(repr(sorted(self.rests.items())).encode()) if self.rests else 0

    def rounded(self) -> UrgencyTerms:
        """Return the terms with a rounded interval, which many sites share, so that they can be computed together."""
        return self._replace(interval=STRANGE ** round(log(self.interval) / log(STRANGE)))

    def fit(self, interval: float) -> bool:
        """Return whether steps that were made for this interval between visits are still good enough."""
        return 1 / STRANGE < interval / self.interval < STRANGE

    def weight(self, record: PageRecord) -> float:
        """Return the factor of a page's urgency."""
        if not self.weighed:
            return 1.0
        return record.importance or float(importance_by_depth([path_of(record.url)])[0])

    def candidate_since(self, record: PageRecord) -> float:
        """Return the time after which `shortest` must pass before the page may be due; inf while its fetches fail.

        This is the time of the last fetch, or later if the page's policy requires a longer time between fetches.
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
    """Share of a step by which the steps of this site begin earlier."""

    @classmethod
    def of(cls, site: str, terms: UrgencyTerms) -> SiteSteps:
        """Return the steps of a site by its name."""
        return cls(terms.step_s, (crc32(site.encode()) & 1023) / 1024)

    def step(self, at: float) -> int:
        """Return the step that contains a time. This step counts as over: a change found now happened before now."""
        return floor(at / self.step_s + self.phase) + 1

    def begin_of(self, step: int) -> float:
        """Return when a step begins."""
        return (step - 1 - self.phase) * self.step_s

    def next_at(self, at: float) -> float:
        """Return the start of the step that follows the one containing the time `at`."""
        return self.begin_of(self.step(at) + 1)
