"""Atomic steps on an embedded store: all writes of a step reach the disk together, or not at all."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from webfountain.store.embedded.counts import Counts
from webfountain.store.embedded.disk import WriteBatch
from webfountain.store.embedded.leases import Leases
from webfountain.store.embedded.page_rows import PagePlace, PageRows
from webfountain.store.embedded.site_rows import SiteRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.records import PageRecord
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.side_files import NoLogEnd
    from webfountain.store.embedded.site_rows import SiteRow

__all__ = ["Steps"]


class Steps:
    """The tables of an open store, with one write batch per step. After a failed write, rows and counts are read again.

    The batch of a changed page contains its record, its queue entry, and the counts of its site and of the store.
    `generation` counts the openings of the store.
    """

    def __init__(self, disk: Disk, *, generation: int, log_end: NoLogEnd) -> None:
        self.disk = disk
        self.pages = PageRows(disk)
        self.sites = SiteRows(disk)
        self.counts = Counts(disk)
        self.leases = Leases(generation)
        self._log_end = log_end

    @contextmanager
    def begin(self) -> Iterator[WriteBatch]:
        """Run a step: the `with` block fills a batch, which is then written together with the changed site rows and
        counts.
        """
        batch = WriteBatch(raw_mode=True)
        try:
            yield batch
            self.sites.stage(batch)
            self.counts.stage(batch)
            self.disk.write(batch)
        except BaseException:
            self.sites.load()
            self.counts.load()
            raise
        self._log_end.note(self.counts.changes)

    def site_row(self, site: str) -> SiteRow:
        """Return the row of a known site."""
        row = self.sites.row(site)
        assert row, f"{site} is in use and has no row"
        return row

    def is_leased(self, place: PagePlace) -> bool:
        return place.entry in self.leases.hidden

    def free(self, site: str, keys: Sequence[bytes]) -> list[PagePlace]:
        """Return the pages with these keys that are known and not leased, by one or two multi-gets."""
        places = self.pages.places(site, list(dict.fromkeys(keys)))
        return [place for place in places if place is not None and not self.is_leased(place)]

    def replace(self, batch: WriteBatch, place: PagePlace, record: PageRecord, *, arrival: int = 0) -> PagePlace:
        """Replace the record of a page, and update the counts; return the page with its new queue entry. `arrival` is
        the arrival number of a never-crawled page.
        """
        row = self.site_row(place.site)
        self.counts.remove(row, place.record)
        self.counts.add(row, record)
        self.sites.touch(place.site, row)
        return self.move(batch, place, record, arrival=arrival)

    def move(self, batch: WriteBatch, place: PagePlace, record: PageRecord, *, arrival: int = 0) -> PagePlace:
        """Replace the record of a page without updating the counts; return the page with its new queue entry."""
        entry = self.pages.put(batch, place.site, place.key, record, arrival=arrival, before=place.entry)
        if (active := self.leases.active.get(place.site)) is not None:
            active.queues.note(entry)  # before the write: if that fails, the lane's front is too early, without harm
        return PagePlace(place.site, place.key, entry, record)
