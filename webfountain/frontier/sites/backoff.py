"""How long a site is left alone: the delay after a request, the back-off after a refusal, Retry-After."""

from __future__ import annotations

import email.utils
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

__all__ = ["LONGEST_BACKOFF_S", "SITE_ERRORS", "backoff", "delay_after", "page_backoff", "refuses", "retry_after"]

LONGEST_BACKOFF_S: Final = 86_400.0
"""Longest back-off, s: one day, however often a refusal is repeated and whatever Retry-After says."""

SITE_ERRORS: Final = frozenset({"dns", "private-address", "connect", "tls", "certificate", "timeout", "network"})
"""Errors that concern the whole site, not only one page."""


def delay_after(seconds: float, *, min_delay: float, factor: float, crawl_delay: float, max_delay: float) -> float:
    """Return the seconds to wait after a request that took `seconds`."""
    return max(min_delay, min(max(factor * seconds, crawl_delay), max_delay))


def refuses(status: int | None, error: str | None) -> bool:
    """Return whether an answer refuses requests (RFC 6585, RFC 9110 section 15.6.4), or no complete answer came."""
    return status in (429, 503) or error in SITE_ERRORS or error == "cut"


def backoff(failures: int, *, base: float, rng: random.Random) -> float:
    """Return the seconds to wait after the `failures`-th refusal in a row (1, 2, …): base doubled each time, jittered
    by +-25 %.
    """
    doubled = base * 2.0 ** min(failures - 1, 40)
    return min(doubled, LONGEST_BACKOFF_S) * rng.uniform(0.75, 1.25)


def page_backoff(failures: int, *, period: float) -> float:
    """Return the seconds until a gone or failed page is requested again: 1 period, doubled each time, up to 180
    periods.
    """
    return period * min(2.0 ** min(failures - 1, 40), 180.0)


def retry_after(value: str | None, *, at: float) -> float:
    """Return the seconds of a Retry-After header, a number or a date; 0 if it is absent, past or unreadable."""
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
