"""The interval after which a single request may be made again: `meta["revisit"]`.

Place in the walk: this module acts when a spider yields a request that the store knows. Usually such a request is
dropped. If its meta has an interval (seconds, or a text such as "12h" or "7d"), it is made again if it was last made at
least that long ago. With "always" it is made once in each run that yields it. "never" is the default, and overrides
WEBFOUNTAIN_RECRAWL. Under WEBFOUNTAIN_RECRAWL an interval replaces the one that was learned.
"""

from __future__ import annotations

import logging
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.policy.units import DURATION_FORM, Duration

if TYPE_CHECKING:
    from scrapy import Request

__all__ = ["ALWAYS", "NEVER", "revisit_of"]

logger = logging.getLogger(__name__)

KEY: Final = "revisit"
ALWAYS: Final = 0.0
NEVER: Final = inf
_reported: set[str] = set()


def revisit_of(request: Request) -> float | None:
    """Return the seconds after which a request may be made again; None if its meta has no interval.

    A value that is not an interval is logged once and ignored.
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
        _report(repr(given), request)
        return None


def _report(given: str, request: Request) -> None:
    if given not in _reported:
        _reported.add(given)
        logger.warning(
            'meta["revisit"] of %s is %s: allowed are "never", "always", seconds, or %s', request, given, DURATION_FORM
        )
