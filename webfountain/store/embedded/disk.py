"""The RocksDB under the embedded store: how keys and values are laid, opening and its lock, reads, one atomic write.

Every failure of the disk leaves as one `StoreError` line. Writes reach the
operating system before they return, so a killed process loses none; a power cut may lose the last seconds.
Files are the user's alone, and their size stays within a few times what lives in them.

How the embedded store lays its keys and values: every byte of the format is decided here. Keys start with one letter
for the family, then, wherever a page is meant, eight bytes of the site: a site's pages lie together, so a batch of
one page's links touches few blocks. A never-crawled page lives in its queue entry and its page key only points there:
the entries lie in the order in which they are leased, and the keys that every link is looked up in stay small.
Changing anything here means another `FORMAT`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

import msgspec
import xxhash
from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
)

from webfountain.errors import StoreError, StoreHeld
from webfountain.records import PageRecord
from webfountain.store import Scratch, is_held
from webfountain.store.contract import CLASSES, class_of
from webfountain.store.rules import source_of, to_sortable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from webfountain.records import Link

__all__ = [
    "ACTIVE",
    "BAR",
    "BARRED",
    "BUCKET",
    "CACHE_BYTES",
    "CHANGE",
    "CLOCK",
    "COPY",
    "COUNTS",
    "DUE",
    "FORMAT",
    "IMMEDIATE_NEVER",
    "IMPORTING",
    "LEARNED",
    "META",
    "NAME",
    "NEVER",
    "PAGE",
    "PART",
    "RECRAWL",
    "REGRADE",
    "ROW",
    "SITE",
    "STATE",
    "VALUE",
    "Disk",
    "Meta",
    "NeverEntry",
    "WriteBatch",
    "after",
    "arrival_of",
    "due_key",
    "is_record",
    "never_suffix",
    "number",
    "open_reading",
    "open_writing",
    "pack_links",
    "pack_time",
    "pack_waiting",
    "place_of",
    "pointer",
    "pointer_suffix",
    "recrawl_key",
    "site_id",
    "unpack_time",
    "waiting_record",
]

FORMAT: Final = 2
IMPORTING: Final = 0
"""The format of a store whose import has not come to its end."""

PAGE: Final = b"P"  # site id, key -> page record, or a pointer to its NEVER entry, or BAR
NEVER: Final = b"N"  # site id, lane (class of importance, or IMMEDIATE_NEVER), arrival -> Waiting
RECRAWL: Final = b"R"  # site id, lane, order, key -> nothing
SITE: Final = b"S"  # name -> row of counts and times
BARRED: Final = b"F"  # name -> nothing: the whole site was forgotten
STATE: Final = b"T"  # site id -> SiteState
LEARNED: Final = b"L"  # site id -> what was learned of the site
PART: Final = b"Q"  # site id, number -> a part of what was learned of the site
REGRADE: Final = b"E"  # site id -> epoch that is being brought in, suffix of the last entry that was looked up
NAME: Final = b"H"  # site id -> name
DUE: Final = b"D"  # due, name -> nothing: the inactive sites
ACTIVE: Final = b"A"  # name -> owner: the active sites
BUCKET: Final = b"B"  # bucket -> crawled pages, sum of last_crawled
ROW: Final = b"K"  # period, bucket -> a census row
COPY: Final = b"W"  # repository, WARC file number -> page records that name it
CHANGE: Final = b"G"  # sequence -> an entry of the change log
CLOCK: Final = b"O"  # -> the time of the last step that told one
COUNTS: Final = b"C"  # -> pages by state, sites, arrivals, immediate URLs, entries made and dropped
META: Final = b"M"  # -> format, collection, period, fastest, generation, name of the change log
VALUE: Final = b"V"  # name -> a published value

IMMEDIATE_NEVER: Final = CLASSES
"""Lane of the never-crawled URLs that go before all others of their site."""
BAR: Final = b"\x00"
"""Value of the page key of a forgotten URL, before its site's name: known, and no page."""
_POINTER: Final = b"\x01"
_word = struct.Struct(">Q")
_time = struct.Struct(">d")
_lane = struct.Struct(">H")
_turn = struct.Struct(">BQ")
_LANE_AT: Final = 9


class Meta(msgspec.Struct, frozen=True, array_like=True):
    """What a store says of itself. `generation` counts its openings: no lease token is ever given out twice.

    `log` names its change log.

    `unit` is what the bytes of the pages from `come_to` on are still counted in, while they are made anew.
    """

    format: int
    collection: str
    period_s: float
    fastest_s: float
    generation: int = 0
    log: str = ""
    unit: float | None = None
    come_to: bytes = PAGE


class NeverEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A never-crawled page in its queue entry.

    `shared` counts the leading characters of the URL that are the site's name and left out of `rest`.
    """

    key: bytes
    shared: int
    rest: str
    first_seen: float
    importance: float
    depth: int
    policy: str
    request: bytes | None
    trust: float = 0.0
    source: bytes = b""
    scores: tuple[float, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_waiting = msgspec.msgpack.Decoder(NeverEntry)


def site_id(site: str) -> bytes:
    """Eight bytes for a site: among 10^6 sites two collide with a chance of 3e-8."""
    return xxhash.xxh3_64_digest(site.encode())


def pack_time(at: float) -> bytes:
    """The value under CLOCK."""
    return _time.pack(at)


def unpack_time(value: bytes) -> float:
    """The time that `pack_time` packed."""
    at: float = _time.unpack(value)[0]
    return at


def number(value: int) -> bytes:
    """Eight bytes that sort as the number, which is not negative."""
    return _word.pack(value)


def place_of(text: bytes) -> int:
    """The number that `number` made into the last eight bytes of a key."""
    value: int = _word.unpack(text[-8:])[0]
    return value


def arrival_of(entry: bytes) -> int:
    """The number of arrival in the key of a never-crawled queue entry."""
    return place_of(entry)


def never_suffix(lane: int, arrival: int) -> bytes:
    """Order within a site's never-crawled queue: by lane, then first come."""
    return _turn.pack(lane, arrival)


def pointer(suffix: bytes) -> bytes:
    """Value of the page key of a never-crawled page: where in its site's queue the entry stands."""
    return _POINTER + suffix


def pointer_suffix(value: bytes | None) -> bytes | None:
    """The suffix of a pointer; None for a value that is none."""
    return value[1:] if value is not None and value[:1] == _POINTER else None


def is_record(value: bytes | None) -> bool:
    """Whether a page key's value is the record itself: a msgpack array starts with 0x90 or more."""
    return value is not None and value[0] >= 0x90


def pack_links(
    links: Mapping[bytes, Link], *, arrival: int, first_seen: float
) -> tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]]]:
    """What never-seen pages put under their page keys, by which the links come, and into their queue.

    Keys and values, in the order of the links; `arrival` is the first's. One pass: most of what a link costs is here.
    """
    pointers: list[tuple[bytes, bytes]] = []
    entries: list[tuple[bytes, bytes]] = []
    for nth, (page_key, link) in enumerate(links.items(), arrival):
        suffix = _turn.pack(class_of(link.importance), nth)
        pointers.append((page_key, _POINTER + suffix))
        url, site = link.url, link.site
        shared = len(site) if url.startswith(site) else 0
        value = _encode(
            (
                link.key,
                shared,
                url[shared:],
                first_seen,
                # Nothing takes one byte as a whole number, nine as a fraction.
                link.importance or 0,
                link.depth,
                link.policy,
                link.request,
                link.trust or 0,
                source_of(link),
                link.scores,
            )
        )
        entries.append((NEVER + page_key[1:9] + suffix, value))
    return pointers, entries


def pack_waiting(site: str, key: bytes, record: PageRecord) -> bytes:
    """The queue entry's value of a never-crawled page."""
    url = record.url
    shared = len(site) if url.startswith(site) else 0
    told = (key, shared, url[shared:], record.first_seen, record.importance or 0, record.depth, record.policy)
    return _encode((*told, record.request, record.trust or 0, record.source, record.scores))


def waiting_record(site: str, entry: bytes, value: bytes) -> tuple[bytes, PageRecord]:
    """Page key and record of a never-crawled page, from its queue entry's key and value."""
    one = _waiting.decode(value)
    record = PageRecord(
        url=site[: one.shared] + one.rest,
        policy=one.policy,
        importance=one.importance,
        first_seen=one.first_seen,
        depth=one.depth,
        request=one.request,
        trust=one.trust,
        source=one.source,
        scores=one.scores,
        immediate=arrival_of(entry) if entry[_LANE_AT] == IMMEDIATE_NEVER else None,
    )
    return one.key, record


def recrawl_key(sid: bytes, lane: int, order: float, key: bytes) -> bytes:
    """A page's entry in a recrawl lane; adding 0.0 turns both zeros into the same one."""
    return RECRAWL + sid + _lane.pack(lane) + to_sortable(order + 0.0) + key


