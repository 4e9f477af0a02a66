"""The journal of a link log: a file with the rows that are not in a segment yet.

A row is written to the journal before the store records the fetch, and stays there until a segment contains it. Once
the store has recorded a fetch, neither a kill nor a full disk can lose the fetch's row. If a process is killed, the
next process that opens the log moves the rows in its journal into a segment.

Each row is preceded by its length and a checksum. If a journal is damaged, the rows before the damage are recovered,
and the number of lost bytes is logged.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import msgspec

from webfountain.errors import RepositoryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "FOLLOWED",
    "NOFOLLOW",
    "REDIRECT",
    "UNFOLLOWED",
    "JournalRow",
    "LeftRows",
    "LinkJournal",
    "damaged_journals",
    "journal_rows",
    "left_behind",
    "mend_journals",
    "read_rows",
]

logger = logging.getLogger(__name__)

FOLLOWED: Final = 0
NOFOLLOW: Final = 1
REDIRECT: Final = 2
UNFOLLOWED: Final = 4
"""Flags of a link, which can be combined by ``|``. NOFOLLOW: the page asks not to follow the link. REDIRECT: the page
redirects to the target. UNFOLLOWED: the policy refuses the link, or the page with the link is a duplicate."""
_SUFFIX: Final = ".rows"
_frame: Final = struct.Struct("<II")
"""Format of the length and the CRC-32 that precede each row."""
_encode: Final = msgspec.msgpack.Encoder().encode


class JournalRow(msgspec.Struct, frozen=True, array_like=True):
    """A row of the journal: a page with the fingerprints of its links. `names` lists (URL, site) for each fingerprint
    that the log did not contain before."""

    url: str
    site: str
    at: float
    targets: bytes
    target_sites: bytes
    flags: bytes
    anchors: list[str] | None
    names: list[tuple[str, str]]


class LinkJournal:
    """The journal of one process, in a locked file. Not thread-safe."""

    def __init__(self, folder: Path, writer: str) -> None:
        """Create and lock the file. Raise RepositoryError if the disk reports an error."""
        self.path = folder / f"{writer}{_SUFFIX}"
        self._waiting = bytearray()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = self._made()
            self._end = os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise RepositoryError(f"{self.path}: {error}") from error

    def add(self, row: JournalRow) -> None:
        """Add a row, which is written at the next `commit`."""
        encoded = _encode(row)
        self._waiting += _frame.pack(len(encoded), crc32(encoded))
        self._waiting += encoded

    def commit(self) -> None:
        """Write the rows added since the last call. If the disk reports an error, nothing is written and
        RepositoryError is raised.
        """
        if not self._waiting:
            return
        data, self._waiting = bytes(self._waiting), bytearray()
        try:
            if not os.fstat(self._file).st_nlink:
                self._make_again()
            if os.pwrite(self._file, data, self._end) < len(data):
                raise OSError("the disk is full")
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise RepositoryError(f"{self.path}: {error}") from error
        self._end += len(data)

    def clear(self) -> None:
        """Empty the journal. Call this method only when a segment contains the journal's rows."""
        self._waiting.clear()
        try:
            os.ftruncate(self._file, 0)
        except OSError as error:
            raise RepositoryError(f"{self.path}: {error}") from error
        self._end = 0

    def remove(self) -> None:
        """Delete the file of the journal, which must be empty."""
        with suppress(OSError):
            self.path.unlink()

    def close(self) -> None:
        os.close(self._file)

    def _made(self) -> int:
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            # Before this call, another process may take the empty file for one without an owner, and delete it.
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file).st_nlink:
                return file
            os.close(file)

    def _make_again(self) -> None:
        """Copy the deleted journal, which this process still has open, to a new file."""
        logger.warning("%s was deleted; it is written again with its %d bytes", self.path, self._end)
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        deleted, file = self._file, self._made()
        if os.pwrite(file, os.pread(deleted, self._end, 0), 0) < self._end:
            os.close(file)
            raise OSError("the disk is full")
        self._file = file
        os.close(deleted)


class LeftRows(NamedTuple):
    """The journal of a process that has ended: its rows, and the number of lost bytes."""

    writer: str
    rows: list[JournalRow]
    lost: int


def left_behind(folder: Path) -> Iterator[LeftRows]:
    """Yield the journals of processes that have ended.

    The file of a journal is deleted once the caller requests the next journal.

    Raises RepositoryError if the disk reports an error.
    """
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # closed by its writer
            continue
        except OSError as error:
            raise RepositoryError(f"{path}: {error}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(file).st_nlink:  # closed by its writer, or taken over by another process
                continue
            data = path.read_bytes()
            rows, end = read_rows(data)
            if end < len(data):
                logger.warning("%s: damaged: %d rows can be read, %d bytes are lost", path, len(rows), len(data) - end)
            yield LeftRows(path.stem, rows, len(data) - end)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            continue
        except OSError as error:
            raise RepositoryError(f"{path}: {error}") from error
        finally:
            os.close(file)


def read_rows(data: bytes) -> tuple[list[JournalRow], int]:
    """Return the rows of a journal before the first damage, and the offset at which they end."""
    decode = msgspec.msgpack.Decoder(JournalRow).decode
    rows: list[JournalRow] = []
    at = 0
    while at + _frame.size <= len(data):
        length, checksum = _frame.unpack_from(data, at)
        encoded = data[at + _frame.size : at + _frame.size + length]
        if len(encoded) < length or crc32(encoded) != checksum:
            break
        try:
            rows.append(decode(encoded))
        except msgspec.MsgspecError:
            break
        at += _frame.size + length
    return rows, at


def journal_rows(folder: Path) -> Iterator[list[JournalRow]]:
    """Yield the readable rows of each journal, even while another process writes it."""
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        with suppress(OSError):  # its owner may have closed it
            rows, _ = read_rows(path.read_bytes())
            if rows:
                yield rows


def damaged_journals(folder: Path) -> list[str]:
    """Return a line of text for each damaged journal."""
    found: list[str] = []
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        data = path.read_bytes()
        rows, end = read_rows(data)
        if end < len(data):
            found.append(f"{path}: damaged: {len(rows)} rows can be read, {len(data) - end} bytes are lost")
    return found


def mend_journals(folder: Path) -> list[str]:
    """Truncate each damaged journal at its first damaged row, and return a line of text for each journal."""
    found = damaged_journals(folder)
    if found:
        for path in sorted(folder.glob(f"*{_SUFFIX}")):
            os.truncate(path, read_rows(path.read_bytes())[1])
    return found
