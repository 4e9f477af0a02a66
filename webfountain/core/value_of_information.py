"""Compute what a visit to a page that changes independently of others is expected to show about later visits.

At long intervals every visit finds a change, whether the page changes every ten days or every day. So pages that may
change too fast for the budget would be visited for ever. A visit after a few days shows which of them are worth later
visits.

Let w be the probabilities of the rates r of a page, and p the price of a fetch. Regular visits at the best interval T
gain G(w) = max(0, max over T of (sum of w_r (1 - e^(-rT))/r - p)/T) per step. A visit finds the page changed or not.
K = G(changed) + G(same) - G(w) is what its result is expected to add to the gain per step; the probabilities of the
rates with each result are not normalised. The *value of information* is K times the horizon, minus what the next
regular visit would show anyway.

Source: Frazier, Powell & Dayanik, *A knowledge-gradient policy for sequential information collection*, SIAM J. Control
Optim. 2008.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from webfountain.core.independent_pages import RATES

if TYPE_CHECKING:
    from webfountain.core.arrays import Array


__all__ = ["LaterVisits"]

HORIZON: Final = 1.5
"""For how long the result of a visit counts, as a multiple of the usual time between two changes of a page."""
PAYS: Final = (1 / 6, 1 / 4)
"""Shortest and longest usual interval between visits, as multiples of the same time, for which the value of information
is not 0. Elsewhere it cost more than it gained on some generated webs (docs/measurements/revisit.md).
"""
INTERVALS: Final = np.geomspace(1 / 12, 60.0, 12)
"""Intervals of later visits that are compared, as multiples of the usual interval."""


class LaterVisits:
    """What the visits to a page gain that follow a visit now."""

    def __init__(self, *, usual_rate: float, visit: float) -> None:
        """`usual_rate` is in changes per step. `visit` is the usual interval between two visits, in steps."""
        self._rates, self._intervals = RATES * usual_rate, INTERVALS * visit
        self.horizon = HORIZON / usual_rate if PAYS[0] <= usual_rate * visit <= PAYS[1] else 0.0
        """Steps for which the result of a visit counts."""

    @cached_property
    def _fresh(self) -> Array:
        """(rates, intervals) time for which a copy is fresh between two visits, steps."""
        return np.asarray(-np.expm1(-np.outer(self._rates, self._intervals)) / self._rates[:, None])

    def information(self, chances: Array, age: Array, price: Array, lacks: Array) -> Array:
        """Return the value of information of visits now, and its upper limit at any age, (2, pages) steps. The value is
        0 for pages for which the limit is less than `lacks`.

        Parameters
        ----------
        chances : (pages, rates) probability of each rate
        age : (pages,) steps since the last fetch
        price : (pages,) price of a fetch, steps
        lacks : (pages,) smallest value that matters, steps
        """
        found = np.zeros((2, len(age)))
        if self.horizon > 0.0:
            found[1] = self.horizon * self._most_added(chances, price)
            near = np.flatnonzero((found[1] > 0.0) & (found[1] >= lacks))
            found[0, near] = self._value(chances[near], age[near], price[near])
        return found

    def _value(self, chances: Array, age: Array, price: Array) -> Array:
        each = self._gains(chances, price)
        gain = np.maximum(each.max(axis=1), 0.0)
        wait = np.where(gain > 0.0, np.maximum(self._intervals[each.argmax(axis=1)] - age, 0.0), np.inf)
        regular = np.maximum(self.horizon - wait, 0.0) * self._added(chances, age + wait, price, gain)
        return np.asarray(np.maximum(self.horizon * self._added(chances, age, price, gain) - regular, 0.0))

    def _added(self, chances: Array, age: Array, price: Array, gain: Array) -> Array:
        """Return how much the result of a visit at `age` is expected to add to the gain per step."""
        changed = chances * -np.expm1(-np.outer(age, self._rates))
        return self._gain(changed, price) + self._gain(chances - changed, price) - gain

    def _most_added(self, chances: Array, price: Array) -> Array:
        """Return how much the knowledge of the rate would add to the gain per step."""
        asked = self._rates * price[:, None]
        known = np.where(asked < 1.0, np.exp(-np.sqrt(2.0 * asked)), 0.0)  # not below the gain at the best interval
        return np.asarray(np.maximum((chances * known).sum(axis=1) - self._gain(chances, price), 0.0))

    def _gain(self, mass: Array, price: Array) -> Array:
        """Return the gain per step at the best interval, or 0 for a page that is not worth a visit."""
        return np.asarray(np.maximum(self._gains(mass, price).max(axis=1), 0.0))

    def _gains(self, mass: Array, price: Array) -> Array:
        """Return the gain per step at each interval: the share of time for which the copy is fresh, minus the price of
        the visits. `mass` is the probability of each rate, (pages, rates); its sum may be below 1.
        """
        return np.asarray((mass @ self._fresh - (price * mass.sum(axis=1))[:, None]) / self._intervals)