def due_key(due: float, site: str) -> bytes:
    """An inactive site's entry among the sites by due time."""
    return DUE + to_sortable(due + 0.0) + site.encode()


def after(prefix: bytes) -> bytes:
    """The first key that is past all keys with this prefix."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


MEBIBYTE: Final = 1 << 20
MEMTABLE_BYTES: Final = 64 * MEBIBYTE
BLOCK_BYTES: Final = 4096
CACHE_BYTES: Final = 32 * MEBIBYTE
"""Small, for it fills over hours and the system keeps what it lets go: a block that is read again is not decompressed.
Index and filter blocks stay outside it: inside, they push each other out and reads cost three times as much."""
BLOOM_BITS: Final = 10
MEMTABLE_BLOOM: Final = 0.02
"""Share of a memtable that its Bloom filter takes: two bytes an entry at 100 bytes each."""
LOG_BYTES: Final = 4 * MEBIBYTE
"""The log may hold so many bytes that took others' place, or half of what lives in the tables if that is more."""
MOST_TABLES: Final = 8
"""Tables that overlap before they are merged."""
FEWEST_TABLES: Final = 3
"""The same once so many logs full of bytes that took others' place have become tables."""


class Disk:
    """One open database. `refresh` brings a reading copy up to date; it has no effect on a writing one."""

    def __init__(self, folder: Path, db: Rdict, *, secondary: Scratch | None) -> None:
        self.folder = folder
        self._db = db
        self._secondary = secondary
        self._open = True
        self._taken_in: set[tuple[str, int]] = set()
        self._unchecked = 0
        self._new = 0
        self._replaced_in_log = 0
        self._replaced_in_tables = 0
        self._overlapping = 0
        self._trigger = MOST_TABLES
        if secondary is None:
            self._replaced_in_tables = self._number("live-sst-files-size") - self._number("estimate-live-data-size")
            self._bound_size()

    @property
    def read_only(self) -> bool:
        """Whether this is a reading copy of a store that another process may be writing."""
        return self._secondary is not None

    def refresh(self) -> None:
        """Take in what the writing process has written since. Costs a folder's listing where that is nothing."""
        if self._secondary is None:
            return
        written = self._written()
        if written and written == self._taken_in:
            return
        try:
            self._db.try_catch_up_with_primary()
        except Exception as error:
            raise self._unreadable(error) from None
        self._taken_in = written

    def _written(self) -> set[tuple[str, int]]:
        """Names and sizes of the writer's logs and manifests: a step that came since made one of them longer.

        Asked before the catching up, so that what is written meanwhile is seen by the next. Empty where the folder
        cannot be listed.
        """
        try:
            with os.scandir(self.folder / "db") as files:
                return {
                    (file.name, file.stat().st_size)
                    for file in files
                    if file.name.endswith(".log") or file.name.startswith("MANIFEST")
                }
        except OSError:
            return set()

    def get(self, key: bytes) -> bytes | None:
        """The value of one key. Raises StoreError, as all reads do, when the disk is gone or damaged."""
        try:
            return cast("bytes | None", self._db.get(key))
        except Exception as error:
            raise self._unreadable(error) from None

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """The values of many keys, in their order."""
        try:
            return cast("list[bytes | None]", self._db.get(keys))  # type: ignore[arg-type]  # a list is invariant
        except Exception as error:
            raise self._unreadable(error) from None

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from `start` up to but without `end`, as they stood when the scan began.

        The bound also keeps the scan from walking over the deleted entries that lie behind it. An iterator that
        meets a damaged block is at its end, as one that has read all: only its status tells, so that is asked.
        """
        with self._entries(start, end) as found:
            while found.valid():
                yield found.key(), found.value()
                found.next()

    def first_of_each(self, start: bytes, end: bytes, *, width: int) -> Iterator[bytes]:
        """Of the keys from `start` up to but without `end` that share their first `width` bytes, the first of each."""
        with self._entries(start, end) as found:
            while found.valid():
                key = found.key()
                yield key
                found.seek(after(key[:width]))

    @contextmanager
    def _entries(self, start: bytes, end: bytes) -> Iterator[RdictIter]:
        """An iterator that stands at `start` and ends before `end`. StoreError where it ended for another reason."""
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        try:
            found = self._db.iter(options)
            found.seek(start)
            yield found
            found.status()
        except Exception as error:
            raise self._unreadable(error) from None
        del options  # RocksDB only points at the bound: without this name it would be freed during the scan

    def write(self, batch: WriteBatch) -> None:
        """Write all of the batch or nothing of it.

        Raises
        ------
        StoreError
            when the store was opened for reading, or the disk is full or gone: mend it and open the store anew.
        """
        if self.read_only:
            raise StoreError(f"{self.folder}: the store was opened for reading only")
        size = batch.size_in_bytes()
        self._unchecked += size
        self._replaced_in_log += size - self._new
        self._new = 0
        try:
            self._db.write(batch)
        except Exception as error:
            raise StoreError(
                f"{self.folder}: cannot write ({_first_line(error)}); nothing of this step is kept"
            ) from None
        if self._unchecked > LOG_BYTES:
            self._unchecked = 0
            # What it cannot flush now RocksDB says at a later write.
            with suppress(Exception):
                self._bound_size()

    def expect_new(self, size_bytes: int) -> None:
        """So many bytes of the batch that is written next take nothing's place: unknown URLs leave no garbage."""
        self._new = size_bytes

    def _bound_size(self) -> None:
        """Flush the log and merge the tables when too much of them was replaced since.

        A small store whose pages are crawled again and again wrote 64 MB of log and eight tables of the same pages
        before they were merged: 100 MB for 6. With three tables and a log of half of what lives each it takes at most
        four times that. One that grows by new URLs is merged as seldom as filling it needs: it has nothing to drop.
        """
        overlapping = self._number("num-files-at-level0")
        if overlapping < self._overlapping:
            self._replaced_in_tables = 0
        self._overlapping = overlapping
        # RocksDB's own estimate takes one of the tables that overlap for all of them.
        lying, living = self._number("live-sst-files-size"), self._number("estimate-live-data-size")
        log_most = max(LOG_BYTES, max(living, lying - self._replaced_in_tables) // 2)
        if self._replaced_in_log > log_most:
            self._db.flush(False)
            self._replaced_in_tables += self._replaced_in_log
            self._replaced_in_log = 0
        trigger = FEWEST_TABLES if self._replaced_in_tables > FEWEST_TABLES * log_most else MOST_TABLES
        if trigger != self._trigger:
            self._db.set_options({"level0_file_num_compaction_trigger": str(trigger)})
            self._trigger = trigger
        _make_private(self.folder)

    def _number(self, name: str) -> int:
        return self._db.property_int_value(f"rocksdb.{name}") or 0

    def _unreadable(self, error: Exception) -> StoreError:
        return StoreError(f"{self.folder}: cannot read the store ({_first_line(error)})")

    def close(self) -> None:
        """Let go of files and lock, after a sync that a power cut does not undo; a second call has no effect."""
        if not self._open:
            return
        self._open = False
        if not self.read_only:
            (self.folder / "holder").unlink(missing_ok=True)
        # A disk that is full or gone has said so at the step that it refused; what it accepted is in the log.
        with suppress(Exception):
            if not self.read_only:
                self._db.flush_wal(True)
            self._db.close()
        if self._secondary is None:
            _make_private(self.folder)
        else:
            self._secondary.close()


def open_writing(folder: Path) -> Disk:
    """Open for writing, creating the folder.

    Raises
    ------
    StoreHeld
        when another process writes to it; the line names that process and what to do.
    StoreError
        when the folder cannot be made, written or read.
    """
    try:
        with _private_files():
            (folder / "db").mkdir(parents=True, exist_ok=True)
            db = _database(folder / "db", _options(), AccessType.read_write())
            disk = Disk(folder, db, secondary=None)
    except Exception as error:
        if _is_held(folder, error):
            raise StoreHeld(_held(folder)) from None
        raise StoreError(f"{folder}: cannot open the store for writing ({_first_line(error)})") from None
    try:
        with _private_files():
            (folder / "holder").write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
    except OSError as error:
        disk.close()
        raise StoreError(f"{folder}: cannot open the store for writing ({_first_line(error)})") from None
    return disk


def open_reading(folder: Path) -> Disk:
    """Open a private, up-to-date view, also while another process writes.

    On a file system that cannot be written it stays as it was when it was opened.

    Raises
    ------
    StoreError
        when there is no store in the folder, or it cannot be read.
    """
    if not (folder / "db" / "CURRENT").exists():
        raise StoreError(f"{folder}: there is no store here; a crawl makes one")
    private = None
    try:
        private = Scratch()
        options = _options()
        options.create_if_missing(False)
        options.set_max_open_files(-1)
        # Each catching up would start sixteen threads to open what new tables there are: 0.8 of a poll's 1.0 ms.
        options.set_max_file_opening_threads(1)
        # It takes in far more than it looks up: 0.4 ms less for a step of 200 pages.
        options.set_memtable_prefix_bloom_ratio(0.0)
        options.set_memtable_whole_key_filtering(False)
        db = _database(_writable(folder / "db", private), options, AccessType.secondary(str(private.path)))
        db.try_catch_up_with_primary()
    except Exception as error:
        if private is not None:
            private.close()
        raise StoreError(f"{folder}: cannot read the store ({_first_line(error)})") from None
    return Disk(folder, db, secondary=private)


def _writable(database: Path, private: Scratch) -> Path:
    """The database's folder, or where it cannot be written one of links to its files.

    rocksdict writes its own options into the folder of a database, also of one that is only read.
    """
    if os.access(database, os.W_OK):
        return database
    linked = private.path / "db"
    linked.mkdir()
    for file in database.iterdir():
        if file.suffix == ".json":
            shutil.copyfile(file, linked / file.name)
        else:
            (linked / file.name).symlink_to(file.resolve())
    return linked


@contextmanager
def _private_files() -> Iterator[None]:
    """What is made meanwhile is the user's alone. The mask is the process's: other threads' files are, too."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _make_private(folder: Path) -> None:
    """Close to others what RocksDB's threads have made, or an older version."""
    with suppress(OSError):
        (folder / "db").chmod(0o700)
        for file in (folder / "db").iterdir():
            with suppress(FileNotFoundError):  # a table that was merged away meanwhile
                file.chmod(0o600)


def _database(database: Path, options: Options, access: AccessType) -> Rdict:
    """The database in its folder. Unless its one column family is named, a reopened one gets the default block cache of
    8 MB and writes no Bloom filters: rocksdict gives `options` to the families that it creates, not to those it finds.
    """
    return Rdict(str(database), options, column_families={"default": options}, access_type=access)


def _options() -> Options:
    table = BlockBasedOptions()
    # Its look-ups take no lock: 6 % more mixed links a CPU second than with an LRU of the same size.
    table.set_block_cache(Cache.new_hyper_clock_cache(CACHE_BYTES, BLOCK_BYTES))
    table.set_bloom_filter(BLOOM_BITS, False)
    table.set_block_size(BLOCK_BYTES)
    table.set_format_version(5)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(table)
    options.set_write_buffer_size(MEMTABLE_BYTES)
    options.set_max_write_buffer_number(3)
    # A look-up tries the memtable first, and walking down its skip list is slower than asking a Bloom filter.
    options.set_memtable_whole_key_filtering(True)
    options.set_memtable_prefix_bloom_ratio(MEMTABLE_BLOOM)
    options.set_target_file_size_base(64 * MEBIBYTE)
    # No compression: with lz4 the disk held 83 bytes a URL instead of 177, and filling, new and mixed links ran 11 to
    # 17 % slower. The more files are gathered before they are merged with the level below, the cheaper are new links
    # and the dearer are leases, which look into all of them: with six files the compaction of 2.8 million links took
    # 3.5 CPU seconds, with twelve 1.9, and leases ran 11 % slower. Universal compaction of six runs took 2.4, of eight
    # 2.2, and its leases look into as many. (One run each on a busy machine, sizes divided by five or seven.)
    options.set_level_zero_file_num_compaction_trigger(MOST_TABLES)
    options.set_max_bytes_for_level_base(512 * MEBIBYTE)
    options.set_compression_type(DBCompressionType.none())
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_stats_dump_period_sec(0)
    return options


def _is_held(folder: Path, error: Exception) -> bool:
    """Whether a database could not be opened because it is open, here or in another process.

    RocksDB's words for it may name any path, so the lock itself is asked, but not when this process has it.
    """
    line = _first_line(error)
    if line.startswith("IO error: lock hold by current process"):
        return True
    return line.startswith("IO error: While lock file") and is_held(folder)


def _held(folder: Path) -> str:
    """Who holds the store, as its own note says; the note's age is the file's, for a store reads no clock."""
    note = folder / "holder"
    try:
        holder = json.loads(note.read_text())
        since = datetime.fromtimestamp(note.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        mine = (holder["pid"], holder["host"]) == (os.getpid(), socket.gethostname())
        who = f"{'this ' if mine else ''}process {holder['pid']} on {holder['host']} since {since}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "another process"
    return (
        f"{folder}: the store is held by {who}; stop that crawl first, give another --store, "
        "or use `webfountain now` and `webfountain status`, which work while it runs"
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
