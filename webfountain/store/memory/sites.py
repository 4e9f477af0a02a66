"""The list of sites of the reference store, on one table that all its parts share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from webfountain.store.memory.site import MemorySite
from webfountain.store.site_holder import SiteHolder
from webfountain.store.site_orders import cursor_of, place_of, ranks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.records import SiteLease, SiteRecord
    from webfountain.store.answers import ParkRequest
    from webfountain.store.site_orders import SiteOrder

__all__ = ["MemorySiteList", "MemorySites"]


class MemorySites:
    """The table of all sites, by name, which the parts of the store share."""

    def __init__(self) -> None:
        self.fenced = 0
        """Number of steps that had no effect because their site lease was lost."""
        self.latest = 0.0
        """Time of the latest write, or 0.0 if nothing was written."""
        self.barred_sites: set[str] = set()
        self.barred_pages: set[tuple[str, bytes]] = set()
        self._sites: dict[str, MemorySite] = {}
        self._tokens = 0
        self._numbers = 0
        self.arrivals = 0
        """The last arrival number that a page received."""

    def __iter__(self) -> Iterator[MemorySite]:
        return iter(list(self._sites.values()))

    def __len__(self) -> int:
        return len(self._sites)

    def get(self, site: str) -> MemorySite | None:
        return self._sites.get(site)

    def __getitem__(self, site: str) -> MemorySite:
        return self._sites[site]

    def named(self, site: str | None) -> list[MemorySite]:
        """Return the named site if it is known, or all sites if no name is given."""
        if site is None:
            return list(self)
        return [self._sites[site]] if site in self._sites else []

    def in_order(self) -> list[MemorySite]:
        """Return all sites in order of name."""
        return [site for _, site in sorted(self._sites.items())]

    def add(self, site: str, *, first_seen: float, due: float) -> MemorySite:
        """Return a site; create it if it is unknown."""
        return self._sites.setdefault(site, MemorySite(site, first_seen=first_seen, due=due))

    def remove(self, site: str) -> None:
        self._sites.pop(site, None)

    def is_barred(self, site: str, key: bytes) -> bool:
        """Return whether links to a page are refused."""
        return site in self.barred_sites or (site, key) in self.barred_pages

    def held(self, lease: SiteLease) -> MemorySite | None:
        """Return the site of a site lease. If the lease is lost, return None and count the step in `fenced`."""
        site = self._sites.get(lease.site)
        if site is None or site.holder is None or site.holder.token != lease.token:
            self.fenced += 1
            return None
        return site

    def hold(self, site: MemorySite, owner: str, until: float) -> None:
        """Lease a site to an owner, under a new token."""
        self._tokens += 1
        site.holder = SiteHolder(owner, self._tokens, until)

    def next_number(self) -> int:
        """Return a new number for a URL lease."""
        self._numbers += 1
        return self._numbers

    def next_arrival(self) -> int:
        """Return the next arrival number."""
        self.arrivals += 1
        return self.arrivals


class MemorySiteList:
    """Implementation of `SiteList` in the reference store."""

    def __init__(self, sites: MemorySites) -> None:
        self._sites = sites

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteLease]:
        due = sorted((home.available(), home.name) for home in self._sites)
        return [self._take(self._sites[name], owner, until, at) for when, name in due[:n] if when <= at]

    def enlist(self, sites: Sequence[str], *, owner: str, until: float, at: float) -> list[SiteLease]:
        known = [home for name in sites if (home := self._sites.get(name)) is not None]
        free = [home for home in known if home.holder is None or home.available() <= at]
        return [self._take(home, owner, until, at) for home in free]

    def renew(self, leases: Sequence[SiteLease], *, until: float) -> list[SiteLease]:
        held = []
        for lease in leases:
            home = self._sites.held(lease)
            if home is not None and home.holder is not None:
                home.holder.until = until
                held.append(msgspec.structs.replace(lease, until=until))
        return held

    def park(self, parked: Sequence[ParkRequest], *, at: float) -> int:
        self._sites.latest = max(self._sites.latest, at)
        return sum(self._park_one(one, at) for one in parked)

    def next_due(self) -> float | None:
        first = min((home.available() for home in self._sites), default=math.inf)
        return None if first == math.inf else first

    def urgent(self, owner: str) -> list[SiteLease]:
        return [
            home.site_lease()
            for home in self._sites.in_order()
            if home.holder is not None
            and home.holder.owner == owner
            and (home.holder.overtaken or home.first_immediate(1))
        ]

    def get(self, site: str) -> SiteRecord | None:
        home = self._sites.get(site)
        return None if home is None else home.record()

    def part(self, site: str, number: int) -> bytes | None:
        home = self._sites.get(site)
        return None if home is None else home.parts.get(number)

    def after(self, name: str, n: int) -> list[SiteRecord]:
        names = sorted(home.name for home in self._sites if home.name > name)[:n]
        return [self._sites[each].record() for each in names]

    def ranked(self, order: SiteOrder, cursor: str, n: int) -> list[tuple[str, SiteRecord]]:
        place = place_of(cursor)
        found = sorted((_rank(record, order), record.site) for record in (home.record() for home in self._sites))
        return [(cursor_of(*each), self._sites[each[1]].record()) for each in found if each > place][:n]

    def _take(self, home: MemorySite, owner: str, until: float, at: float) -> SiteLease:
        home.return_leases()
        lost_by = None if home.holder is None else home.holder.owner
        home.due = min(home.due, at)
        self._sites.hold(home, owner, until)
        return msgspec.structs.replace(home.site_lease(), lost_by=lost_by)

    def _park_one(self, parked: ParkRequest, at: float) -> bool:
        home = self._sites.held(parked.lease)
        if home is None or home.holder is None:
            return False
        holder = home.holder
        returned = at if home.return_leases() else math.inf
        home.due = holder.due_again(parked.due, returned=returned)
        home.state, home.holder = parked.state, None
        return True


def _rank(record: SiteRecord, order: SiteOrder) -> bytes:
    *_, failed = record.pages
    return ranks_of(
        pages=sum(record.pages),
        failed=failed,
        due=record.due,
        changed=record.changed,
        is_active=record.owner is not None,
    )[order]
