"""The strategies: what obsolete pages weigh in each period of a cycle, by the names of instance files and by number.

Place in the walk (DESIGN 4): the objective of the instances that `census` measures and `instances` builds.

Source: Edwards 2001, section 4.1.
"""

from __future__ import annotations

__all__ = ["NAMED", "STRATEGIES", "weights_of"]

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

_LOW = 0.008  # strategy 3's weight of the periods before the last, as calibrated to the paper's Table 3


def _equal(periods: int, low: float) -> Array:
    """Strategy 1: 1 in every period. The paper says "summing to 1", but its objective is T times larger."""
    return np.ones(periods)


def _last(periods: int, low: float) -> Array:
    """Strategy 2: only the last period counts."""
    return _last_heavy(periods, 0.0)


def _last_heavy(periods: int, low: float) -> Array:
    """Strategy 3: `low` before the last period; with `low` 0 it is strategy 2."""
    return np.append(np.full(periods - 1, low), 1.0)


NAMED: dict[str, Callable[[int, float], Array]] = {"equal": _equal, "last": _last, "last-heavy": _last_heavy}
"""(T,) weights from the number of periods and the weight of those before the last."""

_NUMBERED = {1: "equal", 2: "last", 3: "last-heavy"}

STRATEGIES = tuple(_NUMBERED)
"""1: equal weights in all periods; 2: the last period only; 3: the last, and very little before."""


def weights_of(strategy: int, periods: int) -> Array:
    """(T,) weights of the periods in the objective.

    Raises ValueError when `strategy` is none of `STRATEGIES`.
    """
    if strategy not in _NUMBERED:
        raise ValueError(f"strategy {strategy}; must be one of {STRATEGIES}")
    return NAMED[_NUMBERED[strategy]](periods, _LOW)
