"""The folder of WARC files: its index, what is read of it, what is appended to it.

The folder of WARC files, for reading: names and numbers, records by place, records that moved. ``webfountain-<UTC
time>-<number>.warc.gz`` is a WARC file; numbers only grow, also over restarts. ``….index`` is its index.
``….moved`` says where the records of a file went that compaction or a take-down rewrote: a page that was leased
meanwhile, or is settled late, may still name the old place. Reading follows the rows; `tidy` mends the page later.

`Folder` needs no lock and reads beside a running crawl, also in another process. It knows no store.

The records of one WARC file: its index, and the scan that makes or completes it. Beside ``NAME.warc.gz`` lies
``NAME.index``: one row of 13 bytes per record (offset, length, kind), appended after the record. It is the
checkpoint: after a kill only what lies behind its last row is scanned, never the whole gigabyte, and the torn last
member is cut off. It can be deleted at any time: it is made anew from the file, once. It says nothing of pages: which
records are live is the store's to know.

Appending to the folder of WARC files: one writer, rotation, recovery after a kill. Place in the walk: before a page's
links are discovered and the page is settled, its records are here. A write is safe against SIGKILL when it returns
(one write call hands the batch to the kernel), against a power cut once its file was closed or full (fsync). It does
not know which records are live; `tidy` does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
import threading
from collections import OrderedDict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, get_args

import msgspec
from isal import isal_zlib

from webfountain.errors import RepositoryError, RepositoryHeld
from webfountain.records import Copy
from webfountain.repository.warc import (
    GZIP,
    HEAD_BYTES,
    GzipError,
    Kind,
    Record,
    parse_head,
    parse_record,
    parse_unpacked,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webfountain.clock import Clock
    from webfountain.repository.warc import Member, WarcWriter

__all__ = [
    "Folder",
    "IndexRow",
    "Recovered",
    "Summary",
    "Writer",
    "beside",
    "open_private",
    "pack",
    "pack_moves",
    "recover",
    "rows_of",
    "summary",
]

_ROW: Final = struct.Struct("<QIB")
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_CHUNK: Final = 1 << 15


class IndexRow(msgspec.Struct, frozen=True, gc=False):
    """One record of a file: its byte range and its kind."""

    offset: int
    length: int
    kind: Kind

    @property
    def end(self) -> int:
        """Offset of the byte behind the record."""
        return self.offset + self.length


class Summary(msgspec.Struct, frozen=True, gc=False):
    """Of one file: number of records, and of responses; `copy_bytes` of the responses with their requests."""

    records: int
    responses: int
    copy_bytes: int


def beside(path: Path, suffix: str) -> Path:
    """The file of another kind that belongs to a WARC file (or to another one beside it)."""
    return path.with_name(path.name.partition(".")[0] + suffix)


def open_private(path: str, flags: int) -> int:
    """An opener for `open`: only the user may read what is made."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def pack(rows: Sequence[IndexRow]) -> bytes:
    """Rows in the form of the index."""
    return b"".join([_ROW.pack(row.offset, row.length, _KINDS.index(row.kind)) for row in rows])


def rows_of(path: Path) -> list[IndexRow]:
    """The whole records of a file; scanned from its bytes where the index is absent or behind."""
    rows = _indexed(path)
    return rows + list(_scan(path, rows[-1].end if rows else 0))


def summary(path: Path) -> Summary:
    """How much of a file is copies; 0.1 s for a file of a gigabyte."""
    rows = rows_of(path)
    copied = 0
    before: Kind = "warcinfo"
    for row in rows:
        if row.kind == "response" or (row.kind == "request" and before == "response"):
            copied += row.length
        before = row.kind
    return Summary(len(rows), sum(row.kind == "response" for row in rows), copied)


class Recovered(NamedTuple):
    """What is left of a file: its size, and whether records were lost that its index names or its bytes begin."""

    size: int
    cut: bool


def recover(path: Path) -> Recovered:
    """Cut a file behind the last of its whole records and bring its index up to it."""
    index = beside(path, ".index")
    data = index.read_bytes() if index.exists() else b""
    known = len(data) - len(data) % _ROW.size
    with open(path, "rb") as file:
        # After a power cut the index may be ahead of the bytes it names.
        while known and not _is_whole(file, _unpack(data, known)):
            known -= _ROW.size
    end = _unpack(data, known).end if known else 0
    found = list(_scan(path, end))
    end = found[-1].end if found else end
    size = path.stat().st_size
    if end < size:
        os.truncate(path, end)
    if found or known < len(data) or not index.exists():
        with open(index, "wb", opener=open_private) as file:
            file.write(data[:known] + pack(found))
    return Recovered(end, cut=end < size or known < len(data) - len(data) % _ROW.size)


