"""When to request a gone page again: it competes with the live pages by what a fetch of it is worth.

A gone page comes back at some rate, and is obsolete from then on until it is fetched. So it has the same urgency as a
live page that changes at this rate (`urgency`), and is due when its urgency reaches the price of a fetch. Its rate is
unknown. Over the pages of a site, rates follow a gamma distribution with shape `SHAPE`, whose mean is the returns that
the site's fetches found over the time for which its pages were gone; the longer a page is gone, the lower is its
expected rate. Pages that had a copy once, and URLs that never had one, are counted apart: most dead links never lived.
URLs of one source and directory have a rate of their own, drawn towards that of the site.

While little is known of a site, a request is made mainly to learn, and what it shows holds for all of them. So the
number of such requests must not grow with the number of dead URLs: see `Returns.spacing`.

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
"""Assumed mean time until a page comes back, in periods: a page that had a copy, and a URL that never had one."""
PRIOR_RETURNS: Final = 0.25
"""Weight of this assumption, in returns."""
CLASS_RETURNS: Final = 0.5
"""Weight of the site's rate in the rate of a class of its URLs, in returns."""
SAMPLE: Final = 40
"""Number of dead URLs of a site that are requested again without a longer wait, to learn whether any comes back."""
LONGEST: Final = 1000.0
"""Number of periods after which a gone page is requested again in any case."""
_HALVINGS: Final = 40


class Returns(NamedTuple):
    """Evidence of gone pages of a site, or of a class of them: how many came back, and how long they were gone, s."""

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
        """Return the mean returns per second of a gone page."""
        return (self.found + PRIOR_RETURNS) / (self.gone_s + PRIOR_RETURNS * usual_s)

    def rate_within(self, site_rate: float) -> float:
        """Return the mean returns per second of a class of a site with this rate."""
        return (self.found + CLASS_RETURNS) / (self.gone_s + CLASS_RETURNS / site_rate)

    @property
    def spacing(self) -> float:
        """Return the factor by which a wait is longer because the requests of `SAMPLE` URLs will show enough: with n
        URLs that were never requested again the n-th waits about √n times as long as the first.
        """
        return sqrt(max(1.0, self.urls / (SAMPLE + self.asked)))


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
