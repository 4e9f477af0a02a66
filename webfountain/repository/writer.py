"""Write the folder of WARC files: append records, rotate files and recover after a kill.

A finished write survives SIGKILL. A file that is full or closed also survives a power failure (fsync).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from webfountain.errors import RepositoryError, RepositoryHeld
from webfountain.records import Copy
from webfountain.repository.folder import Folder, pack_moves
from webfountain.repository.index import IndexRow, beside, open_private, pack, recover

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webfountain.clock import Clock
    from webfountain.repository.warc_writer import Member, WarcWriter

__all__ = ["Writer"]


class Writer:
    """The only writer of a folder of WARC files. Thread-safe.

    Parameters
    ----------
    directory : the folder; if it does not exist, it is created, private to the user
    records : writes the warcinfo record of each new file
    given_out : the largest file number that may still be in use; new files get larger numbers
    repository : number of this repository among those of the crawl's ants
    rotate_bytes : size at which a file is closed; the batch that reaches it is still written to it

    Raises
    ------
    RepositoryError
        if another process writes here, or the folder cannot be created or written.
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
        """Return the number of the file that is being written."""
        return self._number

    def append(self, members: Sequence[Member]) -> list[Copy]:
        """Append records to one file with a single write call, and return their locations.

        Raises
        ------
        RepositoryError
            if the disk is full, or the folder was removed or replaced. Then nothing of the batch is stored.
        """
        with self._mutex:
            self._check_open()
            if self._size >= self._rotate_bytes:
                self.rotate()
            with self._trouble("written"):
                self._check_in_place()
                return self._append(members)

    def rotate(self) -> int:
        """Close the file being written, start the next one, and return its number."""
        with self._mutex, self._trouble("written"):
            self._check_open()
            self._close_file()
            self._begin(self._number + 1)
            return self._number

    def close(self) -> None:
        """Write everything to disk, and release the lock. A second call has no effect."""
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
        """Write the (old, new) locations of copied records to the ``.moved`` file. Call this method before page records
        get the new locations."""
        path = next(self.directory.glob(f"webfountain-*-{number:08d}.warc.gz"))
        with self._trouble("written"), open(beside(path, ".moved"), "ab", opener=open_private) as file:
            file.write(pack_moves(moves))

    def delete(self, number: int) -> int:
        """Remove a closed file and its index, and return the freed bytes."""
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
        """Continue the newest file, or start the next file if a part of the newest was lost."""
        # The location of a lost record must never contain another page's record.
        with self._trouble("opened"):
            files = Folder(self.directory).files()
            for path in self.directory.glob("webfountain-*.index"):
                if not beside(path, ".warc.gz").exists():
                    path.unlink()
            # The newest file is never deleted, so its number is the largest that was ever used.
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
        """Check that the file still exists under its name, because writes to a deleted file are lost silently."""
        if self._data < 0:
            self._resume()
        now = os.stat(self._path)
        mine = os.fstat(self._data)
        if now.st_ino != mine.st_ino or now.st_size != self._size:
            raise RepositoryError(f"{self._path} was replaced or changed by another program while it was written")

    @contextlib.contextmanager
    def _trouble(self, verb: str) -> Iterator[None]:
        """Turn an OSError into a RepositoryError of one line."""
        try:
            yield
        except OSError as error:
            where = error.filename or self.directory
            raise RepositoryError(f"repository {where} cannot be {verb}: {error.strerror}") from error


def _hold(directory: Path) -> int:
    """Take the folder's lock: until this process ends, no other process can write to the folder."""
    path = directory / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise RepositoryHeld(
            f"repository {directory} is in use by process {holder}: stop it, or give another folder"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
