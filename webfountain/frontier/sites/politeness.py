"""How long to leave a site alone: the delay after a request, the back-off after a refusal, Retry-After.

One request at a time per site and per address, the next one after max(min_delay, factor x duration, Crawl-delay)
(Mercator's rule, Broder 2003; the Crawl-delay bounded by `max_delay`). A site that answers 429 or 503, or not at
all, or closes the connection on us, is left alone for a time that doubles with each refusal, jittered so that sites do
not come back in step.
"""

from __future__ import annotations

import email.utils
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

__all__ = ["LONGEST_BACKOFF_S", "SITE_ERRORS", "backoff", "delay_after", "page_backoff", "refuses", "retry_after"]

LONGEST_BACKOFF_S: Final = 86_400.0
"""A refusal, however often repeated and whatever Retry-After asks, is forgotten after a day: then we ask once."""

SITE_ERRORS: Final = frozenset({"dns", "private-address", "connect", "timeout", "network"})
"""Errors that say something of the whole site, not of one page."""


def delay_after(seconds: float, *, min_delay: float, factor: float, crawl_delay: float, max_delay: float) -> float:
    """Seconds to wait after a request that took `seconds`."""
    return max(min_delay, min(max(factor * seconds, crawl_delay), max_delay))


def refuses(status: int | None, error: str | None) -> bool:
    """Whether an answer asks us to leave the site alone (RFC 6585, RFC 9110 section 15.6.4), or none came whole."""
    return status in (429, 503) or error in SITE_ERRORS or error == "cut"


def backoff(failures: int, *, base: float, rng: random.Random) -> float:
    """Seconds for the `failures`-th refusal in a row (1, 2, …): base doubled each time, jittered by +-25 %."""
    doubled = base * 2.0 ** min(failures - 1, 40)
    return min(doubled, LONGEST_BACKOFF_S) * rng.uniform(0.75, 1.25)


def page_backoff(failures: int, *, period: float) -> float:
    """Seconds until a gone or failed page is asked again: 1 period, doubled each time, up to 180 periods."""
    return period * min(2.0 ** min(failures - 1, 40), 180.0)


def retry_after(value: str | None, *, at: float) -> float:
    """Seconds that a Retry-After header asks for, as number or date; 0 when absent, past or unreadable."""
    if value is None:
        return 0.0
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_BACKOFF_S)
    try:
        when = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(when - at, 0.0), LONGEST_BACKOFF_S)
