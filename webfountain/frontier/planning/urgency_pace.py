"""How often each site is asked for pages, learns from its visits, and has its urgencies computed.

The intervals follow from the budget and the number of pages and sites, and keep the choice of pages cheap. A site is
asked when one of its pages may be worth the price. It is also asked at intervals, because the price may have fallen. If
there are very many sites, each waits between two computations, and many sites are asked at the same moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.frontier.planning.schedule import CHECKS_PER_PERIOD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.frontier.planning.urgency_terms import UrgencyTerms

__all__ = ["LESSONS", "NEARLY", "PAUSE", "UrgencyPace"]

FEWEST_CHOICES: Final = 2
"""Smallest number of checks between two visits to a page for which pages are chosen by urgency. With a larger budget
there is no choice to make."""
PAUSE: Final = 0.25
"""Pause, as a share of a step, between two times that a site with waiting pages learns from changes; at least the time
between two checks. Changes come one by one, and learning each would cost a computation of all the site's pages."""
WAKES: Final = 0.5
"""How many sites may be asked per fetch although none of their pages is expected to be worth the price. They are asked
because the price may have fallen."""
LEAST_WAKES: Final = 6000.0
"""At least this number of such sites may be asked per period."""
LESSONS: Final = 0.25
"""How many site computations are made per fetch. It determines how long a site waits between two computations."""
REST: Final = 2.0
"""Largest number of steps that a site waits between two computations."""
AT_LEAST: Final = 50.0
"""Number of site computations per second that are always allowed. They cost a two-hundredth of a core; if there are few
sites, none has to wait."""
TOGETHER: Final = 40
"""Number of sites that are asked at the same moment, if this delays no site by more than the time between two checks.
Larger numbers save little time."""
NEARLY: Final = 0.9
"""Work that is done once per check may be done again after this share of the time between two checks, because batches
do not come exactly on time."""
READY_S: Final = 1.0
"""Longest time from asking a site until its pages are fetched, s. If checks are more frequent, no site waits between
computations."""


class UrgencyPace:
    """The current terms, and the intervals at which sites are asked and computed under them."""

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
        coming : number of pages still to be fetched for the first time; they count up to one period's fetches.
            Otherwise the steps of sites would change again and again while a young collection fills
        budget : fetches per period in the plan, fewer than the capacity if a goal takes less; None: no plan yet
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
        """Use the shortest interval and each policy's rest, s, of an edited policy file from now on."""
        self.terms = self.terms._replace(shortest=shortest, rests=rests)

    @property
    def ranks(self) -> bool:
        """Return whether there is a choice to make; if not, pages follow the intervals of their buckets."""
        return self.terms.interval >= FEWEST_CHOICES * self.check_s

    @property
    def check_s(self) -> float:
        """Time between two checks of the price and of the forecast, s."""
        return self.terms.period / CHECKS_PER_PERIOD

    @property
    def pause_s(self) -> float:
        """Time, s, for which a site with waiting pages does not learn again."""
        return max(self.check_s, PAUSE * self.terms.step_s)

    def fetches(self, checks: float) -> float:
        """Return the number of fetches that the budget allows in a number of checks."""
        return checks * self._capacity / CHECKS_PER_PERIOD
