"""Add links that arrive to the store.

Unknown URLs get a record and a queue entry. Immediate URLs go before all others of their site.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from webfountain.store.codec import first_record
from webfountain.store.embedded.keys import site_id
from webfountain.store.embedded.page_rows import PagePlace
from webfountain.store.embedded.site_rows import BARRED_SITE
from webfountain.store.lanes import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import Link
    from webfountain.store.embedded.census import EmbeddedCensus
    from webfountain.store.embedded.counts import Counts
    from webfountain.store.embedded.disk import WriteBatch
    from webfountain.store.embedded.leases import Leases
    from webfountain.store.embedded.page_rows import PageRows
    from webfountain.store.embedded.queued_pages import QueuedPages
    from webfountain.store.embedded.site_rows import SiteRow, SiteRows

__all__ = ["Arrivals"]


class Arrivals:
    """Adds new URLs to a write batch."""

    def __init__(
        self,
        queued: QueuedPages,
        *,
        pages: PageRows,
        sites: SiteRows,
        counts: Counts,
        leases: Leases,
        census: EmbeddedCensus,
    ) -> None:
        self._queued = queued
        self._pages = pages
        self._sites = sites
        self._counts = counts
        self._leases = leases
        self._census = census

    def discover(
        self, batch: WriteBatch, links: Sequence[Link], at: float
    ) -> tuple[dict[bytes, tuple[Link, bytes]], list[int]]:
        """Add the links that are new to the batch. One multi-get, two puts per new URL.

        Return the new links by page key, as (link, queue entry), and the positions of the others.
        """
        sids = {site: site_id(site) for site in {link.site for link in links}}
        rows = {site: self._sites.row(site) for site in sids}
        fresh: dict[bytes, Link] = {}
        repeated: list[int] = []
        for nth, (link, (key, value)) in enumerate(zip(links, self._pages.values(links, sids), strict=True)):
            if value is None and key not in fresh and rows[link.site] is not BARRED_SITE:
                fresh[key] = link
            else:
                repeated.append(nth)
        staged = self._put_new(batch, fresh, at)
        for site, pages in Counter([link.site for link in fresh.values()]).items():
            self._count_new(batch, site, rows[site], pages, at)
        self._census.count_arrivals(sum(not link.source for link in fresh.values()), at)
        return staged, repeated

    def immediate(self, batch: WriteBatch, links: Sequence[Link], at: float) -> tuple[int, list[PagePlace]]:
        """Add URLs to the immediate lanes of their sites. One get per URL.

        Return the number of URLs that were not in these lanes before, and the places of those that are leased.
        """
        staged, _ = self.discover(batch, links, at)
        new = {
            (link.site, link.key): PagePlace(link.site, link.key, entry, first_record(link, at))
            for link, entry in staged.values()
        }
        put: set[tuple[str, bytes]] = set()
        overtaken: list[PagePlace] = []
        for link in links:
            name = link.site, link.key
            place = new.get(name) or self._pages.place(*name)
            if place is not None and name not in put and place.record.immediate is None:
                put.add(name)
                leased = self._queued.is_leased(place)
                turn = self._counts.next_arrival()
                record = msgspec.structs.replace(place.record, immediate=turn)
                place = self._queued.replace(batch, place, record, arrival=turn)
                if leased:
                    overtaken.append(place)
                else:
                    self._call_site(batch, place.site)
        return len(put), overtaken

    def _put_new(self, batch: WriteBatch, fresh: dict[bytes, Link], at: float) -> dict[bytes, tuple[Link, bytes]]:
        entries = self._pages.put_new(batch, fresh, arrival=self._counts.skip_arrivals(len(fresh)), at=at)
        staged = dict(zip(fresh, zip(fresh.values(), entries, strict=True), strict=True))
        active = self._leases.active
        for link, entry in staged.values():
            if link.site in active:
                active[link.site].queues.note(entry)
        return staged

    def _count_new(self, batch: WriteBatch, site: str, row: SiteRow | None, pages: int, at: float) -> None:
        if row is None:
            row = self._sites.add(batch, site, at)
            self._counts.add_sites(1)
        self._counts.add_new(row, pages)
        self._sites.touch(site, row)
        active = self._leases.active.get(site)
        if active is None:
            self._sites.due_sooner(batch, site, row, at)
        else:
            active.note_new(at)

    def _call_site(self, batch: WriteBatch, site: str) -> None:
        """Make the site of an immediate URL due at once, or if it is active, mark it for its ant."""
        active = self._leases.active.get(site)
        if active is None:
            self._sites.due_sooner(batch, site, self._queued.site_row(site), AT_ONCE)
        else:
            active.note_immediate()
