"""How pages and sites leave the embedded store for good: everything of them goes, and a bar stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.store.embedded.keys import IMMEDIATE, NEVER, PAGE, RECRAWL, after, number, site_id

if TYPE_CHECKING:
    from webfountain.store.embedded.disk import Disk, WriteBatch
    from webfountain.store.embedded.leases import Leases
    from webfountain.store.embedded.ledger import Ledger
    from webfountain.store.embedded.pages import Pages
    from webfountain.store.embedded.sites import Sites

__all__ = ["Forgetting"]


class Forgetting:
    """Stages removals into a batch; the leases that are lost by them are the caller's to drop once it is written."""

    def __init__(self, disk: Disk, pages: Pages, sites: Sites, ledger: Ledger, leases: Leases) -> None:
        self._disk = disk
        self._pages = pages
        self._sites = sites
        self._ledger = ledger
        self._leases = leases

    def stage_page(self, batch: WriteBatch, site: str, key: bytes) -> int:
        """Bar one page and remove it if it is there; how many records go."""
        place = self._pages.place(site, key)
        row = self._sites.row(site)
        if place is not None and row:
            self._pages.remove(batch, place)
            self._ledger.remove(row, place.record)
            self._sites.touch(site, row)
        self._pages.bar(batch, site, key)
        self._leave_immediate(batch, site, key)
        return int(place is not None)

    def stage_site(self, batch: WriteBatch, site: str) -> int:
        """Bar a site and remove its pages: read once for the counts, gone in three range deletes."""
        row, removed = self._sites.row(site), 0
        if row:
            for place in self._pages.listed(site, None):
                self._ledger.remove(row, place.record)
                removed += 1
            self._sites.drop(batch, site, row)
            self._ledger.sites -= 1
        for family in (PAGE, NEVER, RECRAWL):
            batch.delete_range(family + site_id(site), after(family + site_id(site)))
        self._sites.bar(batch, site)
        self._leave_immediate(batch, site, None)
        return removed

    def _leave_immediate(self, batch: WriteBatch, site: str, key: bytes | None) -> None:
        for place in self._leases.immediate_places(site, key):
            batch.delete(IMMEDIATE + number(place))
