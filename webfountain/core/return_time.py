"""Decide when to request a gone page again.

A gone page may come back, and is then obsolete until the next fetch. A gone page is as urgent as a live page that
changes at the rate at which gone pages return (`urgency`). The return rates of a site's gone pages are assumed to
follow a gamma distribution. The mean return rate is the number of returns found, divided by the total time for which
pages were gone. Gone pages of three kinds are counted separately:

- pages that had a copy
- URLs that an added link made known. A link is *added* if an earlier copy of its page did not make the URL known. Sites
  often link a page before they publish it.
- other URLs that never had a page. A link that a page had when it was first read may have been dead for years.

URLs with the same source and directory form a class; its prior is the return rate of its kind on the site.

A few early requests are enough to estimate the return rate, because each is evidence about all dead URLs of the site
(`Returns.spacing`).

Source: Azar et al., *Tractable near-optimal policies for crawling*, PNAS 2018 (the urgency); the gamma mixture of rates
is the Lomax law.
"""

from __future__ import annotations

from math import exp, expm1, inf, sqrt
from typing import Final, NamedTuple

__all__ = ["CAME_BACK", "LONGEST", "NEVER_LIVED", "Returns", "price_of_interval", "time_to_return"]

SHAPE: Final = 0.5
CAME_BACK: Final = 10.0
NEVER_LIVED: Final = 60.0
"""Assumed mean time, in periods, until a gone page comes back. `CAME_BACK` is for pages that had a copy and for URLs of
added links, `NEVER_LIVED` for other URLs that never had a page.
"""
PRIOR_RETURNS: Final = 0.25
"""The assumed mean time until a page comes back counts as much as this many observed returns."""
CLASS_RETURNS: Final = 0.5
"""The return rate of a site is the prior for each class of its URLs. This prior has the weight of this number of
observed returns."""
SAMPLE: Final = 40
"""Number of a site's dead URLs that are requested early, to learn its rate of return."""
LONGEST: Final = 1000.0
"""A gone page is requested again after at most this many periods."""
_HALVINGS: Final = 40


class Returns(NamedTuple):
    """Counts for the gone pages of a site, or of a class of its URLs: URLs, requests, returns and time gone."""

    found: int = 0
    gone_s: float = 0.0
    urls: int = 0
    """Number of URLs that were gone at the first fetch."""
    asked: int = 0
    """Number of requests for URLs that were already known to be gone."""

    def add(self, *, came: bool, waited_s: float) -> Returns:
        """Return the counts with one more request, made `waited_s` seconds after the previous one."""
        return Returns(self.found + came, self.gone_s + waited_s, self.urls, self.asked + 1)

    def rate(self, *, usual_s: float) -> float:
        """Return the mean number of returns per second of a gone page."""
        return (self.found + PRIOR_RETURNS) / (self.gone_s + PRIOR_RETURNS * usual_s)

    def rate_within(self, site_rate: float) -> float:
        """Return the mean number of returns per second of a class of URLs, with the site's rate as the prior."""
        return (self.found + CLASS_RETURNS) / (self.gone_s + CLASS_RETURNS / site_rate)

    @property
    def spacing(self) -> float:
        """Return the factor, at least 1, by which the waits before requests of a site's dead URLs are lengthened.

        Among n dead URLs, each requested once so far, the n-th waits about √n times as long as the first.
        """
        return sqrt(max(1.0, self.urls / (SAMPLE + self.asked)))


def price_of_interval(interval_s: float, change_s: float) -> float:
    """Return the obsolete time, s, that a fetch saves, given the mean intervals between visits and between changes."""
    x = interval_s / change_s
    return change_s * (-expm1(-x) - x * exp(-x))


def time_to_return(rate: float, *, gone_s: float, price_s: float) -> float:
    """Return after how many seconds a request for a gone page is worth the price; inf if never.

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
