"""How often urgencies are computed: when sites are asked for pages, computed, and learned from.

The intervals follow from the budget and the number of pages and sites, and keep the choice of pages cheap. A site is
asked when one of its pages may be worth the price, and at intervals, because the price may have fallen. If there are
very many sites, each waits between two computations, and sites are asked at the same moments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webfountain.frontier.planning.schedule import CHECKS_PER_PERIOD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.frontier.planning.urgency_terms import UrgencyTerms

__all__ = ["LESSONS", "NEARLY", "PAUSE", "UrgencyPace"]

FEWEST_CHOICES: Final = 2
"""Least number of choices between two visits to a page: with a larger budget there is no choice to make."""
PAUSE: Final = 0.25
"""Time for which changes of a site are not learned while pages of it wait, as a share of a step, or of a check if that
is longer. They come one by one, and learning each would cost as much as all the site's pages."""
WAKES: Final = 0.5
"""Number of times that a site may be asked, per fetch, although no page of it should be worth the price: the price may
have fallen."""
LEAST_WAKES: Final = 6000.0
"""Least number of such times per period."""
LESSONS: Final = 0.25
"""Number of times that sites are computed, per fetch; a site waits between two computations accordingly."""
REST: Final = 2.0
"""Largest number of steps that a site waits."""
AT_LEAST: Final = 50.0
"""Number of site computations per second that are always allowed: they cost a two-hundredth of a core, and few sites
need not wait."""
TOGETHER: Final = 40
"""Number of sites that are asked at the same moment, if this delays none by more than a check; a larger number gains
little."""
NEARLY: Final = 0.9
"""Number of checks after which the batch that comes with the next check is not too soon."""
READY_S: Final = 1.0
"""Longest time, s, from asking a site until its pages are fetched: if a check is shorter, no site waits."""


class UrgencyPace:
    """The present terms, and the intervals of the work under them."""

    def __init__(self, terms: UrgencyTerms, *, capacity: float) -> None:
        """`capacity` is fetches per period."""
        self.terms = terms
        self._capacity = capacity
        self.sleep_s = 0.0
        """Longest time until a site is asked again, s."""
        self.rest_s = 0.0
        """Shortest time until a site is computed again, s."""
        self.round_s = self.check_s
        """Sites are asked at multiples of this time, s."""

    def divide(self, pages: int, sites: int, *, coming: int = 0, budget: float | None = None) -> None:
        """Divide the budget among the crawled pages of the sites, and

        among the pages still to be fetched for the first time, `coming`, up to a period's fetches. Otherwise a site's
        steps would change again and again while a young collection fills. `budget` is the fetches per period of the
        plan, which is less than the capacity if a goal takes less; None: there is no plan yet.
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
        """Use the shortest interval and the rests by policy of an edited policy file from now on, in seconds."""
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
        """Time for which a site whose pages wait is not learned from again, s."""
        return max(self.check_s, PAUSE * self.terms.step_s)

    def fetches(self, checks: float) -> float:
        """Return the number of fetches that the budget allows in a number of checks."""
        return checks * self._capacity / CHECKS_PER_PERIOD
