"""Atomic steps on an embedded store: the writes of a step and the changed counts are on disk together, or not at all.

`Steps` begins a step and writes its batch. `QueuedPages` adds a change of a page to the batch, with all that follows
from it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from webfountain.store.embedded.disk import WriteBatch
from webfountain.store.embedded.page_rows import PagePlace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.records import PageRecord
    from webfountain.store.embedded.counts import Counts
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.leases import Leases
    from webfountain.store.embedded.page_rows import PageRows
    from webfountain.store.embedded.side_files import NoLogEnd
    from webfountain.store.embedded.site_rows import SiteRow, SiteRows

__all__ = ["QueuedPages", "Steps"]


class Steps:
    """The write batches, one per step. After a failed write, rows and counts are read again."""

    def __init__(self, disk: Disk, *, sites: SiteRows, counts: Counts, log_end: NoLogEnd) -> None:
        self._disk = disk
        self._sites = sites
        self._counts = counts
        self._log_end = log_end

    @contextmanager
    def begin(self) -> Iterator[WriteBatch]:
        """Begin a step: the block fills a batch, which is written with the changed site rows and counts."""
        batch = WriteBatch(raw_mode=True)
        try:
            yield batch
            self._sites.stage(batch)
            self._counts.stage(batch)
            self._disk.write(batch)
        except BaseException:
            self._sites.load()
            self._counts.load()
            raise
        self._log_end.note(self._counts.changes)


class QueuedPages:
    """Adds such changes to a batch.

    The fronts of active sites move before the batch is written. If the write fails, the fronts are too early, which
    does no harm.
    """

    def __init__(self, pages: PageRows, sites: SiteRows, counts: Counts, leases: Leases) -> None:
        self._pages = pages
        self._sites = sites
        self._counts = counts
        self._leases = leases

    def site_row(self, site: str) -> SiteRow:
        """Return the row of a known site."""
        row = self._sites.row(site)
        assert row, f"{site} is in use and has no row"
        return row

    def is_leased(self, place: PagePlace) -> bool:
        """Return whether a page is leased."""
        return place.entry in self._leases.hidden

    def free(self, site: str, keys: Sequence[bytes]) -> list[PagePlace]:
        """Return the pages with these keys that are known and not leased. One or two multi-gets."""
        places = self._pages.places(site, list(dict.fromkeys(keys)))
        return [place for place in places if place is not None and not self.is_leased(place)]

    def replace(self, batch: WriteBatch, place: PagePlace, record: PageRecord, *, arrival: int = 0) -> PagePlace:
        """Give a page another record, and count it; return its new place. `arrival` is its number of arrival, if it is
        never-crawled.
        """
        row = self.site_row(place.site)
        self._counts.remove(row, place.record)
        self._counts.add(row, record)
        self._sites.touch(place.site, row)
        return self.move(batch, place, record, arrival=arrival)

    def move(self, batch: WriteBatch, place: PagePlace, record: PageRecord, *, arrival: int = 0) -> PagePlace:
        """Give a page another record that counts in the same way; return its new place."""
        if record.state == "never-crawled":
            entry = self._pages.replace_waiting(batch, place, record, arrival)
        else:
            entry = self._pages.replace(batch, place, record)
        self.note(place.site, entry)
        return PagePlace(place.site, place.key, entry, record)

    def note(self, site: str, entry: bytes) -> None:
        """Move the front of an active site back if a new queue entry is before it."""
        active = self._leases.active.get(site)
        if active is not None:
            active.queues.note(entry)
