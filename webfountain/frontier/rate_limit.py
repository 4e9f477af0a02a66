"""The present limit on the rate of a crawl, in words: the budget, politeness, robots.txt, slow reading, nothing due.

It is not part of the walk. The display shows the text, and the store keeps it for `status`. It decides nothing. The
causes are checked in the order in which `Frontier.next` meets them, so the first that applies is the actual limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from webfountain.frontier.sites.statistics import ActiveListStatistics
    from webfountain.store.contract import Board

__all__ = ["LIMIT", "RateLimit", "limit_words", "published_limit"]

LIMIT: Final = "rate-limit"
"""Name of the published value."""


class RateLimit(msgspec.Struct, frozen=True, array_like=True):
    """The last reported limit of a process, with its time in UTC seconds."""

    at: float
    words: str


def published_limit(board: Board) -> RateLimit | None:
    """Return the last published limit of a crawl; None before the first."""
    value = board.value(LIMIT)
    return None if value is None else msgspec.msgpack.decode(value, type=RateLimit)


def limit_words(hold: str | None, sites: ActiveListStatistics) -> str:
    """Return a text that says what limits the rate.

    Parameters
    ----------
    hold : why the process itself hands out nothing now (`Progress.hold`); None: it hands out fetches
    """
    if hold is not None:
        return hold
    if not sites.sites or (not sites.in_flight and sites.quiet >= sites.sites):
        return "nothing is due"
    if sites.preparing >= sites.sites:
        return "it waits for robots.txt and addresses"
    if sites.in_flight:
        return "politeness: sites wait for their turn or for answers"
    return "politeness: the sites rest between two requests"
