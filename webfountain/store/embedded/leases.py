"""Who holds what: the site leases and the URL leases under them. All of it in memory.

A lease only hides its page's queue entry, so a process that dies gives everything back by dying. Tokens and numbers
carry the number of the store's opening in their upper bits: one of before a crash is unknown ever after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import Lease, LeaseId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import PageRecord, SiteLease
    from webfountain.store.embedded.pages import Place
    from webfountain.store.embedded.queues import SiteQueues

__all__ = ["ActiveSite", "Held", "Leases"]

_GENERATION_BITS: Final = 40
"""10^12 leases an opening."""


@dataclass(slots=True)
class Held:
    """A URL lease that is out. `place.record` is the record as it is now, `handed` the one that was handed out: a copy
    can move meanwhile.
    """

    id: LeaseId
    place: Place
    handed: PageRecord


@dataclass(slots=True)
class ActiveSite:
    """An active site: who has it by which token until when, the fronts of its queues, and what is leased of it."""

    owner: str
    token: int
    until: float
    queues: SiteQueues
    fresh: float = math.inf
    """When the first new URL came that no never-crawled lease has reached since (inf: none)."""
    hurried: bool = False
    """Whether an immediate URL came that no immediate lease has reached since."""
    overtaken: bool = False
    """Whether a URL that is leased became immediate, and the owner does not know."""
    out: set[int] = field(default_factory=set)
    """Numbers of the URL leases under this site lease."""
    immediate_out: int = 0
    """How many of those come from the immediate lane."""


class Leases:
    """The active sites, the URL leases that are out, and the queue entries that those hide."""

    def __init__(self, generation: int) -> None:
        self.active: dict[str, ActiveSite] = {}
        self.hidden: set[bytes] = set()
        self.fenced = 0
        """Steps that named a site lease that was lost."""
        self.immediate_out = 0
        """URL leases from immediate lanes."""
        self._given = generation << _GENERATION_BITS
        self._held: dict[int, Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def under(self, lease: SiteLease) -> ActiveSite | None:
        """The active site of a site lease; None when the lease is lost, which is counted."""
        active = self.active.get(lease.site)
        if active is None or active.token != lease.token:
            self.fenced += 1
            return None
        return active

    def enter(self, site: str, owner: str, until: float, queues: SiteQueues) -> None:
        """Give a site to an owner, under a new token; who had it has lost it, and its URLs are back."""
        self.leave(site)
        self._given += 1
        self.active[site] = ActiveSite(owner, self._given, until, queues)

    def leave(self, site: str) -> None:
        """The site lease ends and with it the URL leases: their pages return to where they were."""
        active = self.active.pop(site, None)
        for number in () if active is None else active.out:
            self._drop(self._held.pop(number))

    def ran_out(self, at: float) -> list[tuple[float, str]]:
        """The active sites whose lease ran out at or before `at`, each after that time."""
        return [(active.until, site) for site, active in self.active.items() if active.until <= at]

    def get(self, lease: LeaseId) -> Held | None:
        """The URL lease of an id, None when it is not out."""
        held = self._held.get(lease.number)
        return held if held is not None and held.id == lease else None

    def hold(self, active: ActiveSite, place: Place) -> Lease:
        """Hand a page of an active site out."""
        self._given += 1
        record = place.record
        if record.immediate is not None:
            record = msgspec.structs.replace(record, immediate=None)
            active.immediate_out += 1
            self.immediate_out += 1
        name = LeaseId(place.site, active.token, self._given)
        self._held[self._given] = Held(name, place, record)
        active.out.add(self._given)
        self.hidden.add(place.entry)
        return Lease(name, place.key, record)

    def end(self, lease: LeaseId) -> bool:
        """A URL lease ends: its entry is gone from the queue, or stands there again. Whether it was out."""
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
        """The record behind a queue entry changed while it was out."""
        if entry in self.hidden:
            for held in self._held.values():
                if held.place.entry == entry:
                    held.place.record = record

    def overtake(self, place: Place) -> None:
        """A leased page became immediate: its entry moved to this place, where it stands when the lease is released."""
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
        """The lease of a page, where it is out."""
        active = self.active.get(site)
        for number in list(active.out) if active is not None else ():
            if self._held[number].place.key == key:
                yield self._held[number].id

    def _drop(self, held: Held) -> None:
        self.hidden.discard(held.place.entry)
        self.immediate_out -= held.place.record.immediate is not None
