"""Which of a site's due pages a recrawl lease takes: one rule for all stores, over the heads of the lanes.

A store offers up to n due pages of each lane; the choice is made here. It reads and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webfountain.store.contract import ADVANCED, RETRY, RETRY_SHARE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Candidate", "choose"]


class Candidate(NamedTuple):
    """A due page: its lane, its order within the lane, its key."""

    lane: int
    order: float
    key: bytes


def choose(due: Iterable[Candidate], n: int, horizon: Sequence[float]) -> list[Candidate]:
    """At most `n` of the due pages: ADVANCED by order, then the buckets' by overdue time, then some of RETRY.

    While others are due RETRY gets at most max(1, n // RETRY_SHARE) places, and none of a lease of one: dead
    pages wait for live ones, never the other way round.
    """
    live: list[tuple[int, float, int, bytes, Candidate]] = []
    dead: list[Candidate] = []
    for one in due:
        if one.lane == RETRY:
            dead.append(one)
        else:
            first = one.lane == ADVANCED
            overdue = one.order if first else one.order - horizon[one.lane]
            live.append((not first, overdue, one.lane, one.key, one))
    dead.sort(key=lambda one: (one.order, one.key))
    places = n if not live else max(1, n // RETRY_SHARE) if n > 1 else 0
    retried = dead[:places]
    live.sort()
    return [entry[-1] for entry in live[: n - len(retried)]] + retried
