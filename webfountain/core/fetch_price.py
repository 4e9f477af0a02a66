"""The price of a fetch: a page is fetched when a fetch saves at least this much obsolete time. It is the Lagrange
multiplier of the budget.

A page is due when its urgency reaches the price. So each site decides from its own pages, and no sort over all sites
is needed. If all sites use one price, they divide the budget as one ranking of all pages would (the urgency of a page
is the price at which its present age would be the right time to fetch it again, `urgency`). A control loop finds the
price at which the budget is spent. The price falls while planned fetches are not made because no page is due. It rises
while more pages are due than can be fetched soon.

Source: the Lagrange multiplier of "fetches <= budget": Azar et al., *Tractable near-optimal policies for crawling*,
PNAS 2018; Cho & Garcia-Molina, TODS 2003, section 4. The control is ours.
"""

from __future__ import annotations

from math import inf
from typing import Final

__all__ = ["LEAST_AHEAD", "MOST_AHEAD", "TOLERANCE", "Price"]

LEAST_AHEAD: Final = 0.5
MOST_AHEAD: Final = 3.0
"""Largest queue of due pages at a correct price, in multiples of the fetches planned from one check to the next."""
TOLERANCE: Final = 0.03
"""Share of the planned fetches that may be missed, in addition to one fetch, before the price falls."""
_FALL: Final = 0.8
_STEEPEST_FALL: Final = 0.3
_EASE: Final = 0.97
_STEEPNESS: Final = 0.5
_STEEPEST_RISE: Final = 2.0
_LEAST: Final = 1e-6


class Price:
    """The present price, `value`, s. It is adjusted several times per period to the fetches that were made."""

    __slots__ = ("_fall", "value")

    def __init__(self, value: float) -> None:
        self.value = value
        self._fall = 1.0

    def adjust(
        self, *, planned: float, waiting: float, owed: float, short: bool, top: float = inf, level: float = 0.0
    ) -> None:
        """Adjust the price so that the planned number of fetches is made. While the price falls, each step is larger
        than the last, because urgencies differ by powers of ten.

        Parameters
        ----------
        planned : fetches that the plan provides from one check to the next
        waiting : pages that are due and wait to be fetched
        owed : planned fetches that were not made, including those of earlier checks; below 0 if more were made
        short : True if fetches were not made because no page was due
        top : known upper bound, s, of the urgency of the pages that are not due; the price does not rise above it
        level : urgency, s, of the page at which the missing fetches are reached; 0 if there are too few pages. In one
            step the price does not fall below it. If fetches were missed, the price may fall to it however many pages
            wait, because the waiting pages cannot be fetched soon
        """
        room = MOST_AHEAD * planned + owed
        crowd = waiting / max(room, 2.0)
        self._fall = max(self._fall * _FALL, _STEEPEST_FALL) if short else 1.0
        if crowd > 1.0 and not (short and level > 0.0):
            self.value = max(min(self.value * min(float(crowd**_STEEPNESS), _STEEPEST_RISE), top), self.value)
        elif short:
            self.value = max(self.value * self._fall, min(level, self.value), _LEAST)
        elif waiting < room and level > 0.0:
            self.value = max(self.value * _FALL, min(level, self.value))
        elif waiting < LEAST_AHEAD * planned and owed > -1.0:
            self.value = max(self.value * _EASE, _LEAST)
