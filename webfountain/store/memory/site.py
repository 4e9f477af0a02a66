"""One site of the reference store: its pages, and its queues as sorted lists.

A queue is the lane `NEVER` or a recrawl lane; an entry sorts as it is served. Leases and the immediate queue are
not here: what they hold was taken off its queue.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webfountain.records import STATES, SiteRecord, SiteState
from webfountain.store.contract import LANES, lane_of, order_of
from webfountain.store.lanes import Candidate, choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import PageRecord

__all__ = ["NEVER", "Site", "dequeue", "enqueue", "first_due", "first_never", "site_record"]

NEVER: Final = -1
"""The lane number under which a site keeps its never-crawled queue."""
_Entry = tuple[float, int, bytes]


@dataclass(slots=True)
class Site:
    """One site: its pages, and what stands in which queue, in the order of service."""

    first_seen: float
    due: float
    pages: dict[bytes, PageRecord] = field(default_factory=dict)
    arrival: dict[bytes, int] = field(default_factory=dict)
    lanes: dict[int, list[_Entry]] = field(default_factory=dict)
    state: SiteState = field(default_factory=SiteState)
    active_until: float | None = None
    fresh: float = math.inf
    """When the first new URL came that no never-crawled lease has reached since (inf: none)."""


def _place(home: Site, key: bytes) -> tuple[int, _Entry]:
    record = home.pages[key]
    if record.state == "never-crawled":
        return NEVER, (-record.importance, home.arrival[key], key)
    return lane_of(record), (order_of(record), 0, key)


def enqueue(home: Site, key: bytes) -> None:
    """Put a page into the queue that its record names."""
    lane, entry = _place(home, key)
    insort(home.lanes.setdefault(lane, []), entry)


def dequeue(home: Site, key: bytes) -> None:
    """Take a page off the queue that its record names."""
    lane, entry = _place(home, key)
    queue = home.lanes[lane]
    del queue[bisect_left(queue, entry)]


def first_never(home: Site, n: int) -> list[bytes]:
    """Up to `n` keys of the never-crawled queue, in order of service."""
    return [entry[2] for entry in home.lanes.get(NEVER, [])[:n]]


def first_due(home: Site, n: int, horizon: Sequence[float] | None) -> list[bytes]:
    """Up to `n` keys of the recrawl lanes that are due."""
    if horizon is None or len(horizon) != LANES:
        raise ValueError(f"a recrawl lease needs a horizon of {LANES} times")
    due = [
        Candidate(lane, order, key)
        for lane, entries in home.lanes.items()
        if lane != NEVER
        for order, _, key in entries[:n]
        if order <= horizon[lane]
    ]
    return [candidate.key for candidate in choose(due, n, horizon)]


def site_record(name: str, home: Site) -> SiteRecord:
    """The site as the contract shows it."""
    states = [record.state for record in home.pages.values()]
    pages = tuple(states.count(state) for state in STATES)
    return SiteRecord(name, pages, home.due, home.first_seen, home.state)
