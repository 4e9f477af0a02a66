"""The lanes of a site's queues: the place of a page in them, and the choice of the due URLs that a lease takes.

A URL is in one lane of one queue, or it is leased. A leased URL returns to its place when its lease is released.

- *Immediate* has one lane, first come first served. A site is due `AT_ONCE` if it has immediate URLs that its ant has
  not received.
- *Never-crawled* has a lane for each class of importance (`class_of`, 0 the most important), in order of arrival.
- *Recrawl* has a lane for each bucket (0..255), ordered by `last_crawled`, oldest first. Two more lanes are ordered by
  an explicit time, `record.due`. ADVANCED contains crawled pages that an event made due (a sitemap, or a change of
  another page). RETRY contains gone, failed, refused and redirected pages, and crawled pages whose last attempts
  failed.

The caller decides which URLs are due: it passes a *horizon*, which contains a time for each lane. A URL in a recrawl
lane is due if its sort value, a time, is at or before the lane's time in the horizon. In the never-crawled queue,
`first_seen` is compared with the lane's time. A new plan changes only the horizon; no queue is rewritten.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webfountain.records import PageRecord

__all__ = [
    "ADVANCED",
    "AT_ONCE",
    "CLASSES",
    "IMMEDIATE",
    "LANES",
    "RETRY",
    "RETRY_SHARE",
    "Candidate",
    "check_horizon",
    "choose",
    "class_of",
    "recrawl_place",
]

CLASSES: Final = 64
"""Number of lanes of the never-crawled queue."""
_FIRST_CLASS: Final = 12
"""Binary logarithm of the least importance in class 0."""
_FIRST: Final = 2.0**_FIRST_CLASS
ADVANCED: Final = 256
RETRY: Final = 257
LANES: Final = 258
"""Number of lanes of the recrawl queue."""
IMMEDIATE: Final = 258
"""Number that `recrawl_place` returns for the immediate lane."""
RETRY_SHARE: Final = 10
"""While other lanes have due URLs, one leased recrawl URL in ten comes from RETRY, in small leases one of two to
nineteen (`choose`).
"""
AT_ONCE: Final = 0.0
"""Due time of a site with new immediate URLs; it sorts before all other due times."""


def class_of(importance: float) -> int:
    """Return the never-crawled lane of a URL with this importance: 0 for 2^12 and more, up to 63 for less than
    2^-19.
    """
    if not importance > 0.0:
        return CLASSES - 1
    if importance >= _FIRST:
        return 0
    mantissa, exponent = math.frexp(importance)
    found = 2 * (_FIRST_CLASS + 1 - exponent) - (mantissa * mantissa >= 0.5)
    return found if found < CLASSES else CLASSES - 1


def recrawl_place(record: PageRecord) -> tuple[int, float]:
    """Return the place of a page that was fetched at least once: its recrawl lane, or IMMEDIATE, and its sort value in
    the lane.

    Lanes of buckets are sorted by `last_crawled`, ADVANCED and RETRY by `due`, the immediate lane by arrival number. In
    each lane, the page with the lowest sort value goes first.
    """
    if record.immediate is not None:
        return IMMEDIATE, float(record.immediate)
    order = record.last_crawled if record.due is None else record.due
    order = 0.0 if order is None else order
    if record.state != "crawled" or record.failures:
        return RETRY, order
    return (record.bucket if record.due is None else ADVANCED), order


class Candidate(NamedTuple):
    """A due URL: its lane, its sort value in the lane, its arrival number (0 in the recrawl queue), its key."""

    lane: int
    order: float
    arrival: int
    key: bytes


def choose(due: Iterable[Candidate], n: int, horizon: Sequence[float]) -> list[Candidate]:
    """Return at most `n` due URLs. Those in ADVANCED come first and those in RETRY come last; in between, the longest
    overdue come first.

    While other lanes have due URLs, RETRY gets at most max(1, n // RETRY_SHARE) of the `n` places. If there is only one
    place (`n` is 1), it does not go to RETRY. URLs that are equally overdue are ordered by lane, then by arrival.
    """
    live: list[tuple[bool, float, int, int, float, bytes, Candidate]] = []
    dead: list[Candidate] = []
    for one in due:
        if one.lane == RETRY:
            dead.append(one)
        else:
            first = one.lane == ADVANCED
            overdue = one.order if first else one.order - horizon[one.lane]
            live.append((not first, overdue, one.lane, one.arrival, one.order, one.key, one))
    dead.sort(key=lambda one: (one.order, one.key))
    places = n if not live else max(1, n // RETRY_SHARE) if n > 1 else 0
    retried = dead[:places]
    live.sort()
    return [entry[-1] for entry in live[: n - len(retried)]] + retried


def check_horizon(horizon: Sequence[float], lanes: int) -> None:
    """Raise ValueError if the length of a horizon is not the number of lanes of its queue."""
    if len(horizon) != lanes:
        raise ValueError(f"a lease of this queue needs a horizon of {lanes} times, not {len(horizon)}")
