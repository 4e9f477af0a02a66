"""The table of sites of the reference store, with the barred sites and the numbers of leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.store.memory.site import Holder, MemorySite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import SiteLease

__all__ = ["MemorySites"]


class MemorySites:
    """All sites, by name. The parts of the store share this table, the only one of its kind."""

    def __init__(self) -> None:
        self.fenced = 0
        """Number of steps whose site lease was lost."""
        self.latest = 0.0
        """Time of the latest step that had one, 0.0 before it."""
        self.barred_sites: set[str] = set()
        self.barred_pages: set[tuple[str, bytes]] = set()
        self._sites: dict[str, MemorySite] = {}
        self._tokens = 0
        self._numbers = 0
        self._arrivals = 0

    def __iter__(self) -> Iterator[MemorySite]:
        return iter(list(self._sites.values()))

    def __len__(self) -> int:
        return len(self._sites)

    def get(self, site: str) -> MemorySite | None:
        """Return a site, or None when it is unknown."""
        return self._sites.get(site)

    def __getitem__(self, site: str) -> MemorySite:
        return self._sites[site]

    def named(self, site: str | None) -> list[MemorySite]:
        """Return one site if it is known; for None, all sites."""
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
        """Forget a site, if it is known."""
        self._sites.pop(site, None)

    def is_barred(self, site: str, key: bytes) -> bool:
        """Return whether links to a page are refused."""
        return site in self.barred_sites or (site, key) in self.barred_pages

    def held(self, lease: SiteLease) -> MemorySite | None:
        """Return the site of a site lease, or None if the lease is lost; a lost one is counted."""
        site = self._sites.get(lease.site)
        if site is None or site.holder is None or site.holder.token != lease.token:
            self.fenced += 1
            return None
        return site

    def hold(self, site: MemorySite, owner: str, until: float) -> None:
        """Give a site to an owner, under a new token."""
        self._tokens += 1
        site.holder = Holder(owner, self._tokens, until)

    def next_number(self) -> int:
        """Return the number of the next URL lease."""
        self._numbers += 1
        return self._numbers

    def next_arrival(self) -> int:
        """Return the next number of arrival."""
        self._arrivals += 1
        return self._arrivals

    def skip_arrivals(self, last: int) -> None:
        """Make the next number of arrival greater than `last`."""
        self._arrivals = max(self._arrivals, last)
