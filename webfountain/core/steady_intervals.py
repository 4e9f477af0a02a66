"""Compute the interval between visits of each bucket in the long run, at a price per fetch or within a budget.

In the continuous optimum, one more fetch gains the same in every bucket. The strategy `fountain` uses this optimum.

Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 4; Azar et al., PNAS
2018.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from webfountain.core.model import Array

__all__ = ["interval_of_rest", "intervals_at_price", "price_of_budget"]

_GIVEN_UP: Final = 1.0 - 1e-9
_LARGEST_X: Final = 50.0
_HALVINGS: Final = 45


def intervals_at_price(rates: Array, price: float, *, longest: float = inf) -> Array:
    """Return the (B,) intervals, s, at which one fetch of a page gains `price` of fresh time; `longest` if it never
    does.

    Solves (1 - e^-x (1 + x)) / rate = price, x = rate * interval, by bisection. A page that never changes gets
    `longest`, and so does a page that changes so fast that no fetch is worth the price. A page counts as such above
    `_GIVEN_UP` of the largest possible gain. Closer to the largest gain, a float price cannot distinguish a fetch
    every 30 changes from one every 50.
    """
    low, high = np.zeros_like(rates), np.full_like(rates, _LARGEST_X)
    wanted = np.minimum(price * rates, 1.0)
    for _ in range(_HALVINGS):
        x = (low + high) / 2
        short = _worth(x) < wanted
        low, high = np.where(short, x, low), np.where(short, high, x)
    interval = np.divide(high, rates, out=np.full_like(rates, longest), where=(rates > 0) & (wanted < _GIVEN_UP))
    return np.asarray(np.minimum(interval, longest))


def _worth(x: Array) -> Array:
    """Return 1 - e^-x (1 + x), computed by its series where the difference would lose its digits."""
    return np.where(x < 1e-4, x * x * (0.5 - x / 3.0), -np.expm1(-x) - x * np.exp(-x))


def price_of_budget(
    pages: Array, rates: Array, fetches_per_s: float, *, longest: float = inf, shortest: float = 0.0
) -> float:
    """Return the price at which all pages together use `fetches_per_s`, or 0 if the budget is more than all pages
    need.

    The price is found by bisection on its logarithm. The result is the dual of "fetches <= budget" in the steady
    state. Every interval is between `shortest` and `longest` (s). If visits every `longest` already need more than the
    budget, the budget is exceeded.
    """
    low, high = 1e-12, max(1.0 / max(float(rates.min(initial=inf)), 1e-12), 1.0)
    if _asked(pages, rates, low, longest, shortest) <= fetches_per_s:
        return 0.0
    for _ in range(_HALVINGS):
        price = float(np.sqrt(low * high))
        if _asked(pages, rates, price, longest, shortest) > fetches_per_s:
            low = price
        else:
            high = price
    return high


def _asked(pages: Array, rates: Array, price: float, longest: float, shortest: float) -> float:
    """Return the fetches per second that all pages need at a price."""
    intervals = np.maximum(intervals_at_price(rates, price, longest=longest), max(shortest, 1e-9))
    return float((pages / intervals).sum())


def interval_of_rest(pages: Array, rates: Array, price: float, fetches_per_s: float) -> float:
    """Return the interval, s, for pages that change too fast to be worth the price. They share the fetches that the
    other pages leave; inf if none are left.

    If even the slowest pages change many times between two fetches, no fetch is worth any price and the budget would
    stay unused. But such a visit still finds a change and new links. The interval is the longest of all pages: pages
    that the price would visit more rarely share these fetches too.
    """
    intervals = intervals_at_price(rates, price)
    sharing, rest = np.zeros(len(rates), dtype=np.bool_), inf
    while (more := (intervals > rest if np.isfinite(rest) else np.isinf(intervals)) & ~sharing).any():
        sharing |= more
        left = fetches_per_s - float((pages / np.maximum(intervals, 1e-9))[~sharing].sum())
        if left <= 1e-3 * fetches_per_s:
            return inf
        rest = float(pages[sharing].sum()) / left
    return rest
