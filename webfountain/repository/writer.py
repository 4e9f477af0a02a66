"""Appending to the folder of WARC files: one writer, rotation, recovery after a kill.

Place in the walk: before a page's links are discovered and the page is settled, its records are here. A write
is safe against SIGKILL when it returns (one write call hands the batch to the kernel), against a power cut
once its file was closed or full (fsync). It does not know which records are live; `tidy` does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from webfountain.errors import RepositoryError
from webfountain.records import Copy
from webfountain.repository.folder import Folder, pack_moves
from webfountain.repository.index import Row, beside, open_private, pack, recover

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webfountain.clock import Clock
    from webfountain.repository.warc import Member, WarcWriter

__all__ = ["Writer"]


class Writer:
    """The one process that appends. Its calls are safe from several threads.

    Parameters
    ----------
    directory : made, private to the user, when it is not there
    records : writes the warcinfo record of each new file
    given_out : the greatest file number that somebody may still name; no file gets it or a lesser one again
    rotate_bytes : a file that has reached this size is closed; the batch that reaches it still fits in

    Raises
    ------
    RepositoryError
        when another process writes here, or the folder cannot be made or written.
    """

    def __init__(
        self, directory: Path, *, records: WarcWriter, clock: Clock, rotate_bytes: int, given_out: int = 0
    ) -> None:
        self.directory = directory
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
        rows: list[Row] = []
        end = self._size
        for member in members:
            rows.append(Row(end, len(member.data), member.kind))
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
        return [Copy(file=self._number, offset=row.offset, length=row.length) for row in rows if row.kind != "warcinfo"]

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
        raise RepositoryError(
            f"repository {directory} is being written by process {holder}: stop it, or give another folder"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
