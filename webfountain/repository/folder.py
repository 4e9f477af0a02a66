"""The folder of WARC files, for reading: names and numbers, records by place, records that moved.

``webfountain-<UTC time>-<number>.warc.gz`` is a WARC file; numbers only grow, also over restarts. ``….index``
is its index (`index`). ``….moved`` says where the records of a file went that compaction or a take-down
rewrote: a page that was leased meanwhile, or is settled late, may still name the old place. Reading follows
the rows; `tidy` mends the page later.

`Folder` needs no lock and reads beside a running crawl, also in another process. It knows no store.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from webfountain.errors import RepositoryError
from webfountain.records import Copy
from webfountain.repository.index import Row, rows_of
from webfountain.repository.record import HEAD_BYTES, Record, parse_head, parse_record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Folder", "pack_moves"]

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

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._paths: dict[int, Path] = {}
        self._open: OrderedDict[int, int] = OrderedDict()
        self._lock = threading.Lock()

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

    def head(self, number: int, row: Row) -> Record:
        """The WARC header of a record, without unpacking the rest."""
        start = Copy(file=number, offset=row.offset, length=min(row.length, HEAD_BYTES))
        try:
            return parse_head(self.member(start))
        except ValueError:
            return self.record(Copy(file=number, offset=row.offset, length=row.length))

    def rows(self, number: int) -> list[Row]:
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
                return {(row[0], row[1]): Copy(*row[2:]) for row in _MOVED.iter_unpack(data[:whole])}
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
