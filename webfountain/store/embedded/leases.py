"""The leases of the embedded store, all in memory: site leases and the URL leases under them.

A lease only hides a queue entry in memory, and the entry stays on disk. All leases end if the process dies. The upper
bits of tokens and lease numbers count the openings of the store, so a lease from before a crash is never valid again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import Lease, LeaseId
from webfountain.store.site_holder import SiteHolder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import PageRecord, SiteLease
    from webfountain.store.embedded.page_rows import PagePlace
    from webfountain.store.embedded.site_queues import SiteQueues

__all__ = ["HeldLease", "LeasedSite", "Leases"]

_GENERATION_BITS: Final = 40
"""Number of low bits in a lease number: they count up to 10^12 leases between two openings of the store."""


@dataclass(slots=True)
class HeldLease:
    """An open URL lease.

    `place.record` is the page's current record. `handed` is the record that the ant received; it is outdated if the
    page's copy has moved since the lease.
    """

    id: LeaseId
    place: PagePlace
    handed: PageRecord


@dataclass(slots=True)
class LeasedSite(SiteHolder):
    """An active site: its owner, its queues, and its URL leases."""

    queues: SiteQueues = field(kw_only=True)
    out: set[int] = field(default_factory=set)
    """Lease numbers of the open URL leases of the site."""
    immediate_out: int = 0
    """Number of open URL leases of the site that came from the immediate lane."""


class Leases:
    """The active sites, the open URL leases, and the queue entries that they hide."""

    def __init__(self, generation: int) -> None:
        self.active: dict[str, LeasedSite] = {}
        self.hidden: set[bytes] = set()
        self.fenced = 0
        """Number of steps that had no effect because their site lease was lost."""
        self.settle_lost = 0
        """Number of outcomes that had no effect because their URL lease was lost."""
        self.immediate_out = 0
        """Number of open URL leases that came from immediate lanes."""
        self._given = generation << _GENERATION_BITS
        self._held: dict[int, HeldLease] = {}

    def __len__(self) -> int:
        return len(self._held)

    def under(self, lease: SiteLease) -> LeasedSite | None:
        """Return the active site of a site lease. If the lease is lost, return None and count the step in `fenced`."""
        active = self.active.get(lease.site)
        if active is None or active.token != lease.token:
            self.fenced += 1
            return None
        return active

    def enter(self, site: str, owner: str, until: float, queues: SiteQueues) -> None:
        """Lease a site to an owner, under a new token, and end the leases of a previous owner."""
        self.leave(site)
        self._given += 1
        self.active[site] = LeasedSite(owner, self._given, until, queues=queues)

    def leave(self, site: str) -> None:
        """End the site lease of a site and the URL leases under it."""
        active = self.active.pop(site, None)
        for number in () if active is None else active.out:
            self._drop(self._held.pop(number))

    def count_lost(self, outcomes: int) -> int:
        """Count outcomes whose lease was lost; return their number."""
        self.settle_lost += outcomes
        return outcomes

    def ran_out(self, at: float) -> list[tuple[float, str]]:
        """Return (deadline, name) of the active sites whose lease expired at or before `at`."""
        return [(active.until, site) for site, active in self.active.items() if active.until <= at]

    def get(self, lease: LeaseId) -> HeldLease | None:
        """Return an open URL lease, or None if it has ended."""
        held = self._held.get(lease.number)
        return held if held is not None and held.id == lease else None

    def hold(self, active: LeasedSite, place: PagePlace) -> Lease:
        """Lease a page of an active site."""
        self._given += 1
        record = place.record
        if record.immediate is not None:
            record = msgspec.structs.replace(record, immediate=None)
            active.immediate_out += 1
            self.immediate_out += 1
        name = LeaseId(place.site, active.token, self._given)
        self._held[self._given] = HeldLease(name, place, record)
        active.out.add(self._given)
        self.hidden.add(place.entry)
        return Lease(name, place.key, record)

    def end(self, lease: LeaseId) -> bool:
        """End a URL lease, and unhide its queue entry. Return whether the lease was open."""
        held = self.get(lease)
        if held is None:
            return False
        del self._held[lease.number]
        active = self.active[lease.site]
        active.out.discard(lease.number)
        active.immediate_out -= held.place.record.immediate is not None
        self._drop(held)
        return True

    def follow(self, entry: bytes, record: PageRecord) -> None:
        """Update the record that is kept with an open lease. `entry` is the queue entry of the leased page."""
        if entry in self.hidden:
            for held in self._held.values():
                if held.place.entry == entry:
                    held.place.record = record

    def overtake(self, place: PagePlace) -> None:
        """Record the new queue entry (`place.entry`) of a leased page that became immediate."""
        active = self.active[place.site]
        for lease in self.of_page(place.site, place.key):
            held = self._held[lease.number]
            self.hidden.discard(held.place.entry)
            self.hidden.add(place.entry)
            held.place = place
            active.overtaken = True
            active.immediate_out += 1
            self.immediate_out += 1

    def of_page(self, site: str, key: bytes) -> Iterator[LeaseId]:
        """Yield the open lease of a page, or nothing if there is none."""
        active = self.active.get(site)
        for number in list(active.out) if active is not None else ():
            if self._held[number].place.key == key:
                yield self._held[number].id

    def _drop(self, held: HeldLease) -> None:
        self.hidden.discard(held.place.entry)
        self.immediate_out -= held.place.record.immediate is not None