def _indexed(path: Path) -> list[IndexRow]:
    """Rows of a file's index, as far as they follow each other and lie within the file."""
    try:
        data = beside(path, ".index").read_bytes()
        size = path.stat().st_size
    except FileNotFoundError:
        return []
    rows: list[IndexRow] = []
    end = 0
    for offset, length, kind in _ROW.iter_unpack(data[: len(data) - len(data) % _ROW.size]):
        if offset != end or offset + length > size or kind >= len(_KINDS):
            break
        rows.append(IndexRow(offset, length, _KINDS[kind]))
        end = offset + length
    return rows


def _unpack(data: bytes, end: int) -> IndexRow:
    """The row of an index that ends at `end`; one of a kind that is unknown fits no record."""
    offset, length, kind = _ROW.unpack_from(data, end - _ROW.size)
    return IndexRow(offset, length, _KINDS[kind % len(_KINDS)])


def _is_whole(file: BinaryIO, row: IndexRow) -> bool:
    return row.end <= os.fstat(file.fileno()).st_size and _member(file, row.offset) == row


def _scan(path: Path, start: int) -> Iterator[IndexRow]:
    """Whole records from `start` on, up to the first that is torn."""
    with open(path, "rb") as file:
        while (row := _member(file, start)) is not None:
            yield row
            start = row.end


def _member(file: BinaryIO, offset: int) -> IndexRow | None:
    """The record that begins at `offset`; None when it is cut, damaged, or nothing is there."""
    file.seek(offset)
    unpack = isal_zlib.decompressobj(GZIP)
    parts: list[bytes] = []
    read = 0
    try:
        while not unpack.eof:
            data = file.read(_CHUNK)
            if not data:
                return None
            read += len(data)
            parts.append(unpack.decompress(data))
        record = parse_unpacked(b"".join(parts))
    except (GzipError, RepositoryError):
        return None
    kind = record.headers.get("warc-type")
    return IndexRow(offset, read - len(unpack.unused_data), kind) if kind in _KINDS else None


_NAME: Final = re.compile(r"webfountain-\d{14}-(\d{8,})\.warc\.gz")
_MOVED: Final = struct.Struct("<QIQQI")
_OPEN_FILES: Final = 32


def pack_moves(moves: Sequence[tuple[Copy, Copy]]) -> bytes:
    """(old, new) places in the form of a ``.moved`` file."""
    return b"".join([_MOVED.pack(old.offset, old.length, new.file, new.offset, new.length) for old, new in moves])


def _is_there(path: Path | None) -> bool:
    return path is not None and path.exists()


