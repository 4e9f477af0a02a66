"""The RocksDB database under the embedded store: options, opening with a lock, reads, one atomic write.

Every failure of the disk becomes a `StoreError` of one line. A completed write has reached the operating system, so a
killed process loses nothing. A power failure may lose the writes of the last seconds. Only the user can read the files.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

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
from webfountain.scratch import Scratch
from webfountain.store.embedded.keys import after
from webfountain.store.locations import ANOTHER_STORE, is_in_use

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["CACHE_BYTES", "Disk", "WriteBatch", "open_reading", "open_writing", "options"]

MEBIBYTE: Final = 1 << 20
MEMTABLE_BYTES: Final = 64 * MEBIBYTE
BLOCK_BYTES: Final = 4096
CACHE_BYTES: Final = 32 * MEBIBYTE
"""A larger block cache would take hours to fill, and the operating system caches the files too. Index and filter blocks
are not in the block cache, because they would evict each other.
"""
BLOOM_BITS: Final = 10
MEMTABLE_BLOOM: Final = 0.02
"""Share of a memtable for its Bloom filter: two bytes per entry of 100 bytes."""
LOG_BYTES: Final = 4 * MEBIBYTE
"""The log is flushed when it contains at least this many overwritten bytes."""
MOST_TABLES: Final = 8
"""Number of overlapping tables at which a merge starts."""
FEWEST_TABLES: Final = 3
"""Number of overlapping tables at which a merge starts if much of the tables' content was overwritten."""


class Disk:
    """The open RocksDB database of a store."""

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
        """True if this is a read-only view of a store to which another process may write."""
        return self._secondary is not None

    def refresh(self) -> None:
        """Read what the writing process has written since the last call. If nothing is new, the call only lists the
        folder.
        """
        if self._secondary is None:
            return
        written = self._written()  # before the read, so that the next call notices later writes
        if written and written == self._taken_in:
            return
        try:
            self._db.try_catch_up_with_primary()
        except Exception as error:
            raise self._unreadable(error) from None
        self._taken_in = written

    def _written(self) -> set[tuple[str, int]]:
        """Return the names and sizes of the writer's logs and manifests, which change with every write.

        Returns an empty set if the folder cannot be listed.
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
        """Return the value of a key. All reads raise StoreError if the disk is gone or damaged."""
        try:
            return cast("bytes | None", self._db.get(key))
        except Exception as error:
            raise self._unreadable(error) from None

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Return the values of many keys, in their order."""
        try:
            return cast("list[bytes | None]", self._db.get(keys))  # type: ignore[arg-type]  # a list is invariant
        except Exception as error:
            raise self._unreadable(error) from None

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values from `start` to `end` (excluded), as of the beginning of the scan.

        RocksDB gets `end` as a bound, so that it does not read deleted entries after `end`.
        """
        with self._entries(start, end) as found:
            while found.valid():
                yield found.key(), found.value()
                found.next()

    def first_of_each(self, start: bytes, end: bytes, *, width: int) -> Iterator[bytes]:
        """Yield the first key of each group of keys with the same first `width` bytes, from `start` to `end`
        (excluded).
        """
        with self._entries(start, end) as found:
            while found.valid():
                key = found.key()
                yield key
                found.seek(after(key[:width]))

    @contextmanager
    def _entries(self, start: bytes, end: bytes) -> Iterator[RdictIter]:
        """Open an iterator at `start` that ends before `end`. Raises StoreError if the iterator stops early, for
        example at a damaged block.
        """
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        try:
            found = self._db.iter(options)
            found.seek(start)
            yield found
            found.status()  # an iterator also stops at a damaged block
        except Exception as error:
            raise self._unreadable(error) from None
        del options  # RocksDB only has a pointer to the bound, so the options must exist until here

    def write(self, batch: WriteBatch) -> None:
        """Write the whole batch or nothing.

        Raises
        ------
        StoreError
            if the store was opened for reading, or the disk is full or gone.
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
            raise StoreError(f"{self.folder}: cannot write ({_first_line(error)}); this step had no effect") from None
        if self._unchecked > LOG_BYTES:
            self._unchecked = 0
            # If RocksDB cannot flush now, a later write reports it.
            with suppress(Exception):
                self._bound_size()

    def expect_new(self, size_bytes: int) -> None:
        """Announce that `size_bytes` bytes of the next batch are new, so they overwrite no older entries."""
        self._new = size_bytes

    def _bound_size(self) -> None:
        """Flush the log and merge the tables if too much of their content was overwritten."""
        # So the store stays below four times the size of its live data. Else a small store that recrawls its pages
        # would take 100 MB for 6 MB of live data.
        overlapping = self._number("num-files-at-level0")
        if overlapping < self._overlapping:
            self._replaced_in_tables = 0
        self._overlapping = overlapping
        # RocksDB's own estimate counts only one of the overlapping tables.
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
        """Release files and lock after a sync, so that a power failure loses nothing. A second call has no effect."""
        if not self._open:
            return
        self._open = False
        if not self.read_only:
            (self.folder / "holder").unlink(missing_ok=True)
        # A full or missing disk was reported by the step that failed; completed steps are in the log.
        with suppress(Exception):
            if not self.read_only:
                self._db.flush_wal(True)
            self._db.close()
        if self._secondary is None:
            _make_private(self.folder)
        else:
            self._secondary.close()


