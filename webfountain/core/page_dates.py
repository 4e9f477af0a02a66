"""Use the dates in sitemaps and feeds as signals of change, weighted by their past reliability.

A page is *listed* if a sitemap or feed gives a date for it, and *dated* if this date is later than our copy.

The past fetches of a page give a probability that the page has changed. A date later than our copy multiplies the odds
of a change by one ratio, an earlier date by another. For each site, one ratio is learned from fetches of dated pages,
another from fetches of listed pages that are not dated. Learning moves each ratio towards the value under which the
results of the fetches are most likely. The ratio is 1 if dates announce only changes that were expected anyway. As a
precaution, each ratio is moved towards 1 by one standard deviation. If pages without a later date also change more
often than expected, the odds ratio for later dates is lowered.

A dated page is as urgent as a page without dates that has the same probability of change. For a known rate, the urgency
is (c + (1 - c) ln(1 - c)) w, where c is the probability of change, and w the time for which the page stays unchanged
after a change. If a listed page has no date later than our copy, its urgency falls by the same factor as its
probability of change.

Source: Busa-Fekete, Zimmert, György, Qiu, *GREEDY-NCIS* (2025): urgency from the probability of change, under signals
with a precision and a recall.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.core.arrays import Array, Flags, Ints


__all__ = ["PageDates", "distinguishing"]

FIRST: Final = (3.0, 0.25, -1.0, 0.25)
"""Initial log odds ratio and its weight (inverse variance), for pages with a later date and then for pages without."""
MOST: Final = 25.0
"""Largest weight of all earlier fetches together; it is limited because a site may change its software."""
FUTILE: Final = 8.0
"""If the odds ratio for later dates of a site is almost certainly below this, a later date alone makes no page due."""
SMALL: Final = 3.0
"""If fewer pages of a site than this have dates, the dates count even if all are later than our copies."""
_UNLISTED, _LISTED, _DATED = range(3)
_SURE: Final = 0.01
"""When a ratio is learned, smaller probabilities of change are raised to this limit, so that no single change outweighs
all other fetches.
"""
_TINY: Final = 1e-9

_NO_STATE: Final = np.zeros(0, dtype=np.uint8)
_NO_CHANCE: Final = np.zeros(0, dtype=np.float32)


class _OddsRatio(NamedTuple):
    """An estimate of the factor by which a date, or the lack of a later date, changes the odds that a page has
    changed."""

    log: float
    weight: float
    """Inverse of the variance of `log`."""

    def learned(self, chance: float, *, changed: bool) -> _OddsRatio:
        """Return the estimate after a fetch: one step of Newton's method towards the most probable ratio."""
        expected = float(_times_odds(min(max(chance, _SURE), 1.0 - _SURE), exp(self.log)))
        weight = min(self.weight, MOST) + expected * (1.0 - expected)
        return _OddsRatio(self.log + (changed - expected) / weight, weight)

    def least(self) -> float:
        """Return the logarithm of the ratio minus one standard deviation."""
        return self.log - 1.0 / sqrt(self.weight)

    def most(self) -> float:
        """Return the logarithm of the ratio plus one standard deviation."""
        return self.log + 1.0 / sqrt(self.weight)


