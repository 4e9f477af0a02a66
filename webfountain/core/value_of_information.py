"""Compute what a visit to a page that changes independently of others is expected to show about later visits.

At long intervals, each visit to a page finds a change, whether the page changes every ten days or every day. So pages
that may change too fast for the budget would be visited for ever. A visit after a few days would show which of them are
worth later visits.

Let w be the probabilities of the rates r of a page, and p the price of a fetch. Regular visits at the best interval T
gain G(w) = max(0, max over T of (sum of w_r (1 - e^(-rT))/r - p)/T) per step. A visit finds the page changed or not;
K = G(changed) + G(same) - G(w) is what its result is expected to add to the gain per step, if the probabilities of the
rates with each result are not normalised. The *value of information* is K times the `horizon`, minus what the next
regular visit would show anyway.

Source: Frazier, Powell & Dayanik, *A knowledge-gradient policy for sequential information collection*, SIAM J. Control
Optim. 2008.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from webfountain.core.arrays import Array


__all__ = ["LaterVisits", "horizon"]

LONGEST: Final = float(os.environ.get("TOP", 3.0))
"""Upper limit of the horizon, as a multiple of the mean time between two changes of a page."""
LEARNING: Final = float(os.environ.get("LEARN", 7.0))
"""The horizon is shorter by the time of this many visits."""
INTERVALS: Final = np.geomspace(1 / 12, 60.0, 12)
"""Intervals of later visits that are compared, as multiples of the mean time between two changes of a page."""


def horizon(usual_rate: float, visit: float) -> float:
    """Return for how many steps later visits count, if pages are visited every `visit` steps.

    Where visits are rare, most of what they show comes too late: the rates of pages may have changed.
    """
    return max(min(LEARNING * visit, LONGEST / usual_rate - LEARNING * visit), 0.0)


class LaterVisits:
    """What later visits at regular intervals gain."""

    def __init__(self, rates: Array, *, visit: float, horizon: float) -> None:
        """`rates` are the possible rates of a page, in changes per step."""
        self._rates, self._horizon = rates, horizon
        self._intervals = INTERVALS * visit
        self._fresh = -np.expm1(-np.outer(rates, self._intervals)) / rates[:, None]  # (rates, intervals)

    def information(self, chances: Array, age: Array, price: Array) -> Array:
        """Return the value of information, in steps, of a visit now to pages that were fetched `age` steps ago.

        Parameters
        ----------
        chances : (pages, rates) probability of each rate
        age, price : (pages,) steps
        """
        each = self._gains(chances, price)
        gain = np.maximum(each.max(axis=1), 0.0)
        wait = np.where(gain > 0.0, np.maximum(self._intervals[each.argmax(axis=1)] - age, 0.0), np.inf)
        regular = np.maximum(self._horizon - wait, 0.0) * self._added(chances, age + wait, price, gain)
        return np.asarray(np.maximum(self._horizon * self._added(chances, age, price, gain) - regular, 0.0))

    def most(self, chances: Array, price: Array) -> Array:
        """Return an upper limit of `information` at any age, which is the value of knowing the rate of the page."""
        asked = self._rates * price[:, None]
        known = np.where(asked < 1.0, np.exp(-np.sqrt(2.0 * asked)), 0.0)  # not below the gain at the best interval
        gain = np.maximum(self._gains(chances, price).max(axis=1), 0.0)
        return np.asarray(self._horizon * np.maximum((chances * known).sum(axis=1) - gain, 0.0))

    def _added(self, chances: Array, age: Array, price: Array, gain: Array) -> Array:
        """Return how much the result of a visit at `age` is expected to add to the gain per step."""
        changed = chances * -np.expm1(-np.outer(age, self._rates))
        after = (np.maximum(self._gains(each, price).max(axis=1), 0.0) for each in (changed, chances - changed))
        return np.asarray(sum(after) - gain)

    def _gains(self, mass: Array, price: Array) -> Array:
        """Return the gain per step at each interval: the share of time for which the copy is fresh, minus the price of
        the visits. `mass` is the probability of each rate, (pages, rates); its sum may be below 1.
        """
        return np.asarray((mass @ self._fresh - (price * mass.sum(axis=1))[:, None]) / self._intervals)
