"""Convert an embedded store to rows and back, for export, import and a change of format."""

from __future__ import annotations

import contextlib
import itertools
import logging
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import InputError
from webfountain.records import STATES, Change
from webfountain.store import transfer_rows
from webfountain.store.codec import encode_state
from webfountain.store.embedded.counts import Counts, counted_rows, log_bounds
from webfountain.store.embedded.disk import WriteBatch, open_writing
from webfountain.store.embedded.keys import (
    BAR,
    BARRED,
    CHANGE,
    CLOCK,
    FORMAT,
    IMPORTING,
    LEARNED,
    META,
    NAME,
    PAGE,
    REGRADE,
    STATE,
    VALUE,
    Meta,
    after,
    arrival_of,
    due_key,
    never_suffix,
    number,
    pack_time,
    place_of,
    site_id,
)
from webfountain.store.embedded.maintenance import latest
from webfountain.store.embedded.page_rows import PageRows
from webfountain.store.embedded.site_rows import SiteRows
from webfountain.store.lanes import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webfountain.records import SiteRecord
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.site_rows import SiteRow
    from webfountain.store.transfer_rows import Row

__all__ = ["disk_rows", "load_folder"]

_AT_ONCE: Final = 5000
_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Change)
logger = logging.getLogger(__name__)


def disk_rows(disk: Disk) -> Iterator[Row]:
    """Yield the content of a database in one pass, sites in order of name."""
    value = disk.get(META)
    if value is None:
        raise InputError(f"{disk.folder}: there is no store here; a crawl of a collection creates one")
    meta = msgspec.msgpack.decode(value, type=Meta)
    if meta.unit is not None or meta.correction is not None:
        raise InputError(
            f"{disk.folder}: a pass over the whole store was interrupted; a crawl finishes it, so start one first"
        )
    dropped, _ = log_bounds(disk)
    yield transfer_rows.Head(
        meta.collection, meta.period_s, meta.fastest_s, meta.log, dropped, latest=int(latest(disk) or 0)
    )
    for key, value in disk.scan(VALUE, after(VALUE)):
        yield transfer_rows.Value(key[1:].decode(), value)
    for (period, bucket), counts in counted_rows(disk):
        yield transfer_rows.CensusEntry(period, bucket, tuple(map(float, counts)))
    for key, _ in disk.scan(BARRED, after(BARRED)):
        yield transfer_rows.ForgottenKey(key[1:].decode())
    yield from _barred_pages(disk)
    sites, pages, active = SiteRows(disk), PageRows(disk), set(SiteRows(disk).active_on_disk())
    name = ""
    while found := sites.after(name, _AT_ONCE):
        for record in found:
            name = record.site
            due = AT_ONCE if name in active and record.immediate else record.due
            yield _site(disk, record, due)
            for of, part in sites.notes.parts(name):
                yield transfer_rows.Part(name, of, part)
            for place in pages.listed(name, None):
                waits = place.record.state == "never-crawled" and place.record.immediate is None
                yield transfer_rows.Page(name, place.key, place.record, arrival_of(place.entry) if waits else None)
    for _, value in disk.scan(CHANGE, after(CHANGE)):
        yield transfer_rows.ChangeEntry(_entry.decode(value))


def _barred_pages(disk: Disk) -> Iterator[Row]:
    unnamed = 0
    for key, value in disk.scan(PAGE, after(PAGE)):
        if value[:1] == BAR:
            name = value[1:] or disk.get(NAME + key[1:9])
            if name:
                yield transfer_rows.ForgottenKey(name.decode(), key[9:])
            unnamed += not name
    if unnamed:
        logger.warning("%s: %d forgotten pages of unknown sites are left out", disk.folder, unnamed)


def _site(disk: Disk, record: SiteRecord, due: float) -> Row:
    found = _regrading(disk, record.site)
    return transfer_rows.Site(
        record.site, record.first_seen, due, record.state, record.epoch, record.learned, found, record.changed
    )


def _regrading(disk: Disk, site: str) -> tuple[int, int, int] | None:
    kept = disk.get(REGRADE + site_id(site))
    return None if kept is None else (place_of(kept[:8]), kept[8], place_of(kept))


