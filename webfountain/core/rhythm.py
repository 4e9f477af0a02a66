"""The week of a site: on which of seven days it changes how often.

People publish on weekdays. For each day of the week this keeps the changes found and those expected without it, and
tells how many times as busy as the average a step is believed to be before any change of it is found. `activity`
asks it. The factors are shrunk towards 1, so that a site without such a rhythm counts as flat.

Source: gamma-shrunk Poisson rate ratios, as the activities of `activity`.
"""

from __future__ import annotations

__all__ = ["WEEK", "Week"]

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

WEEK = 7
"""Days in a week."""

_PRIOR = 5.0
"""Expected changes on a day of the week that "as busy as the average" is worth to it."""


class Week:
    """Learns one factor per day of the week; step 0 begins its first day. Steps must be no longer than a day."""

    def __init__(self, *, day: float = 1.0) -> None:
        """`day` is the number of steps in a day."""
        self._day = day
        self._found, self._expected = np.zeros(WEEK), np.zeros(WEEK)  # of the steps that were closed
        self._factors = np.ones(WEEK)

    def factors(self, first: int, last: int) -> Array:
        """(last - first,) how busy each step is believed to be, 1 = as the average."""
        return np.asarray(self._factors[self._days(first, last)])

    def learn(self, first: int, found: Array, expected: Array) -> None:
        """Re-estimate from the changes found and expected in each of the steps from `first` on, and all closed ones."""
        day = self._days(first, first + len(found))
        found = self._found + np.bincount(day, weights=found, minlength=WEEK)
        expected = self._expected + np.bincount(day, weights=expected, minlength=WEEK)
        self._factors = (found + _PRIOR) / (expected + _PRIOR)

    def close(self, step: int, found: float, expected: float, *, keep: float) -> None:
        """Count a step for good that `learn` will not be told of again; what was closed before fades by `keep`."""
        self._found *= keep
        self._expected *= keep
        day = self._days(step, step + 1)
        self._found[day] += found
        self._expected[day] += expected

    def encode(self) -> list[float]:
        """What was found and expected on each day."""
        return [*self._found.tolist(), *self._expected.tolist(), *self._factors.tolist()]

    def decode(self, data: Sequence[float]) -> None:
        """Go on from what `encode` told."""
        self._found, self._expected, self._factors = np.array(data, dtype=np.float64).reshape(3, WEEK)

    def _days(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Day of the week of each step."""
        return np.asarray((np.arange(first, last) / self._day).astype(np.int64) % WEEK)
