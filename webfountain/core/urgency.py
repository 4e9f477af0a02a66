"""Urgency: the obsolete time that a fetch now is expected to save.

Every strategy that uses change rates fetches the most urgent pages first. An urgent page is probably obsolete, and
stays fresh for long after a fetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from webfountain.core.arrays import Array


__all__ = ["urgency", "urgency_and_slope", "urgency_of_known_rate"]


def urgency_of_known_rate(rate: Array, elapsed: Array) -> Array:
    """Return the index (1 - e^-x (1 + x)) / rate with x = rate * elapsed, for a page that changes by a Poisson process.

    If the price of a fetch equals the index, the page should be fetched at intervals of `elapsed`. It is optimal to
    always fetch the page with the greatest index, because all pages are then fetched at the same price. A page that
    never changes has index 0.

    Parameters
    ----------
    rate : changes per unit of time, >= 0
    elapsed : time since the last fetch

    Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 4 (the marginal
    freshness of a visit); Azar et al., *Tractable near-optimal policies for crawling*, PNAS 2018.
    """
    x = rate * elapsed
    return np.where(rate > 0, (1 - np.exp(-x) * (1 + x)) / np.maximum(rate, np.finfo(np.float64).tiny), 0.0)


def urgency(hazard: Array, rate: Array, events: Array, exposure: Array) -> Array:
    """Return the expected index of a page whose rate, relative to its section, is r ~ Gamma(`events`, `exposure`).

    `hazard` is the expected number of changes of the section's average page since the last fetch of the given page.
    `rate` is the number of changes of the average page per step, in the long run. With H = hazard, A = events, b =
    exposure and q = b/(b + H), the mean over r of (1 - e^-rH (1 + rH)) / (r rate) is

        (b (1 - q^(A-1))/(A - 1) - H q^A) / rate

    For a page with few observations, the expected index exceeds the index at its mean rate, so such pages are explored.
    """
    return urgency_and_slope(hazard, rate, events, exposure)[0]


def urgency_and_slope(hazard: Array, rate: Array, events: Array, exposure: Array) -> tuple[Array, Array]:
    """Return the `urgency`, and the slope of ln(urgency) over ln(hazard).

    The slope is at most 2 and falls as the hazard grows, because of log-concavity (Prekopa, *On logarithmic concave
    measures and functions*, 1973). The derivative of the urgency is H (A/b) q^(A+1) / rate.
    """
    grown = 1.0 + hazard / exposure  # this is 1/q; nearly all the cost is one logarithm and one power
    log_grown = np.log(grown)
    power = np.exp(-events * log_grown)
    order = events - 1.0
    middle = np.abs(order) < 1e-7
    order[middle] = 1.0
    tail = (1.0 - power * grown) / order
    tail[middle] = log_grown[middle]
    index = exposure * tail - hazard * power
    # If few changes are expected, the difference loses its digits, so the first term of its series is used.
    few = hazard * np.maximum(events, 1.0) < 1e-4 * exposure
    square = events * hazard**2 / exposure
    index[few] = square[few] / 2
    slope = np.full_like(index, 2.0)
    np.divide(square * power, grown * index, out=slope, where=index > 0.0)
    np.minimum(slope, 2.0, out=slope)
    return np.asarray(index / rate), slope