class PageDates:
    """The dates of one site's pages, and how reliable these dates have proved."""

    __slots__ = ("_chance", "_dated", "_listed", "_state")

    def __init__(self, state: bytes = b"", counts: Sequence[float] = ()) -> None:
        self._state = np.frombuffer(bytearray(state), dtype=np.uint8) if state else _NO_STATE
        counts = counts if len(counts) == len(FIRST) else FIRST  # an earlier version kept five other counts
        self._dated, self._listed = _OddsRatio(*counts[:2]), _OddsRatio(*counts[2:])
        self._chance = np.zeros(len(self._state), dtype=np.float32) if state else _NO_CHANCE
        """(pages,) probability that each page has changed, judged only by its past fetches."""

    def __bool__(self) -> bool:
        """Return whether any page ever had a date."""
        return len(self._state) > 0

    def saved(self) -> tuple[bytes, tuple[float, ...]]:
        """Return the arguments from which an equal object can be created."""
        return self._state.tobytes(), (*self._dated, *self._listed)

    def some(self, pages: Flags) -> PageDates:
        """Return a copy with only the chosen pages; these pages are renumbered from 0 in their order."""
        if self:
            self._grow(len(pages))
        return PageDates(self._state[pages[: len(self._state)]].tobytes(), self.saved()[1])

    @property
    def raises(self) -> float:
        """Return the factor by which a later date raises the odds that a page has changed: at least 1."""
        return exp(max(self._dated.least() - max(self._listed.least(), 0.0), 0.0))

    @property
    def is_futile(self) -> bool:
        """Return whether later dates have proved nearly useless: their odds ratio is very likely below `FUTILE`."""
        return self._dated.most() < log(FUTILE)

    @property
    def lowers(self) -> float:
        """Return the factor by which the lack of a later date lowers the odds that a listed page has changed: at most
        1."""
        return exp(min(self._listed.most() - min(self._dated.most(), 0.0), 0.0))

    def receive(self, pages: Ints, is_later: Flags) -> None:
        """Record which pages a sitemap or feed lists, and whether each date is later than our copy."""
        self._grow(int(pages.max(initial=-1)) + 1)
        self._state[pages] = np.where(is_later, _DATED, _LISTED)

    def visit(self, page: int, *, changed: bool) -> None:
        """Learn from the fetch of a page whose new content was compared with our copy."""
        state = int(self._state[page]) if page < len(self._state) else _UNLISTED
        if state == _DATED:
            self._dated = self._dated.learned(float(self._chance[page]), changed=changed)
            self._state[page] = _LISTED
        elif state == _LISTED:
            self._listed = self._listed.learned(float(self._chance[page]), changed=changed)

    def weigh(self, worth: Array, still: Array, chance: Array) -> Array:
        """Adjust the urgencies of pages to their dates, in place. Return (pages,) upper bounds of the factors by which
        the lack of a later date reduces urgencies. Each bound holds until the time since the page's last fetch has
        doubled. The factor is 1 for pages that are dated or not listed.

        Parameters
        ----------
        worth : (pages,) urgency of each page according to fetches alone; changed in place
        still : (pages,) time since the last fetch, times the probability that the page is unchanged
        chance : (pages,) probability that the page has changed, according to fetches alone
        """
        self._grow(len(worth))
        self._chance[: len(chance)] = chance
        state = self._state[: len(worth)]
        before = np.clip(chance, _TINY, 1.0 - _TINY)
        worth *= np.where(state == _LISTED, _times_odds(before, self.lowers) / before, 1.0)
        later = 1.0 - (1.0 - before) ** 2
        factor = np.where(state == _LISTED, _times_odds(later, self.lowers) / later, 1.0)
        dated = state == _DATED
        before = before[dated]
        lasts = (worth[dated] + still[dated]) / before  # the time after a change, if the page has changed
        worth[dated] += (_worth(_times_odds(before, self.raises)) - _worth(before)) * lasts
        return factor

    def _grow(self, pages: int) -> None:
        if pages > len(self._state):
            self._state = np.pad(self._state, (0, pages - len(self._state)))
            self._chance = np.pad(self._chance, (0, pages - len(self._chance)))


def distinguishing(later: Mapping[bytes, bool]) -> list[bytes]:
    """Return the pages whose date is later than our copy; none if more than half of all dates are later."""
    found = [key for key, is_later in later.items() if is_later]
    return found if len(found) < (len(later) + SMALL) / 2 else []


def _times_odds(chance: Array | float, ratio: float) -> Array:
    """Return the probability whose odds are `ratio` times the odds of `chance`."""
    return np.asarray(chance * ratio / (1.0 - chance + chance * ratio))


def _worth(chance: Array) -> Array:
    """Return the urgency of a page that changed with a given probability, relative to that of a page that surely
    changed.
    """
    return chance + (1.0 - chance) * np.log1p(-chance)
