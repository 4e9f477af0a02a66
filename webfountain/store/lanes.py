"""Which of a site's due URLs a lease takes: one rule for all stores and both queues, over the heads of the lanes.

A store offers up to n due URLs of each lane; the choice is made here. It reads and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webfountain.store.contract import ADVANCED, RETRY, RETRY_SHARE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Candidate", "choose"]


class Candidate(NamedTuple):
    """A due URL: its lane, its order within the lane, its number of arrival (0 in the recrawl queue), its key."""

    lane: int
    order: float
    arrival: int
    key: bytes


def choose(due: Iterable[Candidate], n: int, horizon: Sequence[float]) -> list[Candidate]:
    """At most `n` of the due URLs: ADVANCED by order, then the other lanes by overdue time, then some of RETRY.

    While others are due RETRY gets at most max(1, n // RETRY_SHARE) places, and none of a lease of one: dead
    pages wait for live ones, never the other way round. What is overdue alike goes by lane, then by arrival: with a
    horizon of infinities the never-crawled queue gives its most important class first.
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
