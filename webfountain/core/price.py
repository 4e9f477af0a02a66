"""The price of a fetch: the obsolete time that one must save, in expectation, to be made; the multiplier of the budget.

A page is due when its urgency reaches the price, so that each site decides with its own pages at hand and nothing is
sorted over all of them; pages that all sites fetch at one price divide the budget as one ranking would (the urgency is
the price at which a page would be refreshed at its present age, `urgency`). What price spends the budget is found by
trying: it falls while fetches are left unmade and nothing is due, and rises while more is due than can be fetched soon.

Source: the Lagrange multiplier of "fetches <= budget": Azar et al., *Tractable near-optimal policies for crawling*,
PNAS 2018; Cho & Garcia-Molina, TODS 2003, section 4. The control is ours.
"""

from __future__ import annotations

from typing import Final

__all__ = ["TOLERANCE", "Price"]

LEAST_AHEAD: Final = 0.5
MOST_AHEAD: Final = 3.0
"""Checks' worth of fetches that wait while the price is right."""
TOLERANCE: Final = 0.03
"""Share of the planned fetches that may be left unmade, besides one."""
_FALL: Final = 0.8
_STEEPEST_FALL: Final = 0.3
_EASE: Final = 0.97
_STEEPNESS: Final = 0.5
_STEEPEST_RISE: Final = 2.0
_LEAST: Final = 1e-6


class Price:
    """The price in force, `value`, s; held to how the budget was spent often in a period."""

    __slots__ = ("_fall", "value")

    def __init__(self, value: float) -> None:
        self.value = value
        self._fall = 1.0

    def adjust(self, *, planned: float, waiting: float, short: bool) -> None:
        """Follow the budget; a price that falls does so faster each time, for urgencies lie decades apart.

        Parameters
        ----------
        planned : fetches that the plan means to be made from one check to the next
        waiting : pages that are due and wait to be fetched
        short : fetches were left unmade, more than `TOLERANCE`, because nothing was due
        """
        crowd = waiting / max(MOST_AHEAD * planned, 2.0)
        self._fall = max(self._fall * _FALL, _STEEPEST_FALL) if short else 1.0
        if crowd > 1.0:
            self.value *= min(float(crowd**_STEEPNESS), _STEEPEST_RISE)
        elif short:
            self.value = max(self.value * self._fall, _LEAST)
        elif waiting < LEAST_AHEAD * planned:
            self.value = max(self.value * _EASE, _LEAST)
