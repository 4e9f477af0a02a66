"""Decide whether a request is made again.

A request that the store already knows is usually dropped. An interval in `meta["revisit"]` (seconds, or a text such as
"12h" or "7d") is the time after which the request may be made again. With `meta["revisit"]` = "always", the request is
made once in each run that yields it. With WEBFOUNTAIN_RECRAWL, an interval in `meta["revisit"]` replaces the learned
interval, and "never" means that the request is made only once.
"""

from __future__ import annotations

import logging
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.policy.units import DURATION_FORM, Duration

if TYPE_CHECKING:
    from scrapy import Request

__all__ = ["ALWAYS", "NEVER", "is_one_off", "revisit_of"]

logger = logging.getLogger(__name__)

KEY: Final = "revisit"
ALWAYS: Final = 0.0
NEVER: Final = inf
_reported: set[str] = set()


def revisit_of(request: Request) -> float | None:
    """Return after how many seconds a request may be made again, or None if its meta does not say.

    An invalid `meta["revisit"]` is logged once and ignored.
    """
    given = request.meta.get(KEY)
    if given is None:
        return None
    if given == "always":
        return ALWAYS
    if given == "never":
        return NEVER
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return float(given)
    try:
        return float(Duration.parse(given))
    except ValueError:
        if repr(given) not in _reported:
            _reported.add(repr(given))
            form = 'meta["revisit"] of %s is %r: allowed are "never", "always", seconds, or %s'
            logger.warning(form, request, given, DURATION_FORM)
        return None


def is_one_off(request: Request) -> bool:
    """Return whether a request is made only once, even with WEBFOUNTAIN_RECRAWL.

    The frontier does not repeat a request with `dont_filter`, because a callback will yield it anew; it repeats start
    requests.
    """
    is_start = request.meta.get("is_start_request") and not request.meta.get("retry_times")
    return request.dont_filter and not is_start