class Folder:
    """The files of a repository, for reading; safe to share between threads."""

    def __init__(self, directory: Path, *, repository: int = 0) -> None:
        self.directory = directory
        self.repository = repository
        self._paths: dict[int, Path] = {}
        self._open: OrderedDict[int, int] = OrderedDict()
        self._lock = threading.Lock()

    def copy(self, file: int, offset: int, length: int) -> Copy:
        """The name of a place in this repository."""
        return Copy(file, offset, length, self.repository)

    def files(self) -> dict[int, Path]:
        """Number -> path of each WARC file that is there now, in order of number.

        Raises
        ------
        RepositoryError
            when the folder cannot be listed.
        """
        try:
            found = (_NAME.fullmatch(name) for name in os.listdir(self.directory))
        except OSError as error:
            raise RepositoryError(f"repository {self.directory} cannot be read: {error.strerror}") from error
        numbered = {int(match[1]): self.directory / match[0] for match in found if match}
        self._paths = dict(sorted(numbered.items()))
        return self._paths

    def member(self, copy: Copy) -> bytes:
        """The bytes of one record, which may have moved since.

        Raises
        ------
        RepositoryError
            when no file holds it any more, or the file is shorter than it should be.
        """
        data = self._pread(copy)
        if data is None:
            copy = self.place(copy)
            data = self._pread(copy)
        if data is None or len(data) < copy.length:
            path = self._paths.get(copy.file, self.directory)
            raise RepositoryError(f"{path} ends before the copy at offset {copy.offset}: it was cut or replaced")
        return data

    def place(self, copy: Copy) -> Copy:
        """Where a copy is now: itself, or where the ``.moved`` files lead to; RepositoryError when nowhere."""
        files = self._paths
        if not _is_there(files.get(copy.file)):
            files = self.files()
        place: Copy | None = copy
        while place is not None and place.file not in files:
            place = self.moves(place.file).get((place.offset, place.length))
        if place is None:
            raise RepositoryError(
                f"the copy at file {copy.file}, offset {copy.offset} is not in repository {self.directory}"
            )
        return place

    def holds(self, copy: Copy) -> bool:
        """Whether there are bytes where a copy should be, or where it moved to; whose they are only reading tells."""
        try:
            place = self.place(copy)
            return self._paths[place.file].stat().st_size >= place.offset + place.length
        except (RepositoryError, OSError):
            return False

    def record(self, copy: Copy) -> Record:
        """One whole record; RepositoryError as for `member`, or when it is damaged."""
        try:
            return parse_record(self.member(copy))
        except RepositoryError as error:
            raise RepositoryError(f"{self.directory}, file {copy.file}, offset {copy.offset}: {error}") from None

    def head(self, number: int, row: IndexRow) -> Record:
        """The WARC header of a record, without unpacking the rest."""
        start = self.copy(number, row.offset, min(row.length, HEAD_BYTES))
        try:
            return parse_head(self.member(start))
        except ValueError:
            return self.record(self.copy(number, row.offset, row.length))

    def rows(self, number: int) -> list[IndexRow]:
        """The records of a file; scanned from its bytes where the index is absent or behind."""
        return rows_of(self.files()[number])

    def moved_files(self) -> dict[int, Path]:
        """Number -> path of each ``.moved`` file."""
        return {int(path.stem.rpartition("-")[2]): path for path in self.directory.glob("webfountain-*-*.moved")}

    def moves(self, number: int) -> dict[tuple[int, int], Copy]:
        """(offset, length) -> new place of the records that left a file."""
        for path in self.directory.glob(f"webfountain-*-{number:08d}.moved"):
            with contextlib.suppress(FileNotFoundError):
                data = path.read_bytes()
                whole = len(data) - len(data) % _MOVED.size
                return {(row[0], row[1]): self.copy(*row[2:]) for row in _MOVED.iter_unpack(data[:whole])}
        return {}

    def bytes_on_disk(self) -> int:
        """Size of everything below the folder, in bytes."""
        total = 0
        for root, _, names in os.walk(self.directory):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    total += os.stat(os.path.join(root, name)).st_size
        return total

    def let_go(self, number: int | None = None) -> None:
        """Close the cached file of one number, or all."""
        with self._lock:
            for each in list(self._open) if number is None else [number]:
                descriptor = self._open.pop(each, None)
                if descriptor is not None:
                    os.close(descriptor)

    def _pread(self, copy: Copy) -> bytes | None:
        """Bytes at a place, None when there is no such file. Under the lock: eviction must not close what is read."""
        with self._lock:
            descriptor = self._descriptor(copy.file)
            try:
                return None if descriptor is None else os.pread(descriptor, copy.length, copy.offset)
            except (OSError, OverflowError) as error:
                raise RepositoryError(f"repository {self.directory}, file {copy.file}: {error}") from error

    def _descriptor(self, number: int) -> int | None:
        descriptor = self._open.pop(number, None)
        if descriptor is None:
            path = self._paths.get(number) or self.files().get(number)
            if path is None:
                return None
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                self._paths.pop(number, None)
                return None
            except OSError as error:
                raise RepositoryError(f"{path} cannot be opened: {error.strerror}") from error
        self._open[number] = descriptor
        if len(self._open) > _OPEN_FILES:
            os.close(self._open.popitem(last=False)[1])
        return descriptor


