"""The price of a fetch: a page is fetched only if the fetch is expected to save at least this much obsolete time. The
price is the Lagrange multiplier of the budget of fetches.

A page is due when its urgency reaches the price. With a price, each site can choose among its own pages without a sort
over all sites. With one price for all sites, the budget goes to the most urgent pages of all sites. A control loop
finds the price at which the budget is spent. If fewer fetches are made than planned because too few pages are due, the
price falls. If more pages are due than can be fetched soon, the price rises.

If fetches are divided optimally among buckets, one more fetch gains the same in every bucket, namely the price.

Source: Cho & Garcia-Molina, *Effective page refresh policies for web crawlers*, TODS 2003, section 4; Azar et al.,
*Tractable near-optimal policies for crawling*, PNAS 2018.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from webfountain.core.arrays import Array

__all__ = ["MOST_AHEAD", "TOLERANCE", "Price", "interval_of_rest", "intervals_at_price", "price_of_budget"]

LEAST_AHEAD: Final = 0.5
MOST_AHEAD: Final = 3.0
"""The price rises if the number of waiting pages exceeds this multiple of the fetches planned between two checks."""
TOLERANCE: Final = 0.03
"""The price falls if the number of missed fetches exceeds 1 + `TOLERANCE` * (planned fetches)."""
_FALL: Final = 0.8
_STEEPEST_FALL: Final = 0.3
_EASE: Final = 0.97
_STEEPNESS: Final = 0.5
_STEEPEST_RISE: Final = 2.0
_RISE: Final = 0.3
"""If more fetches were made than planned, one adjustment raises the price by at most this share."""
_LEAST: Final = 1e-6
_LARGEST: Final = 1e9
"""Upper limit of the price, in seconds. Without a limit, fetches forced by `revisit.max_interval` could raise the price
forever."""
_GIVEN_UP: Final = 1.0 - 1e-9
_LARGEST_X: Final = 50.0
_HALVINGS: Final = 45


class Price:
    """The current price (`value`, in seconds). The price is adjusted several times per period."""

    __slots__ = ("_fall", "value")

    def __init__(self, value: float) -> None:
        self.value = value
        self._fall = 1.0

    def adjust(
        self,
        *,
        planned: float,
        waiting: float,
        owed: float,
        short: bool,
        top: float = inf,
        level: float = 0.0,
        is_only_limit: bool = False,
    ) -> None:
        """Adjust the price so that the planned number of fetches is made.

        Parameters
        ----------
        planned : fetches that the plan provides from one check to the next
        waiting : pages that are due and wait to be fetched
        owed : planned fetches that were not made, including those of earlier checks; negative if more were made
        short : True if fetches were not made because no page was due
        top : known upper bound, s, of the urgency of the pages that are not due; the price does not rise above it, or
            above `_STEEPEST_RISE` times it while `is_only_limit` makes it rise
        level : price, s, at which just enough pages for the missing fetches would be due; 0 if there are too few pages.
            In one step the price does not fall below it. If fetches were missed, the price may fall to this level
            however many pages wait, because the waiting pages cannot be fetched soon
        is_only_limit : True if the crawl could make more fetches than planned; then no page waits at a low price
        """
        over = -1.0 - owed
        if is_only_limit and over > 0.0:
            rise = 1.0 + _RISE * min(planned, 1.0) * min(over / max(MOST_AHEAD * planned, 2.0), 1.0)
            # Far above the urgency of every page, the price would take long to fall again. It is above `top` by a
            # little in any case, because pages are fetched when they reach it.
            self.value = max(min(self.value * rise, _STEEPEST_RISE * top, _LARGEST), self.value)
            self._fall = 1.0
            return
        room = MOST_AHEAD * planned + owed
        crowd = waiting / max(room, 2.0)
        self._fall = max(self._fall * _FALL, _STEEPEST_FALL) if short else 1.0
        if crowd > 1.0 and not (short and level > 0.0):
            self.value = max(min(self.value * min(float(crowd**_STEEPNESS), _STEEPEST_RISE), top), self.value)
        elif short:
            self.value = max(self.value * self._fall, min(level, self.value), _LEAST)
        elif waiting < room and level > 0.0:
            self.value = max(self.value * _FALL, min(level, self.value))
        elif waiting < LEAST_AHEAD * planned and owed > -1.0:
            self.value = max(self.value * _EASE, _LEAST)


def intervals_at_price(rates: Array, price: float, *, longest: float = inf) -> Array:
    """Return the (B,) intervals, s, at which each fetch of a page saves exactly `price` of obsolete time.

    An interval is found by bisection of (1 - e^-x (1 + x)) / rate = price, where x = rate * interval. Pages that never
    change, or change too fast to be worth the price, get `longest`. A page changes too fast if no fetch, however late,
    saves as much obsolete time as the price."""
    low, high = np.zeros_like(rates), np.full_like(rates, _LARGEST_X)
    wanted = np.minimum(price * rates, 1.0)
    for _ in range(_HALVINGS):
        x = (low + high) / 2
        short = _worth(x) < wanted
        low, high = np.where(short, x, low), np.where(short, high, x)
    interval = np.divide(high, rates, out=np.full_like(rates, longest), where=(rates > 0) & (wanted < _GIVEN_UP))
    return np.asarray(np.minimum(interval, longest))


def _worth(x: Array) -> Array:
    """Return 1 - e^-x (1 + x)."""
    return np.where(x < 1e-4, x * x * (0.5 - x / 3.0), -np.expm1(-x) - x * np.exp(-x))


def price_of_budget(
    pages: Array, rates: Array, fetches_per_s: float, *, longest: float = inf, shortest: float = 0.0
) -> float:
    """Return the price at which all pages together use `fetches_per_s`, or 0 if they need fewer fetches.

    Every interval is between `shortest` and `longest` (s).
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
    intervals = np.maximum(intervals_at_price(rates, price, longest=longest), max(shortest, 1e-9))
    return float((pages / intervals).sum())


def interval_of_rest(pages: Array, rates: Array, price: float, fetches_per_s: float) -> float:
    """Return the visit interval, s, of pages that change too fast to be worth the price. Pages that change too fast
    share the fetches that the slower pages leave over. The interval is inf if no fetches are left over.

    The returned interval also replaces any longer interval that a page has at `price`.
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
