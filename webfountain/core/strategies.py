"""The strategies: weights of the periods of a cycle in the objective, by name and by number.

Source: Edwards 2001, section 4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.core.model import Array

__all__ = ["NAMED", "STRATEGIES", "weights_of"]

_LOW = 0.008  # weight of the periods before the last in strategy 3, calibrated to the paper's Table 3

_NUMBERED = {1: "equal", 2: "last", 3: "last-heavy"}

STRATEGIES = tuple(_NUMBERED)
"""1: all periods count equally; 2: only the last period counts; 3: the last period counts most."""


def _equal(periods: int, low: float) -> Array:
    """Return the weights of strategy 1: 1 in every period."""
    return np.ones(periods)


def _last(periods: int, low: float) -> Array:
    """Return the weights of strategy 2: 1 in the last period, 0 before."""
    return _last_heavy(periods, 0.0)


def _last_heavy(periods: int, low: float) -> Array:
    """Return the weights of strategy 3: 1 in the last period, `low` before. With `low` 0 this is strategy 2."""
    return np.append(np.full(periods - 1, low), 1.0)


NAMED: dict[str, Callable[[int, float], Array]] = {"equal": _equal, "last": _last, "last-heavy": _last_heavy}
"""Functions that compute the (T,) weights. Arguments: number of periods, weight of periods before the last."""


def weights_of(strategy: int, periods: int) -> Array:
    """Return the (T,) weights of the periods in the objective.

    Raises ValueError if `strategy` is not one of `STRATEGIES`.
    """
    if strategy not in _NUMBERED:
        raise ValueError(f"strategy {strategy} is not one of {STRATEGIES}")
    return NAMED[_NUMBERED[strategy]](periods, _LOW)