def load_folder(folder: Path, rows: Iterator[Row]) -> None:
    """Create an embedded store from rows, in a folder without a store. A call that was interrupted can be repeated.

    Raises
    ------
    InputError
        if there is a store in the folder.
    StoreHeld, StoreError
        if another process uses the folder, or the folder cannot be written.
    """
    head = transfer_rows.head_of(rows)
    with contextlib.closing(open_writing(folder)) as disk:
        value = disk.get(META)
        if value is not None and msgspec.msgpack.decode(value)[0] != IMPORTING:
            raise InputError(f"{folder}: there is a store already; an import needs a new one")
        meta = Meta(IMPORTING, head.collection, head.period_s, head.fastest_s, log=head.log)
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(b"", b"\xff")
        batch.put(META, _encode(meta))
        if head.latest:
            batch.put(CLOCK, pack_time(head.latest))
        disk.write(batch)
        loading = _StoreLoader(disk, head.dropped)
        while some := list(itertools.islice(rows, _AT_ONCE)):
            loading.take(some)
        batch = WriteBatch(raw_mode=True)
        batch.put(META, _encode(msgspec.structs.replace(meta, format=FORMAT, is_ranked=True)))
        disk.write(batch)


class _StoreLoader:
    """A loader that fills a store with rows, in batches."""

    def __init__(self, disk: Disk, dropped: int) -> None:
        self._disk = disk
        self._sites = SiteRows(disk)
        self._pages = PageRows(disk)
        self._counts = Counts(disk)
        self._counts.changes = self._counts.dropped = dropped
        self._is_dated = False  # site rows contain the times of last changes (only newer versions export them)
        self._row: SiteRow = []

    def take(self, rows: Sequence[Row]) -> None:
        batch = WriteBatch(raw_mode=True)
        for row in rows:
            match row:
                case transfer_rows.Page():
                    self._put_page(batch, row)
                case transfer_rows.Site():
                    self._put_site(batch, row)
                case transfer_rows.Part(site, of, part):
                    self._sites.notes.put_part(batch, site, of, part)
                case transfer_rows.ChangeEntry(change):
                    batch.put(CHANGE + number(change.sequence), _encode(change))
                    self._counts.changes = change.sequence
                    if not self._is_dated:
                        self._sites.ranks.note(change.site, change.at)
                case transfer_rows.ForgottenKey(site, None):
                    batch.put(BARRED + site.encode(), b"")
                case transfer_rows.ForgottenKey(site, bytes(key)):
                    batch.put(PAGE + site_id(site) + key, BAR + site.encode())
                case transfer_rows.CensusEntry(period, bucket, counts):
                    self._counts.count({(period, bucket): list(counts)})
                case transfer_rows.Value(name, value):
                    batch.put(VALUE + name.encode(), value)
        self._sites.stage(batch)
        self._counts.stage(batch)
        self._disk.write(batch)

    def _put_site(self, batch: WriteBatch, site: transfer_rows.Site) -> None:
        name, sid = site.site, site_id(site.site)
        self._row = [0] * len(STATES) + [site.due, site.first_seen, 0, site.epoch]
        self._sites.touch(name, self._row)
        self._counts.add_sites(1)
        batch.put(NAME + sid, name.encode())
        batch.put(due_key(site.due, name), b"")
        batch.put(STATE + sid, encode_state(site.state))
        if site.changed:
            self._is_dated = True
            self._sites.ranks.note(name, site.changed)
        if site.learned:
            batch.put(LEARNED + sid, site.learned)
        if site.regrading is not None:
            epoch, lane, arrival = site.regrading
            batch.put(REGRADE + sid, number(epoch) + never_suffix(lane, arrival))

    def _put_page(self, batch: WriteBatch, page: transfer_rows.Page) -> None:
        record, key = page.record, page.key
        self._counts.add(self._row, record)
        self._sites.touch(page.site, self._row)
        self._counts.arrivals = max(self._counts.arrivals, page.arrival or 0, record.immediate or 0)
        arrival = record.immediate or page.arrival or 0
        self._pages.put(batch, page.site, key, record, arrival=arrival)
