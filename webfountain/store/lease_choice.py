"""Choose the due URLs that a lease takes: one rule for all stores and both queues.

A store offers up to n due URLs of each lane, and this module chooses among them. It does no I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webfountain.store.lanes import ADVANCED, RETRY, RETRY_SHARE

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
    """Return at most `n` of the due URLs: ADVANCED by order, then the other lanes by overdue time, then some of RETRY.

    While other lanes are due, RETRY gets at most max(1, n // RETRY_SHARE) places, and none in a lease of one URL. So
    dead pages wait for live pages, never the other way round. URLs that are overdue for equally long are ordered by
    lane, then by arrival. If the horizon is infinite, the never-crawled queue therefore gives its most important class
    first.
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