class Writer:
    """The one process that appends. Its calls are safe from several threads.

    Parameters
    ----------
    directory : made, private to the user, when it is not there
    records : writes the warcinfo record of each new file
    given_out : the greatest file number that somebody may still name; no file gets it or a lesser one again
    repository : its number among those of the crawl's ants
    rotate_bytes : a file that has reached this size is closed; the batch that reaches it still fits in

    Raises
    ------
    RepositoryError
        when another process writes here, or the folder cannot be made or written.
    """

    def __init__(
        self,
        directory: Path,
        *,
        records: WarcWriter,
        clock: Clock,
        rotate_bytes: int,
        given_out: int = 0,
        repository: int = 0,
    ) -> None:
        self.directory = directory
        self._repository = repository
        self._records = records
        self._clock = clock
        self._rotate_bytes = rotate_bytes
        self._mutex = threading.RLock()
        self._data = self._index = -1
        self.appended = 0
        """Bytes that were written since it was opened."""
        with self._trouble("opened"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held = _hold(directory)
        try:
            self._resume(given_out)
        except BaseException:
            os.close(self._held)
            raise

    @property
    def number(self) -> int:
        """Number of the file that is being written."""
        return self._number

    def append(self, members: Sequence[Member]) -> list[Copy]:
        """Write records one after the other into one file, with one write; where each is.

        Raises
        ------
        RepositoryError
            when the disk is full, or the folder was removed or replaced. Nothing of the batch is kept.
        """
        with self._mutex:
            self._check_open()
            if self._size >= self._rotate_bytes:
                self.rotate()
            with self._trouble("written"):
                self._check_in_place()
                return self._append(members)

    def rotate(self) -> int:
        """Close the file being written, durably, and begin the next; its number."""
        with self._mutex, self._trouble("written"):
            self._check_open()
            self._close_file()
            self._begin(self._number + 1)
            return self._number

    def close(self) -> None:
        """Make all durable and let other processes write. A second call has no effect."""
        with self._mutex:
            if self._held < 0:
                return
            try:
                with self._trouble("closed"):
                    self._close_file()
            finally:
                os.close(self._held)
                self._held = -1

    def note_moves(self, number: int, moves: Sequence[tuple[Copy, Copy]]) -> None:
        """Remember, before any page is told, where records of a file were copied to (old, new)."""
        path = next(self.directory.glob(f"webfountain-*-{number:08d}.warc.gz"))
        with self._trouble("written"), open(beside(path, ".moved"), "ab", opener=open_private) as file:
            file.write(pack_moves(moves))

    def delete(self, number: int) -> int:
        """Remove a file and its index, never the one being written; bytes freed."""
        if number == self._number:
            raise ValueError(f"file {number} is being written")
        freed = 0
        with self._trouble("deleted from"):
            for path in self.directory.glob(f"webfountain-*-{number:08d}.warc.gz"):
                for each in (path, beside(path, ".index")):
                    with contextlib.suppress(FileNotFoundError):
                        freed += each.stat().st_size
                        each.unlink()
        return freed

    def _resume(self, given_out: int = 0) -> None:
        """Go on with the newest file; begin the next where its end was lost, or the whole file.

        Pages may still name what was lost: their places must never hold another page's record.
        """
        with self._trouble("opened"):
            files = Folder(self.directory).files()
            for path in self.directory.glob("webfountain-*.index"):
                if not beside(path, ".warc.gz").exists():
                    path.unlink()
            # The newest file is never deleted, so its number is the greatest that was ever given.
            newest = max(files, default=0)
            if newest < max(given_out, 1):
                self._begin(given_out + 1)
                return
            self._number, path = newest, files[newest]
            left = recover(path)
            if left.cut:
                if left.size == 0:
                    path.unlink()
                    beside(path, ".index").unlink(missing_ok=True)
                self._begin(self._number + 1)
                return
            self._open(path, left.size)
            if self._size == 0:
                self._append([])

    def _begin(self, number: int) -> None:
        stamp = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y%m%d%H%M%S")
        self._number = number
        self._open(self.directory / f"webfountain-{stamp}-{number:08d}.warc.gz", 0)
        self._append([])

    def _open(self, path: Path, size: int) -> None:
        self._path, self._size = path, size
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._data = os.open(path, flags, 0o600)
        self._index = os.open(beside(path, ".index"), flags, 0o600)

    def _close_file(self) -> None:
        data, index = self._data, self._index
        self._data = self._index = -1
        for descriptor in (data, index):
            if descriptor >= 0:
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def _append(self, members: Sequence[Member]) -> list[Copy]:
        if self._size == 0:
            members = [self._records.warcinfo(filename=self._path.name, at=self._clock.now()), *members]
        rows: list[IndexRow] = []
        end = self._size
        for member in members:
            rows.append(IndexRow(end, len(member.data), member.kind))
            end = rows[-1].end
        index_size = os.fstat(self._index).st_size
        try:
            _write_all(self._data, b"".join([member.data for member in members]))
            _write_all(self._index, pack(rows))
        except OSError:
            os.ftruncate(self._data, self._size)
            os.ftruncate(self._index, index_size)
            raise
        self.appended += end - self._size
        self._size = end
        repository = self._repository
        return [Copy(self._number, row.offset, row.length, repository) for row in rows if row.kind != "warcinfo"]

    def _check_open(self) -> None:
        if self._held < 0:
            raise RepositoryError(f"repository {self.directory} is closed")

    def _check_in_place(self) -> None:
        """A write into a file that was deleted or replaced succeeds, and is lost: look before each batch."""
        if self._data < 0:
            self._resume()
        now = os.stat(self._path)
        mine = os.fstat(self._data)
        if now.st_ino != mine.st_ino or now.st_size != self._size:
            raise RepositoryError(f"{self._path} was replaced or changed by another program while it was written")

    @contextlib.contextmanager
    def _trouble(self, verb: str) -> Iterator[None]:
        """Say what the system refused in one line."""
        try:
            yield
        except OSError as error:
            where = error.filename or self.directory
            raise RepositoryError(f"repository {where} cannot be {verb}: {error.strerror}") from error


def _hold(directory: Path) -> int:
    """The lock of the folder's one writer; the system lets go of it when the process ends, however it ends."""
    path = directory / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise RepositoryHeld(
            f"repository {directory} is being written by process {holder}: stop it, or give another folder"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
