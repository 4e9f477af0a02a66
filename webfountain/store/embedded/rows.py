"""The embedded store's rows: page records, sites, and the counts that are kept while they are written.

The embedded store's page records: found by key, listed by site, put and removed together with their queue entry.

The embedded store's sites: a row each, the inactive ones by due time, the active list. A site stands either under DUE
or under ACTIVE. A reopened store finds under ACTIVE those that a crash left there and makes them due again, in one
scan. Bounded: `ROWS_KEPT` rows in memory, objects only for active sites.

The embedded store's counts: pages by state, buckets, census rows, copies, kept while they are written. What a step
touches is staged into its batch, so counts and pages never disagree on disk. A step that fails is undone by reading
the counts again. Bounded: two numbers a bucket, one a WARC file, some census rows.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import STATES, SiteRecord, SiteState
from webfountain.store.contract import BucketCensus, class_of, recrawl_place
from webfountain.store.embedded.disk import (
    ACTIVE,
    BAR,
    BARRED,
    BUCKET,
    COPY,
    COUNTS,
    DUE,
    IMMEDIATE_NEVER,
    LEARNED,
    NAME,
    NEVER,
    PAGE,
    PART,
    REGRADE,
    ROW,
    SITE,
    STATE,
    after,
    due_key,
    is_record,
    never_suffix,
    number,
    pack_links,
    pack_waiting,
    place_of,
    pointer,
    pointer_suffix,
    recrawl_key,
    site_id,
    waiting_record,
)
from webfountain.store.rules import (
    MILLISECONDS,
    Counted,
    decode_page,
    decode_state,
    encode_page,
    encode_state,
    from_sortable,
    last_crawled_ms,
    rows_of,
    to_sortable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.records import CensusRow, Copy, Link, PageRecord, State
    from webfountain.store.embedded.disk import Disk, WriteBatch

__all__ = [
    "BARRED_SITE",
    "EPOCH_AT",
    "IMMEDIATE_AT",
    "Counts",
    "PagePlace",
    "PageRows",
    "SiteRow",
    "SiteRows",
    "log_bounds",
]

_AT_ONCE: Final = 512


@dataclass(slots=True)
class PagePlace:
    """A page as it stands on disk: its record and its queue entry."""

    site: str
    key: bytes
    entry: bytes
    record: PageRecord


class PageRows:
    """Reads from the disk, writes into a batch; knows no lease and no count."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def values(self, links: Sequence[Link], sids: dict[str, bytes]) -> list[tuple[bytes, bytes | None]]:
        """For each link its page key and what the store has under it; None: unknown."""
        keys = [PAGE + sids[link.site] + link.key for link in links]
        return list(zip(keys, self._disk.get_many(keys), strict=True))

    def place(self, site: str, key: bytes) -> PagePlace | None:
        """One page, None when there is none."""
        return self.places(site, [key])[0]

    def places(self, site: str, keys: Sequence[bytes]) -> list[PagePlace | None]:
        """Pages of one site, None where there is none. One multi-get, and one for those never crawled."""
        if not keys:
            return []
        sid = site_id(site)
        prefix = PAGE + sid
        values = self._disk.get_many([prefix + key for key in keys])
        return self._resolved(site, sid, list(zip(keys, values, strict=True)))

    def listed(self, site: str | None, state: State | None) -> Iterator[PagePlace]:
        """Every page, or a site's, or those in one state; sites together, a few hundred read at once."""
        prefix = PAGE if site is None else PAGE + site_id(site)
        group: list[tuple[bytes, bytes | None]] = []
        sid = b""
        for key, value in self._disk.scan(prefix, after(prefix)):
            if key[1:9] != sid or len(group) == _AT_ONCE:
                yield from self._group(sid, group, state)
                sid, group = key[1:9], []
            group.append((key[9:], value))
        yield from self._group(sid, group, state)

    def put_new(self, batch: WriteBatch, fresh: Mapping[bytes, Link], *, arrival: int, at: float) -> list[bytes]:
        """Write never-seen pages, by page key, and their queue entries, which are returned; `arrival` is the first's.

        In the order of the keys: a memtable looks for a key's place from where it put the last one.
        """
        pointers, entries = pack_links(fresh, arrival=arrival, first_seen=at)
        put, before = batch.put, batch.size_in_bytes()
        for key, value in (*sorted(pointers), *sorted(entries)):
            put(key, value)
        self._disk.expect_new(batch.size_in_bytes() - before)
        return [entry for entry, _ in entries]

    def replace(self, batch: WriteBatch, place: PagePlace, record: PageRecord) -> bytes:
        """Write the new record of a page that was tried and move its queue entry, which is returned."""
        sid = site_id(place.site)
        entry = recrawl_key(sid, *recrawl_place(record), place.key)
        if entry != place.entry:
            batch.delete(place.entry)
            batch.put(entry, b"")
        batch.put(PAGE + sid + place.key, encode_page(record))
        return entry

    def replace_waiting(self, batch: WriteBatch, place: PagePlace, record: PageRecord, arrival: int) -> bytes:
        """Write the new record of a never-crawled page and move its entry, which is returned, to the turn `arrival`."""
        sid = site_id(place.site)
        lane = class_of(record.importance) if record.immediate is None else IMMEDIATE_NEVER
        suffix = never_suffix(lane, arrival)
        batch.delete(place.entry)
        batch.put(NEVER + sid + suffix, pack_waiting(place.site, place.key, record))
        batch.put(PAGE + sid + place.key, pointer(suffix))
        return NEVER + sid + suffix

    def remove(self, batch: WriteBatch, place: PagePlace) -> None:
        """Take a page and its queue entry away."""
        batch.delete(place.entry)
        batch.delete(PAGE + site_id(place.site) + place.key)

    def bar(self, batch: WriteBatch, site: str, key: bytes) -> None:
        """Refuse links to a page from now on. The site is named with it: of that nothing else may be known."""
        batch.put(PAGE + site_id(site) + key, BAR + site.encode())

    def _group(self, sid: bytes, group: list[tuple[bytes, bytes | None]], state: State | None) -> Iterator[PagePlace]:
        name = self._disk.get(NAME + sid) if group else None
        if name is None:
            return
        wanted = [item for item in group if state is None or is_record(item[1]) == (state != "never-crawled")]
        for place in self._resolved(name.decode(), sid, wanted):
            if place is not None and (state is None or place.record.state == state):
                yield place

    def _resolved(self, site: str, sid: bytes, found: list[tuple[bytes, bytes | None]]) -> list[PagePlace | None]:
        """Places from page keys' values: records as they are, pointers through their queue entries."""
        suffixes = [pointer_suffix(value) for _, value in found]
        entries = [NEVER + sid + suffix for suffix in suffixes if suffix is not None]
        waiting = iter(zip(entries, self._disk.get_many(entries) if entries else [], strict=True))
        places: list[PagePlace | None] = []
        for (key, value), suffix in zip(found, suffixes, strict=True):
            if suffix is not None:
                places.append(_waiting_place(site, *next(waiting)))
            elif value is not None and is_record(value):
                record = decode_page(value)
                places.append(PagePlace(site, key, recrawl_key(sid, *recrawl_place(record), key), record))
            else:
                places.append(None)
        return places


