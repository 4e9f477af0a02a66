"""What a plan will have achieved at each period's end when pages are taken oldest first, as the crawler takes them.

Equation (2) draws the crawled pages of a bucket at random; a crawler that takes the oldest first leaves fewer obsolete,
because no page waits long. Both forecasts stand beside what is measured. Also here: the steady interval of each bucket
that equalises the price of a fetch, which is the continuous optimum that the `fountain` strategy follows.

Source: Edwards 2001, equation (2) and Figure 2; the price of a fetch: Cho & Garcia-Molina, *Effective page refresh
policies for web crawlers*, TODS 2003, section 4; Azar et al., PNAS 2018.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.core.model import Instance

    Array = npt.NDArray[np.float64]

__all__ = ["interval_of_rest", "intervals_at_price", "obsolete_oldest_first", "price_of_budget"]

_COHORTS: Final = 16
_LARGEST_X: Final = 50.0
_HALVINGS: Final = 45


def obsolete_oldest_first(instance: Instance, x: Array, z: Array, *, mean_age: Array) -> Array:
    """(T,) obsolete pages at each period's end, the never-crawled not among them.

    Parameters
    ----------
    x : (T, B) pages recrawled, z : (T,) never-crawled pages crawled
    mean_age : (B,) periods since the last crawl; ages are taken as spread evenly up to twice that
    """
    ages = (np.arange(_COHORTS) + 0.5)[::-1] * (2.0 / _COHORTS)
    # (B, cohorts) pages of a cohort and their obsolete share, the longest uncrawled first; each period appends one.
    pages = np.concatenate([np.repeat(instance.b0[:, None] / _COHORTS, _COHORTS, axis=1), np.zeros_like(x).T], axis=1)
    obsolete = np.zeros_like(pages)
    obsolete[:, :_COHORTS] = 1.0 - (1.0 - instance.a[0])[:, None] ** (ages * mean_age[:, None])
    total = np.zeros(instance.T)
    for t in range(instance.T):
        older = np.cumsum(pages, axis=1) - pages
        pages -= np.clip(x[t][:, None] - older, 0.0, pages)
        obsolete = 1.0 - (1.0 - obsolete) * (1.0 - instance.a[t])[:, None]
        pages[:, _COHORTS + t] = x[t] + instance.p * z[t]
        obsolete[:, _COHORTS + t] = 0.0
        total[t] = (pages * obsolete).sum()
    return total


def intervals_at_price(rates: Array, price: float, *, longest: float = inf) -> Array:
    """(B,) interval at which a fetch of a page of each rate buys `price` of fresh time; s, `longest` where none does.

    Solves (1 - e^-x (1 + x)) / rate = price, x = rate * interval, by bisection. A page that changes so fast that no
    fetch is worth the price is given up, as is one that never changes.
    """
    low, high = np.zeros_like(rates), np.full_like(rates, _LARGEST_X)
    wanted = np.minimum(price * rates, 1.0)
    for _ in range(_HALVINGS):
        x = (low + high) / 2
        short = _worth(x) < wanted
        low, high = np.where(short, x, low), np.where(short, high, x)
    interval = np.divide(high, rates, out=np.full_like(rates, longest), where=(rates > 0) & (wanted < 1.0))
    return np.asarray(np.minimum(interval, longest))


def _worth(x: Array) -> Array:
    """1 - e^-x (1 + x), by its series where the difference would lose its digits."""
    return np.where(x < 1e-4, x * x * (0.5 - x / 3.0), -np.expm1(-x) - x * np.exp(-x))


def price_of_budget(
    pages: Array, rates: Array, fetches_per_s: float, *, longest: float = inf, shortest: float = 0.0
) -> float:
    """The price at which all pages together ask for `fetches_per_s`; 0 where the budget exceeds every wish.

    Bisection on the logarithm; the answer is the dual of "fetches <= budget" in the steady state. `longest` and
    `shortest` (s) bound every interval; where `longest` alone asks for more than the budget, so does the answer.
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
    """Fetches per second that all pages ask for at a price."""
    intervals = np.maximum(intervals_at_price(rates, price, longest=longest), max(shortest, 1e-9))
    return float((pages / intervals).sum())


def interval_of_rest(pages: Array, rates: Array, price: float, fetches_per_s: float) -> float:
    """Interval of the pages that the price gives up, s: they share what the others leave; inf where nothing is left.

    Where even the slowest pages change many times between two fetches no price is worth paying, and the budget
    would lie idle; a visit still finds a change and its links.
    """
    intervals = intervals_at_price(rates, price)
    left = fetches_per_s - float((pages / np.maximum(intervals, 1e-9)).sum())
    given_up = float(pages[~np.isfinite(intervals)].sum())
    return given_up / left if left > 1e-3 * fetches_per_s and given_up > 0 else inf
