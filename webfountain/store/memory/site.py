"""One site of the reference store: its pages, and its queues as sorted lists.

A lane is named by its queue and its number in it; an entry sorts as it is served. What is leased was taken off.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, Literal

from webfountain.records import STATES, SiteRecord, SiteState
from webfountain.store.contract import CLASSES, LANES, class_of, lane_of, order_of
from webfountain.store.lanes import Candidate, choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import PageRecord

__all__ = ["Holder", "Queue", "Site", "dequeue", "enqueue", "first_due", "first_immediate", "in_class", "site_record"]

Queue = Literal["immediate", "never-crawled", "recrawl"]
Lane = tuple[Queue, int]
_Entry = tuple[float, bytes]
"""Order of service within the lane, page key."""
_IMMEDIATE: Final[Lane] = ("immediate", 0)


@dataclass(slots=True)
class Holder:
    """Who has a site: by which token, until when, and what came meanwhile that no lease has reached."""

    owner: str
    token: int
    until: float
    fresh: float = math.inf
    """When the first new URL came that no never-crawled lease has reached since (inf: none)."""
    hurried: bool = False
    """Whether an immediate URL came that no immediate lease has reached since."""
    overtaken: bool = False
    """Whether a URL that is leased became immediate, and the owner does not know."""


@dataclass(slots=True)
class Site:
    """One site: its pages, and what stands in which lane, in the order of service."""

    first_seen: float
    due: float
    pages: dict[bytes, PageRecord] = field(default_factory=dict)
    arrival: dict[bytes, int] = field(default_factory=dict)
    lanes: dict[Lane, list[_Entry]] = field(default_factory=dict)
    state: SiteState = field(default_factory=SiteState)
    learned: bytes = b""
    epoch: int = 0
    regrading: tuple[int, tuple[int, int]] | None = None
    """The epoch that is being brought in, and class and arrival of the URL that it has come to."""
    holder: Holder | None = None


def _place(home: Site, key: bytes) -> tuple[Lane, _Entry]:
    record = home.pages[key]
    if record.immediate is not None:
        return _IMMEDIATE, (record.immediate, key)
    if record.state == "never-crawled":
        return ("never-crawled", class_of(record.importance)), (home.arrival[key], key)
    return ("recrawl", lane_of(record)), (order_of(record), key)


def enqueue(home: Site, key: bytes) -> None:
    """Put a page into the lane that its record names."""
    lane, entry = _place(home, key)
    insort(home.lanes.setdefault(lane, []), entry)


def dequeue(home: Site, key: bytes) -> None:
    """Take a page off the lane that its record names."""
    lane, entry = _place(home, key)
    entries = home.lanes[lane]
    del entries[bisect_left(entries, entry)]


def first_immediate(home: Site, n: int) -> list[bytes]:
    """Up to `n` keys of the immediate lane, in order."""
    return [key for _, key in home.lanes.get(_IMMEDIATE, ())[:n]]


def first_due(home: Site, queue: Queue, n: int, horizon: Sequence[float] | None) -> list[bytes]:
    """Up to `n` keys of a queue that are due."""
    lanes = CLASSES if queue == "never-crawled" else LANES
    horizon = [math.inf] * lanes if horizon is None else horizon
    if len(horizon) != lanes:
        raise ValueError(f"a lease of the {queue} queue needs a horizon of {lanes} times, not {len(horizon)}")
    due: list[Candidate] = []
    for (of, lane), entries in home.lanes.items():
        if of == queue:
            offered = (_candidate(home, queue, lane, entry) for entry in entries)
            due += islice(takewhile(lambda one: one.order <= horizon[one.lane], offered), n)
    return [one.key for one in choose(due, n, horizon)]


def _candidate(home: Site, queue: Queue, lane: int, entry: _Entry) -> Candidate:
    order, key = entry
    if queue == "never-crawled":
        return Candidate(lane, home.pages[key].first_seen, home.arrival[key], key)
    return Candidate(lane, order, 0, key)


def in_class(home: Site, after: tuple[int, int]) -> list[tuple[int, int, bytes]]:
    """The never-crawled entries after a class and arrival, in the order of service: (class, arrival, key)."""
    entries = [
        (lane, int(arrival), key)
        for (of, lane), entries in home.lanes.items()
        if of == "never-crawled"
        for arrival, key in entries
    ]
    return sorted(entry for entry in entries if entry[:2] > after)


def site_record(name: str, home: Site) -> SiteRecord:
    """The site as the contract shows it."""
    states = [record.state for record in home.pages.values()]
    return SiteRecord(
        site=name,
        pages=tuple(states.count(state) for state in STATES),
        due=home.due,
        first_seen=home.first_seen,
        state=home.state,
        owner=None if home.holder is None else home.holder.owner,
        immediate=sum(record.immediate is not None for record in home.pages.values()),
        epoch=home.epoch,
        learned=home.learned,
    )
