"""The folder of WARC files, for reading.

``webfountain-<UTC time>-<number>.warc.gz`` is a WARC file. File numbers only grow, even across restarts. A file
``….index`` is the index of a WARC file. A file ``….moved`` lists the new locations of records that have moved out of a
WARC file. A ``.moved`` file is kept until no page names an old location.

`Folder` needs no lock, even during a crawl.
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
from webfountain.repository.index import rows_of
from webfountain.repository.warc_reader import HEAD_BYTES, Record, parse_beginning, parse_head, parse_record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webfountain.repository.index import IndexRow

__all__ = ["Folder", "pack_moves"]

_NAME: Final = re.compile(r"webfountain-\d{14}-(\d{8,})\.warc\.gz")
_MOVED: Final = struct.Struct("<QIQQI")
_OPEN_FILES: Final = 32


def pack_moves(moves: Sequence[tuple[Copy, Copy]]) -> bytes:
    """Return (old, new) locations in the format of a ``.moved`` file."""
    return b"".join([_MOVED.pack(old.offset, old.length, new.file, new.offset, new.length) for old, new in moves])


class Folder:
    """The files of a repository, for reading. Thread-safe."""

    def __init__(self, directory: Path, *, repository: int = 0) -> None:
        self.directory = directory
        self.repository = repository
        self._paths: dict[int, Path] = {}
        self._open: OrderedDict[int, int] = OrderedDict()
        self._lock = threading.Lock()

    def copy(self, file: int, offset: int, length: int) -> Copy:
        """Return the `Copy` of a location in this repository."""
        return Copy(file, offset, length, self.repository)

    def files(self) -> dict[int, Path]:
        """Return the path of each WARC file by its number, in order of number.

        Raises
        ------
        RepositoryError
            if the folder cannot be listed.
        """
        try:
            found = (_NAME.fullmatch(name) for name in os.listdir(self.directory))
        except OSError as error:
            raise RepositoryError(f"repository {self.directory} cannot be read: {error.strerror}") from error
        numbered = {int(match[1]): self.directory / match[0] for match in found if match}
        self._paths = dict(sorted(numbered.items()))
        return self._paths

    def member(self, copy: Copy) -> bytes:
        """Return the bytes of one record, even if it has moved.

        Raises
        ------
        RepositoryError
            if no file contains it any more, or the file is shorter than it should be.
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
        """Follow the ``.moved`` files, and return the current location of a copy. Raise RepositoryError if the copy was
        deleted.
        """
        files = self._paths
        if copy.file not in files or not files[copy.file].exists():
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
        """Return whether the file at the current location of a copy is long enough to contain the copy."""
        try:
            place = self.place(copy)
            return self._paths[place.file].stat().st_size >= place.offset + place.length
        except (RepositoryError, OSError):
            return False

    def record(self, copy: Copy, *, most: int | None = None) -> Record:
        """Return one whole record, or the first `most` bytes of it. Raise RepositoryError if the record is missing or
        damaged.
        """
        try:
            if most is None:
                return parse_record(self.member(copy))
            place = self.place(copy)
            beginning = self.copy(place.file, place.offset, min(place.length, most))
            return parse_beginning(self.member(beginning), most)
        except RepositoryError as error:
            raise RepositoryError(f"{self.directory}, file {copy.file}, offset {copy.offset}: {error}") from None

    def head(self, number: int, row: IndexRow) -> Record:
        """Return only the WARC header of a record."""
        start = self.copy(number, row.offset, min(row.length, HEAD_BYTES))
        try:
            return parse_head(self.member(start))
        except ValueError:
            return self.record(self.copy(number, row.offset, row.length))

    def rows(self, number: int) -> list[IndexRow]:
        """Return the records of a WARC file, from its index or by a scan."""
        return rows_of(self.files()[number])

    def moved_files(self) -> dict[int, Path]:
        return {int(path.stem.rpartition("-")[2]): path for path in self.directory.glob("webfountain-*-*.moved")}

    def moves(self, number: int) -> dict[tuple[int, int], Copy]:
        """Return the new locations of the records that were moved out of a file, by their old (offset, length)."""
        for path in self.directory.glob(f"webfountain-*-{number:08d}.moved"):
            with contextlib.suppress(FileNotFoundError):
                data = path.read_bytes()
                whole = len(data) - len(data) % _MOVED.size
                return {(row[0], row[1]): self.copy(*row[2:]) for row in _MOVED.iter_unpack(data[:whole])}
        return {}

    def bytes_on_disk(self) -> int:
        total = 0
        for root, _, names in os.walk(self.directory):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    total += os.stat(os.path.join(root, name)).st_size
        return total

    def let_go(self, number: int | None = None) -> None:
        """Close the cached file with the number `number`, or all cached files."""
        with self._lock:
            for each in list(self._open) if number is None else [number]:
                descriptor = self._open.pop(each, None)
                if descriptor is not None:
                    os.close(descriptor)

    def _pread(self, copy: Copy) -> bytes | None:
        """Return the bytes at a location; None if the file does not exist."""
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
