"""The embedded store's counts: pages by state, buckets, census rows, copies, kept while they are written.

What a step touches is staged into its batch, so counts and pages never disagree on disk. A step that fails
is undone by reading the counts again. Bounded: two numbers a bucket, one a WARC file, some census rows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import STATES
from webfountain.store.contract import BucketCensus
from webfountain.store.counting import MILLISECONDS, Counted, last_crawled_ms, rows_of
from webfountain.store.embedded.keys import BUCKET, COPY, COUNTS, ROW, after, number, place_of
from webfountain.store.embedded.sites import IMMEDIATE_AT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import CensusRow, Copy, PageRecord
    from webfountain.store.embedded.disk import Disk, WriteBatch
    from webfountain.store.embedded.sites import SiteRow

__all__ = ["Counts", "log_bounds"]

COUNTED_KEPT: Final = 1024
"""Census rows in memory; the rows of one period are at most 257."""
_PERIODS_BEFORE_1970: Final = 1 << 62

_pair = struct.Struct(">Qq")
_counted_key = struct.Struct(">QH")
_file = struct.Struct(">QQ")
_INDEX: Final = {state: index for index, state in enumerate(STATES)}
_encode = msgspec.msgpack.Encoder().encode
_counts = msgspec.msgpack.Decoder(tuple[list[int], int, int, int, int, int])
_numbers = msgspec.msgpack.Decoder(list[float])


class Counts:
    """Counts in memory and what a step changed of them; `load` reads them from disk, `stage` writes the changes."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.load()

    def load(self) -> None:
        """Read the counts anew, dropping whatever was not written."""
        value = self._disk.get(COUNTS)
        kept = ([0] * len(STATES), 0, 0, 0, 0, 0) if value is None else _counts.decode(value)
        self.pages, self.sites, self.arrivals, self.immediate, self.changes, self.dropped = kept
        self._buckets = {key[1]: list(_pair.unpack(value)) for key, value in self._all(BUCKET)}
        self._copies = {_file.unpack(key[1:]): place_of(value) for key, value in self._all(COPY)}
        self._counted: Counted = {}
        self._clean()

    def clear(self) -> None:
        """Count from nothing again; what was counted in the periods stays."""
        self.pages, self.sites, self.immediate = [0] * len(STATES), 0, 0
        self._buckets, self._copies = {}, {}
        self._clean()

    def drop_rows(self, batch: WriteBatch, *, since: int) -> None:
        """Forget what was counted in the periods from `since`."""
        batch.delete_range(_row_key((since, None)), after(ROW))

    def add_new(self, row: SiteRow, pages: int) -> None:
        """Count never-seen pages of a site."""
        row[0] += pages
        self.pages[0] += pages

    def add(self, row: SiteRow, record: PageRecord) -> None:
        """Count a record that is now in the store."""
        self._count(row, record, 1)

    def remove(self, row: SiteRow, record: PageRecord) -> None:
        """Count a record that no longer is."""
        self._count(row, record, -1)

    def move_copy(self, old: Copy, new: Copy) -> None:
        """Count a copy that moved from one WARC file to another."""
        self._count_copy(old, -1)
        self._count_copy(new, 1)

    def count(self, counted: Counted) -> None:
        """Add what a step counted to the census rows."""
        for name, more in counted.items():
            row = self._counted_row(name)
            for index, value in enumerate(more):
                row[index] += value
            self._touched_counted.add(name)

    def census(self) -> dict[int, BucketCensus]:
        """Crawled pages by non-empty bucket."""
        return {
            bucket: BucketCensus(pages, total / MILLISECONDS)
            for bucket, (pages, total) in sorted(self._buckets.items())
            if pages
        }

    def census_rows(self, since: int) -> list[CensusRow]:
        """The census rows of the periods from `since`, from disk."""
        found = self._disk.scan(_row_key((since, None)), after(ROW))
        return rows_of((_row_name(key), _numbers.decode(value)) for key, value in found)

    def copies(self, repository: int) -> dict[int, int]:
        """WARC file number of a repository -> page records that name it."""
        found = list(self._copies.items())  # another thread may add one
        return {file: pages for (home, file), pages in found if pages and home == repository}

    def stage(self, batch: WriteBatch) -> None:
        """Add everything that changed since the last step to the batch."""
        for bucket in self._touched_buckets:
            batch.put(BUCKET + bytes([bucket]), _pair.pack(*self._buckets[bucket]))
        for file in self._touched_copies:
            self._stage_copy(batch, file)
        for name in self._touched_counted:
            batch.put(_row_key(name), _encode(self._counted[name]))
        batch.put(COUNTS, _encode((self.pages, self.sites, self.arrivals, self.immediate, self.changes, self.dropped)))
        if len(self._counted) > COUNTED_KEPT:
            self._counted.clear()
        self._clean()

    def _stage_copy(self, batch: WriteBatch, file: tuple[int, int]) -> None:
        if self._copies[file]:
            batch.put(COPY + _file.pack(*file), number(self._copies[file]))
        else:
            del self._copies[file]
            batch.delete(COPY + _file.pack(*file))

    def _all(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._disk.scan(prefix, after(prefix))

    def _clean(self) -> None:
        self._touched_buckets: set[int] = set()
        self._touched_copies: set[tuple[int, int]] = set()
        self._touched_counted: set[tuple[int, int | None]] = set()

    def _counted_row(self, name: tuple[int, int | None]) -> list[float]:
        if name not in self._counted:
            value = self._disk.get(_row_key(name))
            self._counted[name] = [0, 0, 0.0, 0, 0, 0] if value is None else _numbers.decode(value)
        return self._counted[name]

    def _count(self, row: SiteRow, record: PageRecord, sign: int) -> None:
        index = _INDEX[record.state]
        row[index] += sign
        self.pages[index] += sign
        if record.state == "crawled":
            pair = self._buckets.setdefault(record.bucket, [0, 0])
            pair[0] += sign
            pair[1] += sign * last_crawled_ms(record)
            self._touched_buckets.add(record.bucket)
        if record.copy is not None:
            self._count_copy(record.copy, sign)
        if record.immediate is not None:
            row[IMMEDIATE_AT] += sign
            self.immediate += sign

    def _count_copy(self, copy: Copy, sign: int) -> None:
        file = copy.repository, copy.file
        self._copies[file] = self._copies.get(file, 0) + sign
        self._touched_copies.add(file)


def _row_key(name: tuple[int, int | None]) -> bytes:
    period, bucket = name
    return ROW + _counted_key.pack(period + _PERIODS_BEFORE_1970, 0 if bucket is None else bucket + 1)


def _row_name(key: bytes) -> tuple[int, int | None]:
    period, bucket = _counted_key.unpack(key[1:])
    return period - _PERIODS_BEFORE_1970, bucket - 1 if bucket else None


def log_bounds(disk: Disk) -> tuple[int, int]:
    """Of the change log, as it is on disk: how many entries were dropped, and the number of the newest."""
    value = disk.get(COUNTS)
    if value is None:
        return 0, 0
    *_, changes, dropped = _counts.decode(value)
    return dropped, changes
