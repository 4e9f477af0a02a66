"""The default store: RocksDB in one folder, one writer, no server.

Leases exist only in memory: a URL lease hides its queue entry, and `settle` deletes the entry. So after a crash no
lease has to be undone. There are no round trips; the docstrings of the parts give the reads and writes of each method.
One thread executes steps; another thread may read statistics, sites, pages and the census at the same time. A store
that is opened for reading answers every query from an up-to-date view, and refuses every step. It knows no leases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.records import STATES
from webfountain.store.embedded.census import EmbeddedCensus
from webfountain.store.embedded.change_log import LocalChangeLog
from webfountain.store.embedded.counts import Counts
from webfountain.store.embedded.keys import (
    DUE,
    NAME,
    NEVER,
    PAGE,
    RANK,
    RANKED,
    RECRAWL,
    VALUE,
    after,
    due_key,
    site_id,
)
from webfountain.store.embedded.maintenance import recount
from webfountain.store.embedded.page_rows import PagePlace, PageRows
from webfountain.store.embedded.pages import EmbeddedPages
from webfountain.store.embedded.queues import EmbeddedQueues
from webfountain.store.embedded.site_ranks import RankedValues
from webfountain.store.embedded.sites import EmbeddedSites
from webfountain.store.embedded.steps import Steps
from webfountain.store.embedded.transfer import disk_rows
from webfountain.store.shared_contract import NoLives

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from webfountain.records import SiteRecord
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.keys import Meta
    from webfountain.store.embedded.leases import Leases
    from webfountain.store.embedded.side_files import NoLogEnd
    from webfountain.store.embedded.site_rows import SiteRows
    from webfountain.store.shared_contract import FeedForm
    from webfountain.store.transfer_rows import Row

__all__ = ["EmbeddedBoard", "EmbeddedStore", "check_disk"]


class EmbeddedBoard:
    """The `Board` of the embedded store."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def value(self, name: str) -> bytes | None:
        """Return the current value of a name. One get."""
        self._steps.disk.refresh()
        return self._steps.disk.get(VALUE + name.encode())

    def put_value(self, name: str, value: bytes) -> None:
        """Publish a value. One put."""
        with self._steps.begin() as batch:
            batch.put(VALUE + name.encode(), value)

    def settle_value(self, name: str, value: bytes) -> bytes:
        """Publish a value if there is none. One get, and a put the first time. This is atomic because there is only one
        writer.
        """
        before = self.value(name)
        if before is None:
            self.put_value(name, value)
        return value if before is None else before


class EmbeddedStore:
    """The `FrontierStore` on an open disk. `log_end` stores the number of the change log's newest entry."""

    def __init__(self, disk: Disk, meta: Meta, log_end: NoLogEnd) -> None:
        self.claims = None  # for one process only
        self.lives = NoLives()  # a loss of its disk is noticed when the store is opened
        self._log_end = log_end
        self._steps = steps = Steps(disk, generation=meta.generation, log_end=log_end)
        self.census = EmbeddedCensus(steps, period_s=meta.period_s, fastest_s=meta.fastest_s)
        self.changes = LocalChangeLog(steps, meta.log)
        self.queues = EmbeddedQueues(steps, census=self.census, changes=self.changes)
        self.sites = EmbeddedSites(steps)
        self.pages = EmbeddedPages(steps, self.changes)
        self.board = EmbeddedBoard(steps)

    def feed(self, key: str | None = None, form: FeedForm = "list") -> None:
        """Return None, because there is no server."""

    def rows(self) -> Iterator[Row]:
        """Yield the content of the store. One scan. A store opened for reading yields its content as of the beginning
        of the scan.
        """
        self._steps.sites.refresh()
        return disk_rows(self._steps.disk)

    def recount(self) -> None:
        """Compute the counts again. It reads every page."""
        recount(self._steps)

    def close(self) -> None:
        """Close the disk. After that, a power failure loses nothing."""
        self._steps.disk.close()
        self._log_end.close()

    def check_valid(self) -> None:
        """Assert the invariants between two steps."""
        check_disk(self._steps.disk, self._steps.sites, self._steps.leases)


def check_disk(disk: Disk, sites: SiteRows, leases: Leases) -> None:
    """Assert that every page is in exactly one queue, every site in one list, and that all counts are correct."""
    places = list(PageRows(disk).listed(None, None))
    queued = {key for family in (NEVER, RECRAWL) for key, _ in disk.scan(family, after(family))}
    assert queued == {place.entry for place in places}, "a page stands in no queue, or an entry has no page"
    assert len(queued) == len(places), "two pages share a queue entry"
    assert leases.hidden <= queued, "a lease hides an entry that is not there"
    out = [number for active in leases.active.values() for number in active.out]
    assert len(out) == len(leases) == len(leases.hidden), "a lease has no site lease, or a URL is leased twice"
    _check_sites(disk, sites, leases.active, places)
    _check_counts(Counts(disk), places)


def _check_sites(disk: Disk, sites: SiteRows, active: Collection[str], places: list[PagePlace]) -> None:
    names = {value.decode() for _, value in disk.scan(NAME, after(NAME))}
    assert {place.site for place in places} <= names
    assert sorted(active) == sites.active_on_disk()
    due = {key for key, _ in disk.scan(DUE, after(DUE))}
    records = {record.site: record for record in sites.after("", len(names) + 1)}
    assert set(records) == names
    assert due == {due_key(record.due, name) for name, record in records.items() if name not in active}
    _check_ranks(disk, records.values())
    for name, record in records.items():
        states = [place.record.state for place in places if place.site == name]
        urgent = [place.record.immediate for place in places if place.site == name]
        assert record.immediate == sum(each is not None for each in urgent), f"{name}: wrong count of immediate URLs"
        assert record.pages == tuple(states.count(state) for state in STATES), f"{name}: wrong counts"
        sid = site_id(name)
        assert sum(1 for _ in disk.scan(PAGE + sid, after(PAGE + sid))) >= len(states)


def _check_ranks(disk: Disk, records: Iterable[SiteRecord]) -> None:
    index = {key for key, _ in disk.scan(RANK, after(RANK))}
    found = [(each.site.encode(), RankedValues(sum(each.pages), each.pages[-1], each.changed)) for each in records]
    assert index == {key for name, values in found for key in values.keys(name)}, "a site is listed in a wrong place"
    assert sum(1 for _ in disk.scan(RANKED, after(RANKED))) == len(found)


def _check_counts(counts: Counts, places: list[PagePlace]) -> None:
    states = [place.record.state for place in places]
    assert counts.pages == [states.count(state) for state in STATES]
    buckets = [place.record.bucket for place in places if place.record.state == "crawled"]
    assert {bucket: row.pages for bucket, row in counts.census().items()} == {
        bucket: buckets.count(bucket) for bucket in buckets
    }
    assert counts.immediate == sum(place.record.immediate is not None for place in places)
    copies = [place.record.copy for place in places if place.record.copy is not None]
    for repository in {copy.repository for copy in copies} | {0}:
        files = [copy.file for copy in copies if copy.repository == repository]
        assert counts.copies(repository) == {file: files.count(file) for file in files}
