"""The list of sites of the embedded store. Owners are kept in memory, the due times of inactive sites are kept on
disk."""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

import msgspec

from webfountain.errors import InputError
from webfountain.records import SiteLease
from webfountain.store.embedded.keys import CLOCK, META, Meta, pack_time, site_id
from webfountain.store.embedded.site_queues import SiteQueues
from webfountain.store.embedded.site_rows import IMMEDIATE_AT
from webfountain.store.site_orders import UNRANKED, cursor_of, place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import SiteRecord
    from webfountain.store.answers import ParkRequest
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.leases import LeasedSite
    from webfountain.store.embedded.steps import Steps
    from webfountain.store.site_orders import SiteOrder

__all__ = ["EmbeddedSites"]


class EmbeddedSites:
    """Implementation of `SiteList` in the embedded store."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteLease]:
        """Lease due sites, by one short scan, and two writes and three gets per site."""
        available = heapq.merge(self._steps.sites.due.first(n, at), sorted(self._steps.leases.ran_out(at)))
        return self._take([site for _, site in available][:n], owner, until, at)

    def enlist(self, sites: Sequence[str], *, owner: str, until: float, at: float) -> list[SiteLease]:
        """Of the named sites, lease those that have no owner, by two writes and three gets per site."""
        active = self._steps.leases.active
        known = [site for site in dict.fromkeys(sites) if self._steps.sites.row(site)]
        return self._take([s for s in known if s not in active or active[s].until <= at], owner, until, at)

    def renew(self, leases: Sequence[SiteLease], *, until: float) -> list[SiteLease]:
        """Extend site leases, without disk access."""
        held = [(lease, active) for lease in leases if (active := self._steps.leases.under(lease)) is not None]
        for _, active in held:
            active.until = until
        return [msgspec.structs.replace(lease, until=until) for lease, _ in held]

    def park(self, parked: Sequence[ParkRequest], *, at: float) -> int:
        """Take sites off the active list, by four writes per site."""
        leaving: dict[str, tuple[ParkRequest, LeasedSite]] = {}
        for one in parked:
            if one.lease.site in leaving:
                self._steps.leases.fenced += 1
            elif (active := self._steps.leases.under(one.lease)) is not None:
                leaving[one.lease.site] = one, active
        if not leaving:
            return 0
        with self._steps.begin() as batch:
            batch.put(CLOCK, pack_time(at))
            for site, (one, active) in leaving.items():
                returned = at if active.out else math.inf
                due = active.due_again(one.due, returned=returned)
                self._steps.sites.sleep(batch, site, self._steps.site_row(site), due)
                self._steps.sites.notes.put_state(batch, site, one.state)
        for site in leaving:
            self._steps.leases.leave(site)
        return len(leaving)

    def next_due(self) -> float | None:
        """Return the earliest time at which `activate` may return a site, by one seek and a check of each active
        site.
        """
        self._steps.sites.refresh()
        until = min((active.until for active in self._steps.leases.active.values()), default=math.inf)
        due = min(self._steps.sites.due.next(), until)
        return None if due == math.inf else due

    def urgent(self, owner: str) -> list[SiteLease]:
        """Return the owner's sites with immediate URLs, by a check of each active site."""
        waits = self._steps.counts.immediate > self._steps.leases.immediate_out
        return [
            self._lease_of(site)
            for site, active in sorted(self._steps.leases.active.items())
            if active.owner == owner
            and (active.overtaken or (waits and self._steps.site_row(site)[IMMEDIATE_AT] > active.immediate_out))
        ]

    def get(self, site: str) -> SiteRecord | None:
        """Return one site, by two multi-gets."""
        self._steps.sites.refresh()
        row = self._steps.sites.read_row(site)
        return self._steps.sites.record(site, row) if row else None

    def part(self, site: str, number: int) -> bytes | None:
        """Return a numbered part of a site's learned data, by one get."""
        self._steps.sites.refresh()
        return self._steps.sites.notes.part(site, number)

    def after(self, name: str, n: int) -> list[SiteRecord]:
        """Return sites in order of name, by one scan and a multi-get per site."""
        self._steps.sites.refresh()
        return self._steps.sites.after(name, n)

    def ranked(self, order: SiteOrder, cursor: str, n: int) -> list[tuple[str, SiteRecord]]:
        """Return sites in one of the `site_orders`, by one scan of `n` entries and two multi-gets per site."""
        self._steps.sites.refresh()
        rank, name = place_of(cursor)
        if order == "name":
            return [(cursor_of(bytes(8), record.site), record) for record in self._steps.sites.after(name, n)]
        if self._steps.disk.read_only and not is_ranked(self._steps.disk):
            raise InputError(UNRANKED)
        places = self._steps.sites.ranks.places(order, rank, name, n)
        rows = ((place, self._steps.sites.read_row(place[1])) for place in places)
        return [(cursor_of(*place), self._steps.sites.record(place[1], row)) for place, row in rows if row]

    def _take(self, names: Sequence[str], owner: str, until: float, at: float) -> list[SiteLease]:
        if not names:
            return []
        lost_by = {site: active.owner for site in names if (active := self._steps.leases.active.get(site)) is not None}
        with self._steps.begin() as batch:
            for site in names:
                self._steps.sites.wake(batch, site, self._steps.site_row(site), at, owner)
        for site in names:
            self._steps.leases.enter(
                site, owner, until, SiteQueues(self._steps.disk, site, site_id(site), self._steps.leases.hidden)
            )
        return [msgspec.structs.replace(self._lease_of(site), lost_by=lost_by.get(site)) for site in names]

    def _lease_of(self, site: str) -> SiteLease:
        active = self._steps.leases.active[site]
        return SiteLease(site, active.token, active.until, self._steps.sites.record(site, self._steps.site_row(site)))


def is_ranked(disk: Disk) -> bool:
    """Return whether a store has its index of sites."""
    value = disk.get(META)
    return value is not None and msgspec.msgpack.decode(value, type=Meta).is_ranked
