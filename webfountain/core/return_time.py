"""When to request a gone page again: by its urgency, it competes with the live pages.

A gone page comes back at some rate, and is obsolete from its return until it is fetched. So it has the same urgency as
a live page that changes at this rate (`urgency`), and is due when its urgency reaches the price of a fetch. The rate of
these returns is unknown. The rates of a site's pages are assumed to follow a gamma distribution with shape `SHAPE`. The
mean of this distribution is the number of returns that fetches found, divided by the time for which pages of the site
were gone. The longer a page is gone, the lower is its expected rate. Pages that once had a copy are counted separately
from URLs that never had one, because most dead links never led to a page. URLs of one source and directory form a class
with its own rate: the weighted mean of its own evidence and the site's rate.

While little is known about a site, a request is made mainly to learn, and the result says something about all its dead
URLs. So the number of such requests must not grow with the number of dead URLs: see `Returns.spacing`.

Source: Azar et al., *Tractable near-optimal policies for crawling*, PNAS 2018 (the urgency); the gamma mixture of rates
is the Lomax law. Its use for gone pages is ours.
"""

from __future__ import annotations

from math import exp, expm1, inf, sqrt
from typing import Final, NamedTuple

__all__ = ["CAME_BACK", "LONGEST", "NEVER_LIVED", "Returns", "price_of_interval", "time_to_return"]

SHAPE: Final = 0.5
CAME_BACK: Final = 10.0
NEVER_LIVED: Final = 60.0
"""Assumed mean times until a page comes back, in periods. `CAME_BACK` is for pages that once had a copy, `NEVER_LIVED`
for URLs that never had one."""
PRIOR_RETURNS: Final = 0.25
"""Weight of this assumption, in returns."""
CLASS_RETURNS: Final = 0.5
"""Weight of the site's rate when the rate of a class of its URLs is estimated, in returns."""
SAMPLE: Final = 40
"""Number of a site's dead URLs that are requested again without a longer wait, to learn whether such URLs come back."""
LONGEST: Final = 1000.0
"""Largest number of periods until a gone page is requested again."""
_HALVINGS: Final = 40


class Returns(NamedTuple):
    """Evidence about the gone pages of a site, or of a class: how many came back, and how long pages were gone, s."""

    found: int = 0
    gone_s: float = 0.0
    urls: int = 0
    """Number of URLs that were gone at their first fetch."""
    asked: int = 0
    """Number of later requests."""

    def add(self, *, came: bool, waited_s: float) -> Returns:
        """Return the evidence with one more request, `waited_s` after the last one."""
        return Returns(self.found + came, self.gone_s + waited_s, self.urls, self.asked + 1)

    def rate(self, *, usual_s: float) -> float:
        """Return the mean number of returns per second of a gone page."""
        return (self.found + PRIOR_RETURNS) / (self.gone_s + PRIOR_RETURNS * usual_s)

    def rate_within(self, site_rate: float) -> float:
        """Return the mean number of returns per second for a class of URLs, on a site with the rate `site_rate`."""
        return (self.found + CLASS_RETURNS) / (self.gone_s + CLASS_RETURNS / site_rate)

    @property
    def spacing(self) -> float:
        """Return the factor by which a wait is longer because requests of `SAMPLE` URLs will show enough.

        If n URLs were not requested again yet, the n-th waits about √n times as long as the first.
        """
        return sqrt(max(1.0, self.urls / (SAMPLE + self.asked)))


def price_of_interval(interval_s: float, change_s: float) -> float:
    """Return the obsolete time, s, that a fetch saves if a page changes every `change_s` seconds on average and is
    visited every `interval_s` seconds."""
    x = interval_s / change_s
    return change_s * (-expm1(-x) - x * exp(-x))


def time_to_return(rate: float, *, gone_s: float, price_s: float) -> float:
    """Return the seconds after which a request for a gone page is worth the price; inf if it never is.

    Parameters
    ----------
    rate : mean number of returns per second of the site's gone pages
    gone_s : shortest time for which this page can have been gone, s
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
