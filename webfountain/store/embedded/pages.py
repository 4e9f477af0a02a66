"""The page records of the embedded store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.store.codec import evicted
from webfountain.store.embedded.keys import NEVER, PAGE, RECRAWL, after, site_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.records import Move, PageRecord, SiteLease, State
    from webfountain.store.embedded.change_log import LocalChangeLog
    from webfountain.store.embedded.disk import WriteBatch
    from webfountain.store.embedded.page_rows import PagePlace
    from webfountain.store.embedded.steps import Steps

__all__ = ["EmbeddedPages"]


class EmbeddedPages:
    """Implementation of `PageRecords` in the embedded store."""

    def __init__(self, steps: Steps, changes: LocalChangeLog) -> None:
        self._steps = steps
        self._changes = changes

    def get(self, site: str, key: bytes) -> PageRecord | None:
        """Return the record of one URL, by one get, or two for a never-crawled page."""
        return self.get_many(site, [key])[0]

    def get_many(self, site: str, keys: Sequence[bytes]) -> list[PageRecord | None]:
        """Return the records of URLs of one site, by one or two multi-gets."""
        self._steps.sites.refresh()
        return [None if place is None else place.record for place in self._steps.pages.places(site, keys)]

    def records(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """List the records, by one scan."""
        return ((name, record) for name, _, record in self.keyed(site=site, state=state))

    def keyed(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, bytes, PageRecord]]:
        """List the records with their keys, by one scan."""
        self._steps.sites.refresh()
        return ((place.site, place.key, place.record) for place in self._steps.pages.listed(site, state))

    def part_of(self, site: str, cursor: bytes, n: int) -> tuple[list[PageRecord], bytes]:
        """Return up to `n` pages of a site in order of key, by a scan of `n` entries."""
        self._steps.sites.refresh()
        found, behind = self._steps.pages.part_of(site, cursor, n)
        return [place.record for place in found], behind

    def waiting(self, site: str, n: int) -> list[PageRecord]:
        """Return the first never-crawled URLs of a site, by two scans of up to `n` entries."""
        self._steps.sites.refresh()
        return self._steps.pages.waiting(site, n)

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """Remove a page or a site, and refuse links to it. Removing a site costs one scan of its pages and three range
        deletes.
        """
        with self._steps.begin() as batch:
            removed = self._forget_site(batch, site, at) if key is None else self._forget_page(batch, site, key, at)
        if key is None:
            self._steps.leases.leave(site)
        else:
            for lease in self._steps.leases.of_page(site, key):
                self._steps.leases.end(lease)
        return removed

    def evict(self, lease: SiteLease, keys: Sequence[bytes], *, at: float) -> int | None:
        """Remove pages from the collection, by one multi-get and four writes per page."""
        if self._steps.leases.under(lease) is None:
            return None
        if not keys:
            return 0
        with self._steps.begin() as batch:
            tried = [p for p in self._steps.free(lease.site, keys) if p.record.state != "never-crawled"]
            for place in tried:
                self._changes.note_parting(batch, place, "evicted", at)
                self._steps.replace(batch, place, evicted(place.record), arrival=self._steps.counts.next_arrival())
        return len(tried)

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        return self._steps.counts.present().copies(repository)

    def relocate(self, moves: Sequence[Move]) -> int:
        """Update the records of pages whose copies moved, by one get and one put per page."""
        if not moves:
            return 0
        followed: dict[tuple[str, bytes], PagePlace] = {}
        count = 0
        with self._steps.begin() as batch:
            for move in moves:
                place = followed.get((move.site, move.key)) or self._steps.pages.place(move.site, move.key)
                if place is not None and place.record.copy == move.old:
                    record = msgspec.structs.replace(place.record, copy=move.new)
                    followed[move.site, move.key] = self._steps.replace(batch, place, record)
                    count += 1
        for place in followed.values():
            self._steps.leases.follow(place.entry, place.record)
        return count

    def _forget_page(self, batch: WriteBatch, site: str, key: bytes, at: float) -> int:
        place = self._steps.pages.place(site, key)
        if place is not None:
            row = self._steps.site_row(site)
            self._steps.pages.remove(batch, place)
            self._changes.erase(batch, site, key)
            self._changes.note_parting(batch, place, "forgotten", at)
            self._steps.counts.remove(row, place.record)
            self._steps.sites.touch(site, row)
        self._steps.pages.bar(batch, site, key)
        return int(place is not None)

    def _forget_site(self, batch: WriteBatch, site: str, at: float) -> int:
        row, removed = self._steps.sites.row(site), 0
        if row:
            self._changes.erase(batch, site)
            for place in self._steps.pages.listed(site, None):
                self._steps.counts.remove(row, place.record)
                self._changes.note_parting(batch, place, "forgotten", at)
                removed += 1
            self._steps.sites.drop(batch, site, row)
            self._steps.counts.add_sites(-1)
        for family in (PAGE, NEVER, RECRAWL):
            batch.delete_range(family + site_id(site), after(family + site_id(site)))
        self._steps.sites.bar(batch, site)
        return removed
