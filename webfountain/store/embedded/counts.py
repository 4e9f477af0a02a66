"""The counts of the embedded store: pages by state, buckets, census rows, copies.

A step writes changed counts in the same batch as the pages, so counts and pages always agree on disk. After a failed
step, the counts are read again.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import STATES
from webfountain.store.answers import BucketCensus
from webfountain.store.census_counting import MILLISECONDS, CensusCounts, last_crawled_ms, rows_of
from webfountain.store.embedded.keys import BUCKET, COPY, COUNTS, ROW, after, number, place_of
from webfountain.store.embedded.site_rows import IMMEDIATE_AT, site_row_codec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import CensusRow, Copy, PageRecord
    from webfountain.store.embedded.disk import Disk, WriteBatch
    from webfountain.store.embedded.site_rows import SiteRow

__all__ = ["Counts", "counted_rows", "log_bounds", "site_row"]

_COUNTED_KEPT: Final = 1024
"""Maximum number of census rows in memory; one period has at most 257 rows."""
_PERIODS_BEFORE_1970: Final = 1 << 62

_TOTAL_BYTES: Final = 16
"""Number of bytes for a bucket's sum of crawl times: eight bytes would overflow at five million pages."""
_counted_key = struct.Struct(">QH")
_file = struct.Struct(">QQ")
_INDEX: Final = {state: index for index, state in enumerate(STATES)}
_encode = msgspec.msgpack.Encoder().encode
_counts = msgspec.msgpack.Decoder(tuple[list[int], int, int, int, int, int])
_numbers = msgspec.msgpack.Decoder(list[float])


class Counts:
    """The counts in memory. `load` reads the counts from disk, and `stage` adds their changes to a batch."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.load()

    def load(self) -> None:
        """Read the counts again, and drop unwritten changes."""
        value = self._disk.get(COUNTS)
        kept = ([0] * len(STATES), 0, 0, 0, 0, 0) if value is None else _counts.decode(value)
        self.pages, self.sites, self.arrivals, self.immediate, self.changes, self.dropped = kept
        self._buckets = {key[1]: _bucket_of(value) for key, value in self._all(BUCKET)}
        self._copies = {_file.unpack(key[1:]): place_of(value) for key, value in self._all(COPY)}
        self._counted: CensusCounts = {}
        self._clean()

    def present(self) -> Counts:
        """Return the current counts. If the store is opened for reading, the counts are read again from disk."""
        if not self._disk.read_only:
            return self
        self._disk.refresh()
        return Counts(self._disk)

    def clear(self) -> None:
        """Reset the counts to zero, but keep the census rows."""
        self.pages, self.sites, self.immediate = [0] * len(STATES), 0, 0
        self._buckets, self._copies = {}, {}
        self._clean()

    def drop_rows(self, batch: WriteBatch, *, since: int) -> None:
        """Delete the census rows of period `since` and of later periods."""
        batch.delete_range(_row_key((since, None)), after(ROW))

    def add_new(self, row: SiteRow, pages: int) -> None:
        """Count new pages of a site."""
        row[0] += pages
        self.pages[0] += pages

    def add(self, row: SiteRow, record: PageRecord) -> None:
        """Count a record that was added to the store."""
        self._count(row, record, 1)

    def remove(self, row: SiteRow, record: PageRecord) -> None:
        """Count a record that was removed from the store."""
        self._count(row, record, -1)

    def add_sites(self, many: int) -> None:
        """Count new sites; a negative number counts removed sites."""
        self.sites += many

    def next_arrival(self) -> int:
        """Return the next arrival number."""
        self.arrivals += 1
        return self.arrivals

    def skip_arrivals(self, many: int) -> int:
        """Reserve `many` arrival numbers; return the first of them."""
        self.arrivals += many
        return self.arrivals - many + 1

    def count(self, counted: CensusCounts) -> None:
        """Add the counts of a step to the census rows."""
        for name, more in counted.items():
            row = self._counted_row(name)
            for index, value in enumerate(more):
                row[index] += value
            self._touched_counted.add(name)

    def census(self) -> dict[int, BucketCensus]:
        return {
            bucket: BucketCensus(pages, total / MILLISECONDS)
            for bucket, (pages, total) in sorted(self._buckets.items())
            if pages
        }

    def census_rows(self, since: int) -> list[CensusRow]:
        """Read the census rows of period `since` and of later periods from disk."""
        return rows_of(counted_rows(self._disk, since=since))

    def copies(self, repository: int) -> dict[int, int]:
        """Return how many pages have their newest copy in each WARC file of a repository, by file number."""
        found = list(self._copies.items())  # another thread may add an entry
        return {file: pages for (home, file), pages in found if pages and home == repository}

    def stage(self, batch: WriteBatch) -> None:
        """Add all changes since the last step to the batch."""
        for bucket in self._touched_buckets:
            pages, total = self._buckets[bucket]
            batch.put(BUCKET + bytes([bucket]), number(pages) + total.to_bytes(_TOTAL_BYTES, "big", signed=True))
        for file in self._touched_copies:
            self._stage_copy(batch, file)
        for name in self._touched_counted:
            batch.put(_row_key(name), _encode(self._counted[name]))
        batch.put(COUNTS, _encode((self.pages, self.sites, self.arrivals, self.immediate, self.changes, self.dropped)))
        if len(self._counted) > _COUNTED_KEPT:
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


def _bucket_of(value: bytes) -> list[int]:
    """Decode the number of pages in a bucket, and the sum of their crawl times in milliseconds."""
    # Older versions stored the sum of crawl times in eight bytes.
    return [place_of(value[:8]), int.from_bytes(value[8:], "big", signed=True)]


def _row_key(name: tuple[int, int | None]) -> bytes:
    period, bucket = name
    return ROW + _counted_key.pack(period + _PERIODS_BEFORE_1970, 0 if bucket is None else bucket + 1)


def _row_name(key: bytes) -> tuple[int, int | None]:
    period, bucket = _counted_key.unpack(key[1:])
    return period - _PERIODS_BEFORE_1970, bucket - 1 if bucket else None


def site_row(value: bytes) -> SiteRow:
    """Return the row of a site from its bytes."""
    return list(site_row_codec.unpack(value))


def counted_rows(
    disk: Disk, *, since: int = -_PERIODS_BEFORE_1970
) -> Iterator[tuple[tuple[int, int | None], list[float]]]:
    """Yield ((period, bucket), counts) of period `since` and later periods, in order."""
    for key, value in disk.scan(_row_key((since, None)), after(ROW)):
        yield _row_name(key), _numbers.decode(value)


def log_bounds(disk: Disk) -> tuple[int, int]:
    """Read from disk how many entries the change log has dropped, and the number of its newest entry."""
    value = disk.get(COUNTS)
    if value is None:
        return 0, 0
    *_, changes, dropped = _counts.decode(value)
    return dropped, changes