def open_writing(folder: Path) -> Disk:
    """Open the database of a store for writing; create its folder if needed.

    Raises
    ------
    StoreHeld
        if another process writes to it; the message names the process.
    StoreError, PermissionError
        if the folder cannot be created, written or read.
    """
    try:
        with _private_files():
            (folder / "db").mkdir(parents=True, exist_ok=True)
            db = _database(folder / "db", options(), AccessType.read_write())
            disk = Disk(folder, db, secondary=None)
    except PermissionError:
        raise  # the command line says whose folder it is
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
    """Open a read-only view of a database to which another process may write. `Disk.refresh` brings the view up to
    date, except on a read-only file system.

    Raises
    ------
    StoreError
        if there is no store in the folder, or it cannot be read.
    """
    if not (folder / "db" / "CURRENT").exists():
        raise StoreError(f"{folder}: there is no store here; a crawl creates one")
    private = None
    try:
        private = Scratch()
        chosen = options()
        chosen.create_if_missing(False)
        chosen.set_max_open_files(-1)
        # Otherwise each refresh would start sixteen threads to open new tables. That took 0.8 of the 1.0 ms of a poll.
        chosen.set_max_file_opening_threads(1)
        # A view loads far more entries than it reads. Without the filter, loading a step of 200 pages takes 0.4 ms
        # less.
        chosen.set_memtable_prefix_bloom_ratio(0.0)
        chosen.set_memtable_whole_key_filtering(False)
        db = _database(_writable(folder / "db", private), chosen, AccessType.secondary(str(private.path)))
        db.try_catch_up_with_primary()
    except Exception as error:
        if private is not None:
            private.close()
        raise StoreError(f"{folder}: cannot read the store ({_first_line(error)})") from None
    return Disk(folder, db, secondary=private)


def _writable(database: Path, private: Scratch) -> Path:
    """Return the database's folder. If the folder is not writable, return a new folder with links to the database's
    files.
    """
    # Even for reading, rocksdict writes its own options into the folder.
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
    """Let only the user read the files that are created while the context is open."""
    # The umask applies to all threads of the process.
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _make_private(folder: Path) -> None:
    """Remove other users' access to files that RocksDB's threads or older versions of webfountain created."""
    with suppress(OSError):
        (folder / "db").chmod(0o700)
        for file in (folder / "db").iterdir():
            with suppress(FileNotFoundError):  # a table that was merged meanwhile
                file.chmod(0o600)


def _database(database: Path, options: Options, access: AccessType) -> Rdict:
    # Named, because rocksdict applies `options` only to named or new column families.
    return Rdict(str(database), options, column_families={"default": options}, access_type=access)


def options() -> Options:
    """Return the options of a store's database, with a new block cache."""
    table = BlockBasedOptions()
    # Its reads take no lock: 6 % more mixed links per CPU second than with an LRU cache of the same size.
    table.set_block_cache(Cache.new_hyper_clock_cache(CACHE_BYTES, BLOCK_BYTES))
    table.set_bloom_filter(BLOOM_BITS, False)
    table.set_block_size(BLOCK_BYTES)
    table.set_format_version(5)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(table)
    options.set_write_buffer_size(MEMTABLE_BYTES)
    options.set_max_write_buffer_number(3)
    # A read tries the memtable first, and a Bloom filter is faster than a search of its skip list.
    options.set_memtable_whole_key_filtering(True)
    options.set_memtable_prefix_bloom_ratio(MEMTABLE_BLOOM)
    options.set_target_file_size_base(64 * MEBIBYTE)
    # No compression: lz4 took 83 bytes per URL on disk instead of 177, but filling, new and mixed links were 11 to 17 %
    # slower. With more files before a merge with the level below, new links cost less. Leases cost more, because they
    # read all files. With six files the compaction of 2.8 million links took 3.5 CPU seconds, with twelve 1.9, and
    # leases were 11 % slower. Universal compaction of six runs took 2.4, of eight 2.2, and its leases read as many
    # files. (One run each on a busy machine, sizes divided by five or seven.)
    options.set_level_zero_file_num_compaction_trigger(MOST_TABLES)
    options.set_max_bytes_for_level_base(512 * MEBIBYTE)
    options.set_compression_type(DBCompressionType.none())
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_stats_dump_period_sec(0)
    return options


def _is_held(folder: Path, error: Exception) -> bool:
    """Return whether an error says that this process or another has the database open."""
    line = _first_line(error)
    if line.startswith("IO error: lock hold by current process"):
        return True
    return line.startswith("IO error: While lock file") and is_in_use(folder)


def _held(folder: Path) -> str:
    note = folder / "holder"
    try:
        holder = json.loads(note.read_text())
        since = datetime.fromtimestamp(note.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        mine = (holder["pid"], holder["host"]) == (os.getpid(), socket.gethostname())
        who = f"{'this ' if mine else ''}process {holder['pid']} on {holder['host']} since {since}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "another process"
    return (
        f"{folder}: the store is held by {who}; stop that crawl first, {ANOTHER_STORE}, "
        "or use `webfountain now` and `webfountain status`, which work while it runs"
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
