"""Urgency: how much freshness a fetch now would buy, in obsolete time saved, for a page of uncertain change rate.

The greedy rule of every policy that knows or learns rates: fetch the pages of the greatest urgency. A page that
changes slowly and may be obsolete is worth most (a fetch repairs it for long); one that changes faster than it can be
followed is given up. Where the rates come from is told in `activity` and `change_rate`.
"""

from __future__ import annotations

__all__ = ["urgency", "urgency_of_known_rate"]

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


def urgency_of_known_rate(rate: Array, elapsed: Array) -> Array:
    """(1 - e^-x (1 + x)) / rate with x = rate * elapsed: the index of a page that changes by a Poisson process.

    It is the price of a fetch at which the page would be refreshed every `elapsed`; fetching the greatest first
    equalises these prices, which is the optimal allocation. A page that never changes has none.

    Parameters
    ----------
    rate : changes per unit of time, >= 0
    elapsed : time since the last fetch

    Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 4 (the
    marginal freshness of a visit); Azar et al., *Tractable near-optimal policies for crawling*, PNAS 2018.
    """
    x = rate * elapsed
    return np.where(rate > 0, (1 - np.exp(-x) * (1 + x)) / np.maximum(rate, np.finfo(np.float64).tiny), 0.0)


def urgency(hazard: Array, rate: Array, events: Array, exposure: Array) -> Array:
    """Expected index of a page whose rate, relative to its section's, is r ~ Gamma(`events`, `exposure`).

    The section's changes arrive unevenly: `hazard` is what an average page of it has gone through since the page's
    last fetch, `rate` what it goes through per step in the long run. With H = hazard, A = events, b = exposure and
    q = b/(b + H), the mean over r of (1 - e^-rH (1 + rH)) / (r rate) is

        (b (1 - q^(A-1))/(A - 1) - H q^A) / rate

    It is larger than the index at the mean rate where little is known: the value of finding out, for free.
    """
    log_q = -np.log1p(hazard / exposure)
    order = events - 1.0
    safe = np.where(np.abs(order) < 1e-9, 1.0, order)
    tail = np.where(np.abs(order) < 1e-9, -log_q, -np.expm1(safe * log_q) / safe)
    index = exposure * tail - hazard * np.exp(events * log_q)
    # The difference loses its digits where the expected changes are few; the first term of its series does not.
    small = events * hazard**2 / (2 * exposure)
    return np.asarray(np.where(hazard * np.maximum(events, 1.0) < 1e-4 * exposure, small, index) / rate)
