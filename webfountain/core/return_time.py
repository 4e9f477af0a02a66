"""When to request a gone page again: it competes with the live pages by what a fetch of it is worth.

A gone page comes back at some rate, and is obsolete from then on until it is fetched. So it has the same urgency as a
live page that changes at this rate (`urgency`), and is due when its urgency reaches the price of a fetch. Its rate is
unknown. Over the pages of a site, rates follow a gamma distribution with shape `SHAPE`, whose mean is the returns that
the site's fetches found over the time for which its pages were gone; the longer a page is gone, the lower is its
expected rate. Pages that had a copy once, and URLs that never had one, are counted apart: most dead links never lived.

Source: Azar et al., *Tractable near-optimal policies for crawling*, PNAS 2018 (the urgency); the gamma mixture of rates
is the Lomax law. Its use for gone pages is ours.
"""

from __future__ import annotations

from math import exp, expm1, inf
from typing import Final, NamedTuple

__all__ = ["CAME_BACK", "LONGEST", "NEVER_LIVED", "Returns", "price_of_interval", "time_to_return"]

SHAPE: Final = 0.5
CAME_BACK: Final = 10.0
NEVER_LIVED: Final = 60.0
"""Assumed mean time until a page comes back, in periods: a page that had a copy, and a URL that never had one."""
PRIOR_RETURNS: Final = 0.25
"""Weight of this assumption, in returns."""
LONGEST: Final = 1000.0
"""Number of periods after which a gone page is requested again in any case."""
_HALVINGS: Final = 40


class Returns(NamedTuple):
    """Evidence of a site's gone pages: how many came back, and for how long they were gone, s."""

    found: int = 0
    gone_s: float = 0.0

    def rate(self, *, usual_s: float) -> float:
        """Return the mean returns per second of a gone page."""
        return (self.found + PRIOR_RETURNS) / (self.gone_s + PRIOR_RETURNS * usual_s)


def price_of_interval(interval_s: float, change_s: float) -> float:
    """Return the obsolete time, s, that a fetch saves of pages that change each `change_s` and are visited each
    `interval_s`."""
    x = interval_s / change_s
    return change_s * (-expm1(-x) - x * exp(-x))


def time_to_return(rate: float, *, gone_s: float, price_s: float) -> float:
    """Return the seconds after which a request of a gone page is worth the price; inf if it never is.

    Parameters
    ----------
    rate : mean returns per second of the site's gone pages
    gone_s : time for which this page has been gone, at least
    """
    believed = SHAPE / (SHAPE / rate + gone_s)
    wanted = believed * price_s
    if wanted >= 1.0:
        return inf
    low, high = 0.0, 50.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if price_of_interval(middle, 1.0) < wanted else (low, middle)
    return high / believed
