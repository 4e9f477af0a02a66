"""The ranking of one site: how urgent each page is, which pages are due, and when the next page becomes urgent.

A ranking contains the result of the last computation (`reckoning`), and records which pages were made due or fetched
after it. Urgencies and prices are in seconds, and times in UTC seconds.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.page_dates import PageDates

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.frontier.planning.urgency_terms import SiteSteps

    Array = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

__all__ = ["EARLY", "RUNGS", "SiteRanking"]

EARLY: Final = 0.8
"""Because the price may fall while a site is parked, the site becomes active when a page's urgency reaches this share
of the price.
"""
RUNGS: Final = (1.0, EARLY, 0.5, 0.3, 0.15, 0.05)
"""For each of these shares of the price, a ranking contains the time when a page may first reach the share."""

_NO_WORTH: Final = np.zeros(0)


class SiteRanking:
    """The urgencies of one site's pages, by number."""

    __slots__ = (
        "_has_grown",
        "_worth_step",
        "asked",
        "best",
        "candidate_since",
        "dates",
        "most",
        "reaches",
        "rests_until",
        "steps",
        "waits",
        "worth",
    )

    def __init__(
        self,
        steps: SiteSteps,
        candidate_since: Array,
        *,
        most: float = inf,
        asked: float = 0.0,
        reaches: Sequence[float] = (),
        rests_until: float = -inf,
        dates: PageDates | None = None,
    ) -> None:
        """Make a ranking without computed urgencies. The keyword arguments restore values that were saved with the
        site.
        """
        self.steps = steps
        self.candidate_since = candidate_since
        """For each page, the result of `UrgencyTerms.candidate_since`, or inf if the page must not be fetched."""
        self.dates = PageDates() if dates is None else dates
        """The dates of pages in sitemaps and feeds, and how reliable they are."""
        self.waits: dict[int, float] = {}
        """For each page that is due but not yet fetched, the time when it was made due, oldest first."""
        self.worth = _NO_WORTH
        """The urgency of each page, in seconds."""
        self.best, self.most = most, most
        """`best` is an upper bound of all urgencies. `most` is the highest urgency among the pages that are not due."""
        self.asked = asked
        """Price of a fetch when the ranking was last computed."""
        self.reaches = reaches
        """For each share in `RUNGS`, the earliest time at which a page that is not due can reach that share of `asked`.
        """
        self.rests_until = rests_until
        """Earliest time of the next regular computation of the ranking."""
        self._worth_step = -1
        self._has_grown = False  # whether pages were added since; for now, fetching them again would save nothing

    def __len__(self) -> int:
        return len(self.candidate_since)

    def some(self, pages: Flags) -> SiteRanking:
        """Return a ranking with only the chosen pages, in their old order and without computed urgencies."""
        return SiteRanking(self.steps, self.candidate_since[pages], dates=self.dates.some(pages))

    def replace(self, worth: Array, at: float, price: float, reaches: Sequence[float], *, rests_until: float) -> None:
        """Replace the ranking by the results of a new computation: the urgencies, and the times for the shares in
        `RUNGS`.
        """
        self.rests_until, self._has_grown = rests_until, False
        self.worth, self._worth_step, self.best = worth, self.steps.step(at), float(worth.max(initial=0.0))
        self.asked, self.reaches = price, reaches
        self._find_most()

    def outdate(self, *, forget_reaches: bool = False) -> None:
        """Mark the ranking as outdated. `forget_reaches` must be True if any page may have become more urgent."""
        self._worth_step = -1
        if forget_reaches:
            self.reaches = ()

    @property
    def is_known(self) -> bool:
        """True if the urgencies of all pages have been computed."""
        return len(self.worth) == len(self.candidate_since)

    @property
    def has_grown(self) -> bool:
        """True if pages were added after the last computation."""
        return self._has_grown

    def is_of_step(self, at: float) -> bool:
        """Return whether the ranking was computed in the time step that contains `at`."""
        return self._worth_step == self.steps.step(at)

    def add(self, candidate_since: Sequence[float]) -> None:
        """Add pages after their first fetch, with an urgency of 0."""
        if self.is_known:
            self.worth, self._has_grown = np.concatenate([self.worth, np.zeros(len(candidate_since))]), True
        else:
            self.reaches = ()
        self.candidate_since = np.concatenate([self.candidate_since, np.array(candidate_since, dtype=np.float64)])

    def end_wait(self, page: int, candidate_since: float) -> None:
        """Record that a page was fetched, and set its urgency to 0. If the page must not be fetched again,
        `candidate_since` is inf.
        """
        self.waits.pop(page, None)
        if not self.candidate_since.flags.writeable:  # then it is a view of the stored bytes
            self.candidate_since = self.candidate_since.copy()
        self.candidate_since[page] = candidate_since
        if page < len(self.worth):
            self.worth[page] = 0.0

    def make_due(self, pages: Ints, at: float) -> list[int]:
        """Record that pages were made due, and return their numbers."""
        numbers: list[int] = pages.tolist()
        self.waits.update(dict.fromkeys(numbers, at))
        self._find_most()
        return numbers

    def wait_on(self, page: int, since: float) -> None:
        """Record that a page has been due since the time `since`."""
        self.waits[page] = since

    def forget_waits(self) -> None:
        """Forget which pages are due."""
        if self.waits:
            self.waits.clear()
            self._find_most()

    def _find_most(self) -> None:
        if self.is_known:
            self.most = self.best
            if self.waits:
                self.most = float(self.worth_of_free().max(initial=0.0))

    def urgent(self, price: float, fetched_by: float) -> tuple[Ints, Array]:
        """Return the pages that should be made due, with their urgencies. A page should be made due if it is not due,
        its urgency reaches the price, and its last fetch was before `fetched_by`.
        """
        pages = self._worthy(price)
        pages = pages[self.candidate_since[pages] <= fetched_by]
        return pages, self.worth[pages]

    def due_since(self, price: float) -> float:
        """Return the smallest `candidate_since` of the pages that should be made due, or inf if there is none."""
        return inf if price > self.most else float(self.candidate_since[self._worthy(price)].min(initial=inf))

    def _worthy(self, price: float) -> Ints:
        worthy = self.worth >= price
        if len(worthy) and self.waits:
            worthy[np.fromiter(self.waits, dtype=np.int64)] = False
        return np.asarray(worthy.nonzero()[0])

    def demand(self, price: float, fetched_by: float) -> int:
        """Return how many pages are due or urgent enough to be made due. Pages that were fetched after `fetched_by` do
        not count.
        """
        if price > self.most:
            return len(self.waits)
        worth = self.worth >= price
        worth[np.fromiter(self.waits, dtype=np.int64)] = True
        worth &= self.candidate_since <= fetched_by
        return int(np.count_nonzero(worth))

    def worth_of_waiting(self) -> Array:
        """Return the urgencies of the pages that are due but not yet fetched."""
        return self.worth[np.fromiter(self.waits, dtype=np.int64)]

    def worth_of_free(self) -> Array:
        """Return the urgencies above 0 of the pages that are not due."""
        free = self.worth > 0.0
        free[np.fromiter(self.waits, dtype=np.int64)] = False
        return self.worth[free]

    def may_be_worth(self, price: float, at: float) -> bool:
        """Return whether a page may be urgent enough to be made due; False if the site has due pages."""
        if self.waits or not self.is_known:
            return False
        if price <= self.most:
            return True
        reach = self.reaches_at(price, at)
        return reach is not None and reach <= at and self.rests_until <= at

    def reaches_at(self, price: float, at: float) -> float | None:
        """Return when the urgency of a page can first reach the price: inf if never, None if unknown.

        While all urgencies are below `EARLY` times the price, return when one of them can reach `EARLY` times the
        price.
        """
        if not self.reaches or (self.asked < price and self.asked <= self.most):
            return None  # the computation left out pages that were worth the price at that time
        for rung, reach in zip(RUNGS, self.reaches, strict=True):
            if rung * self.asked <= EARLY * price and reach > at:
                return reach
        return next((each for rung, each in zip(RUNGS, self.reaches, strict=True) if rung * self.asked <= price), None)

    def reckon_at(self, price: float, at: float) -> float:
        """Return when the ranking must be computed again, because the urgency of a page may reach the price then."""
        rests = at < self.rests_until
        due = self.reaches_at(price, -inf if rests else at)  # a rest does not end early
        if due is not None:
            return due
        return self.steps.begin_of(self._worth_step + 1) if rests else self.steps.next_at(at)
