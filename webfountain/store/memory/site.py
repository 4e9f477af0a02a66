"""One site of the reference store: its pages, its queues as sorted lists, its leases.

The entries of a lane are sorted in the order in which they are leased. A leased page is in no lane.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from webfountain.records import STATES, Lease, LeaseId, PageRecord, SiteLease, SiteRecord, SiteState
from webfountain.store.lanes import CLASSES, LANES, Candidate, check_horizon, choose, class_of, recrawl_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.store.answers import ImportanceOf
    from webfountain.store.site_holder import SiteHolder

__all__ = ["MemorySite", "Queue"]

Queue = Literal["immediate", "never-crawled", "recrawl"]
Lane = tuple[Queue, int]
_Entry = tuple[float, bytes]
"""An entry of a lane: the sort value, and the page key."""
_IMMEDIATE: Final[Lane] = ("immediate", 0)


class MemorySite:
    """A site with its pages, lanes and leases."""

    def __init__(self, name: str, *, first_seen: float, due: float) -> None:
        self.name = name
        self.first_seen = first_seen
        self.due = due
        self.state = SiteState()
        self.learned = b""
        self.changed = 0.0
        self.parts: dict[int, bytes] = {}
        self.epoch = 0
        self.regrading: tuple[int, tuple[int, int]] | None = None
        """Epoch of a partly applied ranking, with the class and arrival number of the last processed URL."""
        self.holder: SiteHolder | None = None
        self.pages: dict[bytes, PageRecord] = {}
        self.arrival: dict[bytes, int] = {}
        self.lanes: dict[Lane, list[_Entry]] = {}
        self.leases: dict[int, Lease] = {}
        self._leased: set[bytes] = set()

    # ------------------------------------------------------------------ pages

    def add(self, key: bytes, record: PageRecord, arrival: int) -> None:
        """Add a page under an arrival number."""
        self.pages[key], self.arrival[key] = record, arrival
        self._enqueue(key)

    def replace(self, key: bytes, record: PageRecord) -> None:
        """Replace the record of a page, and move the page to its new place unless it is leased."""
        if key in self._leased:
            self.pages[key] = record
            return
        self._dequeue(key)
        self.pages[key] = record
        self._enqueue(key)

    def remove(self, key: bytes) -> None:
        """Remove a page, and end its lease."""
        if key in self._leased:
            self._leased.discard(key)
            self.leases = {number: lease for number, lease in self.leases.items() if lease.key != key}
        else:
            self._dequeue(key)
        del self.pages[key], self.arrival[key]

    def is_leased(self, key: bytes) -> bool:
        return key in self._leased

    def reweigh(self, keys: Sequence[bytes], importance: ImportanceOf) -> int:
        """Move never-crawled URLs to the lanes of their current importance; return how many moved."""
        moved = 0
        for key, value in zip(keys, importance([self.pages[key] for key in keys]), strict=True):
            record = self.pages[key]
            if class_of(value) != class_of(record.importance):
                self.replace(key, msgspec.structs.replace(record, importance=value))
                moved += 1
        return moved

    # ----------------------------------------------------------------- queues

    def first_immediate(self, n: int) -> list[bytes]:
        """Return up to `n` keys of the immediate lane, in order."""
        return [key for _, key in self.lanes.get(_IMMEDIATE, ())[:n]]

    def first_due(self, queue: Queue, n: int, horizon: Sequence[float] | None) -> list[bytes]:
        """Return the keys of up to `n` due URLs of a queue."""
        lanes = CLASSES if queue == "never-crawled" else LANES
        horizon = [math.inf] * lanes if horizon is None else horizon
        check_horizon(horizon, lanes)
        due: list[Candidate] = []
        for (of, lane), entries in self.lanes.items():
            if of == queue:
                offered = (self._candidate(queue, lane, entry) for entry in entries)
                due += islice(takewhile(lambda one: one.order <= horizon[one.lane], offered), n)
        return [one.key for one in choose(due, n, horizon)]

    def recrawl_heads(self) -> list[tuple[int, float]]:
        """Return (lane, sort value of the first entry) of each recrawl lane."""
        return sorted(
            (lane, entries[0][0]) for (queue, lane), entries in self.lanes.items() if queue == "recrawl" and entries
        )

    def waiting_after(self, place: tuple[int, int]) -> list[tuple[int, int, bytes]]:
        """Return the never-crawled entries after a class and arrival number, in order, as (class, arrival, key)."""
        entries = [
            (lane, int(arrival), key)
            for (of, lane), entries in self.lanes.items()
            if of == "never-crawled"
            for arrival, key in entries
        ]
        return sorted(entry for entry in entries if entry[:2] > place)

    def never_crawled(self) -> list[bytes]:
        """Return the keys of the never-crawled pages, first immediate pages, then lane by lane."""
        keys = [key for key, record in self.pages.items() if record.state == "never-crawled"]
        return sorted(keys, key=lambda key: (self.pages[key].immediate is None, *self._place(key)))

    # ----------------------------------------------------------------- leases

    def lease(self, key: bytes, number: int) -> Lease:
        """Lease a page to the owner of the site."""
        assert self.holder is not None, f"{self.name} is on no active list"
        self._dequeue(key)
        self._leased.add(key)
        record = msgspec.structs.replace(self.pages[key], immediate=None)
        lease = self.leases[number] = Lease(LeaseId(self.name, self.holder.token, number), key, record)
        return lease

    def leased(self, lease: LeaseId) -> Lease | None:
        """Return an open lease, or None if it has ended."""
        held = self.leases.get(lease.number)
        return held if held is not None and held.id == lease else None

    def end(self, lease: Lease, record: PageRecord | None = None) -> None:
        """End a lease, replace the page's record by `record` if given, and return the page to the queues."""
        del self.leases[lease.id.number]
        self._leased.discard(lease.key)
        if record is not None:
            self.pages[lease.key] = record
        self._enqueue(lease.key)

    def return_leases(self) -> int:
        """End all leases; return how many were open."""
        held = list(self.leases.values())
        for lease in held:
            self.end(lease)
        return len(held)

    # --------------------------------------------------------------- the site

    def due_sooner(self, due: float) -> None:
        """Make an inactive site due at `due`, unless it is due earlier."""
        if self.holder is None:
            self.due = min(self.due, due)

    def available(self) -> float:
        """Return the earliest time at which the site may be activated."""
        return self.due if self.holder is None else self.holder.until

    def record(self) -> SiteRecord:
        states = [record.state for record in self.pages.values()]
        return SiteRecord(
            site=self.name,
            pages=tuple(states.count(state) for state in STATES),
            due=self.due,
            first_seen=self.first_seen,
            state=self.state,
            owner=None if self.holder is None else self.holder.owner,
            immediate=sum(record.immediate is not None for record in self.pages.values()),
            epoch=self.epoch,
            learned=self.learned,
            changed=self.changed,
        )

    def site_lease(self) -> SiteLease:
        """Return the lease of the site's owner."""
        assert self.holder is not None, f"{self.name} is on no active list"
        return SiteLease(self.name, self.holder.token, self.holder.until, self.record())

    # ---------------------------------------------------------------- private

    def _candidate(self, queue: Queue, lane: int, entry: _Entry) -> Candidate:
        order, key = entry
        if queue == "never-crawled":
            return Candidate(lane, self.pages[key].first_seen, self.arrival[key], key)
        return Candidate(lane, order, 0, key)

    def _place(self, key: bytes) -> tuple[Lane, _Entry]:
        record = self.pages[key]
        if record.immediate is not None:
            return _IMMEDIATE, (record.immediate, key)
        if record.state == "never-crawled":
            return ("never-crawled", class_of(record.importance)), (self.arrival[key], key)
        lane, order = recrawl_place(record)
        return ("recrawl", lane), (order, key)

    def _enqueue(self, key: bytes) -> None:
        lane, entry = self._place(key)
        insort(self.lanes.setdefault(lane, []), entry)

    def _dequeue(self, key: bytes) -> None:
        lane, entry = self._place(key)
        entries = self.lanes[lane]
        del entries[bisect_left(entries, entry)]
