"""Lease sites and pages: site leases are renewed, sites are activated, and pages are leased for active sites.

Place in the walk: the first step of a batch (renewals) and the last steps (sites, leases).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from webfountain.store.answers import Refill
from webfountain.store.lanes import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.worker.stage import Stages
    from webfountain.records import SiteLease
    from webfountain.store.answers import LeaseBatch
    from webfountain.store.contract import FrontierStore

__all__ = ["IMMEDIATE_BATCH", "LeaseSource", "Leasing", "StoreLeases"]

IMMEDIATE_BATCH: Final = 100
"""Largest number of immediate URLs of a site, and of sites with immediate URLs, that one batch takes."""


class LeaseSource(Protocol):
    """A source from which the pages of refills are leased."""

    def lease(self, refills: Sequence[Refill], *, at: float) -> list[LeaseBatch | None]:
        """Lease pages for each refill. The result is None if this process no longer holds the site."""
        ...


class StoreLeases:
    """Leases pages in the order of the store's queues."""

    def __init__(self, store: FrontierStore) -> None:
        self._store = store

    def lease(self, refills: Sequence[Refill], *, at: float) -> list[LeaseBatch | None]:
        """Lease pages in one step of the store. The result is None if this process no longer holds the site."""
        del at
        return self._store.queues.lease(refills)


class Leasing:
    """Leases the sites and pages of the process `owner`. Site leases last `lease_s` seconds."""

    def __init__(
        self, store: FrontierStore, *, stages: Stages, source: LeaseSource, owner: str, lease_s: float
    ) -> None:
        self._store = store
        self._stages = stages
        self._source = source
        self._owner = owner
        self._lease_s = lease_s

    def renew(self, batch: Batch, result: BatchResult) -> None:
        """Renew site leases. This comes first, because pages of a lost site must not be settled as if the site were
        still held.
        """
        result.renewed = self._store.sites.renew(batch.renewals, until=batch.at + self._lease_s)
        kept = {lease.site for lease in result.renewed}
        result.lost = [lease.site for lease in batch.renewals if lease.site not in kept]
        for lost in self._stages.lost:
            lost(result.lost)

    def activate(self, batch: Batch, result: BatchResult) -> bool:
        """Activate sites. Sites with new immediate URLs are activated even if there is no room, other sites only if
        there is.

        Return whether the result already has the current due time of the next site. An idle process reads it only
        once.
        """
        if batch.immediate:
            result.next_site_due = self._store.sites.next_due()
        if result.next_site_due == AT_ONCE:
            result.activated += self._activated(IMMEDIATE_BATCH, batch.at, due=AT_ONCE)
        if batch.room > 0:
            self._fill(batch, result)
        is_asked = batch.immediate and not result.activated
        if result.activated:
            for activated in self._stages.activated:
                result.activated = activated(result.activated, batch.at)
        return is_asked

    def lease(self, batch: Batch, result: BatchResult) -> None:
        """Lease immediate URLs first, then as many pages as the hands have room for."""
        # A site that was activated for its immediate URLs gets them now; later it might have been parked for lack of
        # URLs.
        if batch.immediate or any(lease.record.immediate for lease in result.activated):
            self._lease_immediate(batch, result)
        for before_lease in self._stages.before_lease:
            before_lease(batch, result)
        found = self._source.lease(batch.refills, at=batch.at)
        for refill, dealt in zip(batch.refills, found, strict=True):
            if dealt is None:
                result.lost.append(refill.lease.site)
            else:
                allowed = self._allowed(dealt, batch.at)
                result.dealt.append(allowed)
                result.counts["ant/leased"] += len(allowed.never_crawled) + len(allowed.recrawl)

    def _activated(self, many: int, at: float, *, due: float) -> list[SiteLease]:
        return self._store.sites.activate(many, owner=self._owner, until=at + self._lease_s, at=due)

    def _fill(self, batch: Batch, result: BatchResult) -> None:
        """Activate as many sites as there is room for: first those that a stage chooses, then those that have been due
        longest.
        """
        room, until = batch.room, batch.at + self._lease_s
        for choose in self._stages.choose:
            if chosen := choose(room):
                leases = self._store.sites.enlist(chosen, owner=self._owner, until=until, at=batch.at)
                result.activated += leases
                room -= len(leases)
        if room > 0:
            result.activated += self._activated(room, batch.at, due=batch.at)

    def _lease_immediate(self, batch: Batch, result: BatchResult) -> None:
        sites = self._store.sites.urgent(self._owner) if batch.holds_sites or result.activated else []
        refills = [Refill(lease, immediate=IMMEDIATE_BATCH) for lease in sites]
        for dealt in self._store.queues.lease(refills):
            if dealt is not None:
                leases = dealt.immediate
                for hurried in self._stages.hurried:
                    leases = hurried(leases)
                result.immediate[dealt.site] = leases
        result.immediate_left = bool(refills) and bool(self._store.sites.urgent(self._owner))

    def _allowed(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        """Return the leased pages that a site may request, and the number of pages withheld."""
        allowed = dealt
        for leased in self._stages.leased:
            allowed = leased(allowed, at)
        withheld = len(dealt.never_crawled) + len(dealt.recrawl) - len(allowed.never_crawled) - len(allowed.recrawl)
        return msgspec.structs.replace(allowed, withheld=withheld) if withheld else allowed
