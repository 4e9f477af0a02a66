"""Use the dates of last changes that sitemaps and feeds give as noisy signals, with what they proved to be worth.

A page is *dated* if a sitemap or feed gives a later time than that of our copy, and *listed* if it gives a time at all.
Fetches show the two qualities of a site's dates: their precision, the share of dated pages that a fetch finds changed,
and their recall, the share of the changes of listed pages that were dated. A dated page has changed with the
probability of the precision, so a fetch saves this part of its expected time without a change. A listed page without a
later date changes unseen only at the part 1 - recall of its rate, so its urgency is smaller by about this factor. Both
begin with an assumption, so a site whose dates mean nothing loses its budget to them for a few fetches only.

Source: Busa-Fekete, Zimmert, György, Qiu, *GREEDY-NCIS* (2025): the value of a crawl under signals with a precision and
a recall. The estimates, and the product for listed pages in place of the thinned process, are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]
    Ints = npt.NDArray[np.int64]

__all__ = ["PageDates"]

PRECISION: Final = 0.8
PRECISION_WEIGHT: Final = 5.0
"""Assumed precision, and its weight in fetches of dated pages."""
RECALL_WEIGHT: Final = 5.0
"""Weight, in found changes, of the assumption that dates show no change."""
MOST: Final = 200.0
"""Number of observations above which the older ones fade, because a site may change its software."""
_UNLISTED, _LISTED, _DATED = range(3)


class PageDates:
    """The dates of one site's pages by number, and the counts from which precision and recall follow."""

    __slots__ = ("_caught", "_confirmed", "_followed", "_missed", "_state")

    def __init__(self, state: bytes = b"", counts: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)) -> None:
        self._state = np.frombuffer(bytearray(state), dtype=np.uint8)
        self._followed, self._confirmed, self._caught, self._missed = counts

    def __bool__(self) -> bool:
        """Return whether any page ever had a date."""
        return len(self._state) > 0

    def saved(self) -> tuple[bytes, tuple[float, float, float, float]]:
        """Return the arguments with which a later object continues."""
        return self._state.tobytes(), (self._followed, self._confirmed, self._caught, self._missed)

    def some(self, pages: Flags) -> PageDates:
        """Return the dates of some of the pages, numbered in their order."""
        if self:
            self._grow(len(pages))
        return PageDates(self._state[pages[: len(self._state)]].tobytes(), self.saved()[1])

    @property
    def precision(self) -> float:
        """Return the probability that a dated page has changed."""
        return (self._confirmed + PRECISION * PRECISION_WEIGHT) / (self._followed + PRECISION_WEIGHT)

    @property
    def recall(self) -> float:
        """Return the probability that a change of a listed page is dated."""
        return self._caught / (self._caught + self._missed + RECALL_WEIGHT)

    def receive(self, pages: Ints, is_later: Flags) -> None:
        """Receive the pages that a sitemap or feed dates, and whether each time is later than that of our copy."""
        self._grow(int(pages.max(initial=-1)) + 1)
        self._state[pages] = np.where(is_later, _DATED, _LISTED)

    def visit(self, page: int, *, changed: bool) -> None:
        """Learn from a fetch that was compared with our copy. A page without another date is listed after it."""
        state = int(self._state[page]) if page < len(self._state) else _UNLISTED
        if state == _DATED:
            self._followed, self._confirmed = _faded(self._followed + 1.0, self._confirmed + changed)
            self._state[page] = _LISTED
        if changed and state != _UNLISTED:
            caught = state == _DATED
            self._caught, self._missed = _faded(self._caught + caught, self._missed + (not caught))

    def weigh(self, worth: Array, worth_of_change: Array) -> None:
        """Change the worth of fetches, in place.

        Parameters
        ----------
        worth : (pages,) by what fetches found
        worth_of_change : (pages,) if the page surely changed
        """
        self._grow(len(worth))
        state = self._state[: len(worth)]
        worth[state == _LISTED] *= 1.0 - self.recall
        dated = state == _DATED
        worth[dated] = np.maximum(worth[dated], self.precision * worth_of_change[dated])

    def _grow(self, pages: int) -> None:
        if pages > len(self._state):
            self._state = np.pad(self._state, (0, pages - len(self._state)))


def _faded(first: float, second: float) -> tuple[float, float]:
    factor = min(1.0, MOST / max(first + second, 1.0))
    return factor * first, factor * second
