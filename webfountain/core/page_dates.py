"""Use the dates in sitemaps and feeds as signals of change, weighted by their past reliability.

A page is *listed* if a sitemap or feed gives a date for it, and *dated* if this date is later than our copy.

The *precision* is the probability that a dated page has changed although its past suggests no change. A date raises the
gain of a fetch by the precision times the time for which pages stay unchanged. The more pages have a date, the less
each date counts. Dates do not count if half of the pages have one.

The *recall* is the share of listed pages' changes that a date announces. If a listed page is not dated, its change rate
is multiplied by 1 - recall. The recall is learned only from pages that are not dated, because dated pages are fetched
more often.

Precision and recall begin with a prior, so meaningless dates waste only a few fetches.

Source: Busa-Fekete, Zimmert, György, Qiu, *GREEDY-NCIS* (2025): the value of a crawl under signals with a precision and
a recall.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.core.arrays import Array, Flags, Ints


__all__ = ["PageDates", "distinguishing"]

PRECISION: Final = 0.8
PRECISION_WEIGHT: Final = 1.0
"""Prior precision, and its weight in fetches of dated pages."""
RECALL_WEIGHT: Final = 5.0
"""Weight, in expected changes, of the prior that the recall is 0."""
SMALL: Final = 3.0
"""If a site lists fewer pages than this, dates count even if all its pages have one."""
MOST: Final = 200.0
"""Number of observations above which older ones fade."""
_UNLISTED, _LISTED, _DATED = range(3)


class PageDates:
    """The dates of one site's pages, and the counts for precision and recall."""

    __slots__ = ("_chance", "_confirmed", "_expected", "_followed", "_missed", "_share", "_state")

    def __init__(self, state: bytes = b"", counts: Sequence[float] = ()) -> None:
        self._state = np.frombuffer(bytearray(state), dtype=np.uint8)
        self._followed, self._confirmed, self._expected, self._missed, self._share = (*counts, *[0.0] * 5)[:5]
        """Counts:

        - fetches of dated pages
        - changes found by these fetches, both without expected changes
        - expected changes of listed pages that were not dated
        - changes found on these pages
        - share of dated pages among the listed pages believed unchanged
        """
        self._chance = np.zeros(len(self._state), dtype=np.float32)
        """(pages,) probability that each page has changed, by its fetches alone."""

    def __bool__(self) -> bool:
        """Return whether any page ever had a date."""
        return len(self._state) > 0

    def saved(self) -> tuple[bytes, tuple[float, ...]]:
        return self._state.tobytes(), (self._followed, self._confirmed, self._expected, self._missed, self._share)

    def some(self, pages: Flags) -> PageDates:
        """Return the dates of the chosen pages, renumbered in the same order."""
        if self:
            self._grow(len(pages))
        return PageDates(self._state[pages[: len(self._state)]].tobytes(), self.saved()[1])

    @property
    def precision(self) -> float:
        """Return the probability that a dated page has changed although its past suggests no change.

        One standard deviation is subtracted. Otherwise each date would cause a fetch of a page that hardly ever
        changes.
        """
        found = max(self._confirmed + PRECISION * PRECISION_WEIGHT, 0.0)  # fewer pages than expected may have changed
        followed = max(self._followed + PRECISION_WEIGHT, found)
        mean = found / followed
        return max(mean - sqrt(mean * (1.0 - mean) / (followed + 1.0)), 0.0)

    @property
    def recall(self) -> float:
        """Return the probability that a change of a listed page is dated."""
        return max(1.0 - (self._missed + RECALL_WEIGHT) / (self._expected + RECALL_WEIGHT), 0.0)

    @property
    def weight(self) -> float:
        """Return how far a date moves a page's urgency towards the urgency of a changed page: 0 not at all, 1
        completely."""
        return self.precision * max(1.0 - 2.0 * self._share, 0.0)

    def receive(self, pages: Ints, is_later: Flags) -> None:
        """Receive the pages listed in a sitemap or feed, and whether each date is later than our copy."""
        self._grow(int(pages.max(initial=-1)) + 1)
        self._state[pages] = np.where(is_later, _DATED, _LISTED)
        unchanged = 1.0 - self._chance
        dated, listed = unchanged[self._state == _DATED].sum(), unchanged[self._state != _UNLISTED].sum()
        self._share = float(dated / (listed + SMALL))

    def visit(self, page: int, *, changed: bool) -> None:
        """Learn from a fetch that was compared with our copy."""
        state = int(self._state[page]) if page < len(self._state) else _UNLISTED
        if state == _DATED:
            unexpected = 1.0 - float(self._chance[page])
            self._followed, self._confirmed = _faded(
                self._followed + unexpected, self._confirmed + changed - 1.0 + unexpected
            )
            self._state[page] = _LISTED
        elif state == _LISTED:
            self._expected, self._missed = _faded(self._expected + float(self._chance[page]), self._missed + changed)

    def weigh(self, worth: Array, worth_of_change: Array, chance: Array) -> Array:
        """Adjust the urgencies of pages to their dates, in place. Return the (pages,) factors of the urgencies until
        the next fetch or date.

        Parameters
        ----------
        worth : (pages,) urgency of each page according to fetches alone; changed in place
        worth_of_change : (pages,) urgency if the page has surely changed
        chance : (pages,) probability that the page has changed, according to fetches alone
        """
        self._grow(len(worth))
        self._chance[: len(chance)] = chance
        state = self._state[: len(worth)]
        factor = np.where(state == _LISTED, 1.0 - self.recall, 1.0)
        worth *= factor
        dated = state == _DATED
        worth[dated] += self.weight * np.maximum(worth_of_change[dated] - worth[dated], 0.0)
        return factor

    def _grow(self, pages: int) -> None:
        if pages > len(self._state):
            self._state = np.pad(self._state, (0, pages - len(self._state)))
            self._chance = np.pad(self._chance, (0, pages - len(self._chance)))


def distinguishing(later: Mapping[bytes, bool]) -> list[bytes]:
    """Return the pages with a later date. Return none if half of the dates are later, because they distinguish no
    page."""
    found = [key for key, is_later in later.items() if is_later]
    return found if len(found) < (len(later) + SMALL) / 2 else []


def _faded(first: float, second: float) -> tuple[float, float]:
    factor = min(1.0, MOST / max(first + second, 1.0))
    return factor * first, factor * second