def _waiting_place(site: str, entry: bytes, value: bytes | None) -> PagePlace | None:
    """None when the entry was settled between the two reads of a listing."""
    if value is None:
        return None
    key, record = waiting_record(site, entry, value)
    return PagePlace(site, key, entry, record)


ROWS_KEPT: Final = 32_768

SiteRow = list[float]
"""Pages by state (STATES order), when the site is due and was first seen, URLs in the immediate lane, epoch."""
_DUE: Final = len(STATES)
_FIRST_SEEN: Final = len(STATES) + 1
IMMEDIATE_AT: Final = len(STATES) + 2
EPOCH_AT: Final = len(STATES) + 3
BARRED_SITE: Final[SiteRow] = []
"""Stands for the row of a site that was forgotten as a whole."""
_row = struct.Struct(f">{len(STATES)}IddII")


class SiteRows:
    """Rows, due times and the active list on disk; `stage` writes what a step changed, `load` drops it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.load()

    def load(self) -> None:
        """Forget what is held in memory; it is read again when it is asked for."""
        self._rows: OrderedDict[str, SiteRow | None] = OrderedDict()
        self._touched: dict[str, SiteRow] = {}
        # No entry stands before it: entries that were deleted at the front are not walked over again.
        self._due_front = DUE

    def row(self, site: str) -> SiteRow | None:
        """A site's row, BARRED_SITE when the site was forgotten, None when it is unknown; shared, see `touch`."""
        rows = self._rows
        if site in rows:
            rows.move_to_end(site)
            return rows[site]
        rows[site] = row = self.read_row(site)
        return row

    def read_row(self, site: str) -> SiteRow | None:
        """The same from disk, changing nothing in memory: any thread may ask."""
        name = site.encode()
        value, barred = self._disk.get_many([SITE + name, BARRED + name])
        if barred is not None:
            return BARRED_SITE
        return None if value is None else list(_row.unpack(value))

    def touch(self, site: str, row: SiteRow) -> None:
        """The caller changed counts in this row."""
        self._touched[site] = row

    def add(self, batch: WriteBatch, site: str, at: float) -> SiteRow:
        """Make a site known, inactive and due at once."""
        row: SiteRow = [0] * len(STATES) + [at, at, 0, 0]
        self._rows[site] = self._touched[site] = row
        batch.put(NAME + site_id(site), site.encode())
        self._put_due(batch, site, at)
        return row

    def due_sooner(self, batch: WriteBatch, site: str, row: SiteRow, due: float) -> None:
        """Bring an inactive site's due time forward, never back."""
        if due < row[_DUE]:
            batch.delete(due_key(row[_DUE], site))
            self._set_due(batch, site, row, due)

    def set_back(self, batch: WriteBatch, site: str, row: SiteRow, *, at: float, ahead: float) -> None:
        """The clock was `ahead` seconds ahead of `at`: what it put off is due so much sooner."""
        row[_FIRST_SEEN] = min(row[_FIRST_SEEN], at)
        self._touched[site] = row
        if at < row[_DUE] < inf:
            self.due_sooner(batch, site, row, max(at, row[_DUE] - ahead))

    def wake(self, batch: WriteBatch, site: str, row: SiteRow, at: float, owner: str) -> None:
        """Put a site on the active list, also one that another has there."""
        batch.delete(due_key(row[_DUE], site))
        batch.put(ACTIVE + site.encode(), owner.encode())
        row[_DUE] = min(row[_DUE], at)
        self._touched[site] = row

    def sleep(self, batch: WriteBatch, site: str, row: SiteRow, due: float) -> None:
        """Take a site off the active list, to be due at `due`."""
        batch.delete(ACTIVE + site.encode())
        self._set_due(batch, site, row, due)

    def drop(self, batch: WriteBatch, site: str, row: SiteRow) -> None:
        """Forget all that is kept of a site besides its pages."""
        name, sid = site.encode(), site_id(site)
        of_name = (SITE + name, due_key(row[_DUE], site), ACTIVE + name)
        for key in (*of_name, STATE + sid, NAME + sid, LEARNED + sid, REGRADE + sid):
            batch.delete(key)
        batch.delete_range(PART + sid, after(PART + sid))
        self._touched.pop(site, None)

    def bar(self, batch: WriteBatch, site: str) -> None:
        """Refuse links to the site from now on."""
        self._rows[site] = BARRED_SITE
        batch.put(BARRED + site.encode(), b"")

    def put_state(self, batch: WriteBatch, site: str, state: SiteState) -> None:
        """Keep what the ant must remember of a site."""
        batch.put(STATE + site_id(site), encode_state(state))

    def put_learned(self, batch: WriteBatch, site: str, learned: bytes) -> None:
        """Keep what was learned of a site."""
        batch.put(LEARNED + site_id(site), learned)

    def put_part(self, batch: WriteBatch, site: str, of: int, part: bytes) -> None:
        """Keep a part of what was learned of a site; an empty one no longer."""
        key = PART + site_id(site) + number(of)
        if part:
            batch.put(key, part)
        else:
            batch.delete(key)

    def part(self, site: str, of: int) -> bytes | None:
        """What `put_part` kept under a number; changes nothing in memory."""
        return self._disk.get(PART + site_id(site) + number(of))

    def parts(self, site: str) -> Iterator[tuple[int, bytes]]:
        """All that `put_part` kept, in order of number."""
        prefix = PART + site_id(site)
        return ((place_of(key), part) for key, part in self._disk.scan(prefix, after(prefix)))

    def due_of(self, row: SiteRow) -> float:
        """When the site of a row is due."""
        return row[_DUE]

    def due(self, n: int, at: float) -> list[tuple[float, str]]:
        """Up to `n` inactive sites due at or before `at`, each after its time, longest due first."""
        found: list[tuple[float, str]] = []
        for key, _ in self._disk.scan(self._due_front, after(DUE + to_sortable(at + 0.0))):
            if not found:
                self._due_front = key
            if len(found) == n:
                break
            found.append((from_sortable(key[1:9]), key[9:].decode()))
        return found

    def next_due(self) -> float:
        """When the first inactive site is due; inf when none ever is."""
        for key, _ in self._disk.scan(self._due_front, after(DUE)):
            self._due_front = key
            return from_sortable(key[1:9])
        return float("inf")

    def active_on_disk(self) -> list[str]:
        """The sites under ACTIVE: those of a crawl that runs, or of one that was killed."""
        return [key[1:].decode() for key, _ in self._disk.scan(ACTIVE, after(ACTIVE))]

    def record(self, site: str, row: SiteRow) -> SiteRecord:
        """The site record of a row."""
        sid = site_id(site)
        state, learned, owner = self._disk.get_many([STATE + sid, LEARNED + sid, ACTIVE + site.encode()])
        return SiteRecord(
            site=site,
            pages=tuple(int(count) for count in row[: len(STATES)]),
            due=row[_DUE],
            first_seen=row[_FIRST_SEEN],
            state=SiteState() if state is None else decode_state(state),
            owner=None if owner is None else owner.decode(),
            immediate=int(row[IMMEDIATE_AT]),
            epoch=int(row[EPOCH_AT]),
            learned=learned or b"",
        )

    def after(self, name: str, n: int) -> list[SiteRecord]:
        """Up to `n` sites in order of name, from the first after `name`."""
        found: list[SiteRecord] = []
        for key, value in self._scan_rows(name):
            if len(found) == n:
                break
            site = key[1:].decode()
            found.append(self.record(site, list(_row.unpack(value))))
        return found

    def stage(self, batch: WriteBatch) -> None:
        """Add the rows that changed to the batch."""
        for site, row in self._touched.items():
            batch.put(SITE + site.encode(), _row.pack(*row))
        self._touched = {}
        while len(self._rows) > ROWS_KEPT:
            self._rows.popitem(last=False)

    def _scan_rows(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        # A zero byte added is the first key after a name.
        return self._disk.scan(SITE + name.encode() + b"\x00" if name else SITE, after(SITE))

    def _set_due(self, batch: WriteBatch, site: str, row: SiteRow, due: float) -> None:
        row[_DUE] = due
        self._touched[site] = row
        self._put_due(batch, site, due)

    def _put_due(self, batch: WriteBatch, site: str, due: float) -> None:
        key = due_key(due, site)
        batch.put(key, b"")
        self._due_front = min(self._due_front, key)


COUNTED_KEPT: Final = 1024
"""Census rows in memory; the rows of one period are at most 257."""
_PERIODS_BEFORE_1970: Final = 1 << 62

_TOTAL_BYTES: Final = 16
"""Of the sum of the times at which a bucket's pages were crawled, in ms: five million of today fill eight bytes."""
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
        self._buckets = {key[1]: _bucket_of(value) for key, value in self._all(BUCKET)}
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
        return rows_of(counted_rows(self._disk, since=since))

    def copies(self, repository: int) -> dict[int, int]:
        """WARC file number of a repository -> page records that name it."""
        found = list(self._copies.items())  # another thread may add one
        return {file: pages for (home, file), pages in found if pages and home == repository}

    def stage(self, batch: WriteBatch) -> None:
        """Add everything that changed since the last step to the batch."""
        for bucket in self._touched_buckets:
            pages, total = self._buckets[bucket]
            batch.put(BUCKET + bytes([bucket]), number(pages) + total.to_bytes(_TOTAL_BYTES, "big", signed=True))
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


def _bucket_of(value: bytes) -> list[int]:
    """Pages, and the sum of their times in ms, which stores have with eight bytes that none added to since."""
    return [place_of(value[:8]), int.from_bytes(value[8:], "big", signed=True)]


def _row_key(name: tuple[int, int | None]) -> bytes:
    period, bucket = name
    return ROW + _counted_key.pack(period + _PERIODS_BEFORE_1970, 0 if bucket is None else bucket + 1)


def _row_name(key: bytes) -> tuple[int, int | None]:
    period, bucket = _counted_key.unpack(key[1:])
    return period - _PERIODS_BEFORE_1970, bucket - 1 if bucket else None


def counted_rows(
    disk: Disk, *, since: int = -_PERIODS_BEFORE_1970
) -> Iterator[tuple[tuple[int, int | None], list[float]]]:
    """(period, bucket) and what was counted there, of the periods from `since`, in order."""
    for key, value in disk.scan(_row_key((since, None)), after(ROW)):
        yield _row_name(key), _numbers.decode(value)


def log_bounds(disk: Disk) -> tuple[int, int]:
    """Of the change log, as it is on disk: how many entries were dropped, and the number of the newest."""
    value = disk.get(COUNTS)
    if value is None:
        return 0, 0
    *_, changes, dropped = _counts.decode(value)
    return dropped, changes
