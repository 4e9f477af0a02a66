"""Sites in memory: the active ones, and some that were parked recently, because many become active again in the same
step.

A parked site stays in memory while there is room, although all that it learned is in the store. So it need not be read
again, and its pages can be made due when the price falls.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.frontier.planning.urgent_site import UrgentSite
    from webfountain.records import SiteLease

__all__ = ["SitesInMemory"]

RESTED: Final = 200_000
"""Largest number of pages of all parked sites together that stay in memory."""


class SitesInMemory:
    """Sites by name."""

    def __init__(self) -> None:
        self.active: dict[str, UrgentSite] = {}
        self.leases: dict[str, SiteLease] = {}
        """Leases of the active sites."""
        self.rested: dict[str, UrgentSite] = {}
        """Parked sites, the newest last."""
        self._rested_pages = 0

    def items(self) -> Iterator[tuple[str, UrgentSite]]:
        """Return all sites by name, the active ones first."""
        return chain(self.active.items(), self.rested.items())

    def put(self, lease: SiteLease, site: UrgentSite) -> None:
        """Make a site active, and replace its earlier state."""
        self.active[lease.site], self.leases[lease.site] = site, lease

    def wake(self, name: str) -> UrgentSite | None:
        """Remove and return a parked site that becomes active; None if it is not in memory."""
        found = self.rested.pop(name, None)
        if found is not None:
            self._rested_pages -= len(found)
        return found or self.active.get(name)

    def rest(self, name: str) -> None:
        """Record that a site was parked. If there is no room, the sites that were parked first are dropped."""
        site = self.active.pop(name)
        self.leases.pop(name, None)
        site.rest()
        self.wake(name)
        self.rested[name] = site
        self._rested_pages += len(site)
        while self._rested_pages > RESTED:
            self.wake(next(iter(self.rested)))
