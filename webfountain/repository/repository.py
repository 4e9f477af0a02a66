"""`Repository`, the entry point of this package, keeps the newest copy of each page within a size limit.

Records are written first; only then are links discovered and pages settled (DESIGN.md section 3). Until `settled` is
called, `tidy` spares the new copies, because no page record names them. `tidy` runs once per period, never in the
reactor's thread. `Pages` needs no lock, so ``webfountain cat`` can run during a crawl.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from webfountain.clock import SystemClock
from webfountain.errors import RepositoryError, RepositoryHeld
from webfountain.policy.tables import RepositoryTable
from webfountain.repository.folder import Folder
from webfountain.repository.retention import FILES_PER_LIMIT, ErasureResult, Retention
from webfountain.repository.warc_reader import StoredCopy, stored
from webfountain.repository.warc_writer import Member, WarcWriter, target_uri
from webfountain.repository.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webfountain.clock import Clock
    from webfountain.records import Copy
    from webfountain.repository.retention import CopyStore, TidyResult
    from webfountain.repository.warc_writer import Capture

__all__ = ["GIGABYTE", "IdleFolders", "Pages", "Repository", "folder_of_ant"]

GIGABYTE = 1_000_000_000


def folder_of_ant(directory: Path, number: int) -> Path:
    """Return the folder of an ant in a crawl with many ants."""
    return directory / f"ant-{number:04d}"


class Pages:
    """A repository opened for reading, while another process may write to it.

    Parameters
    ----------
    directory : the folder of copies; in a crawl with many ants it contains one folder per ant
    places : paths of ants' folders that are in other places
    """

    def __init__(self, directory: Path | str, *, places: Mapping[int, str] | None = None) -> None:
        self._directory = Path(directory)
        self._places = places or {}
        self._folders: dict[int, Folder] = {}

    def read(self, copy: Copy, url: str, *, most: int | None = None) -> StoredCopy:
        """Return the copy of the page `url`, with its body after content decoding.

        If `most` is given, at most `most` bytes are read, so a large body is truncated.

        Raises
        ------
        RepositoryError
            if the copy is missing, damaged, or belongs to another page; the message says where.
        """
        folder = self._folder(copy.repository)
        if copy.repository and not folder.directory.is_dir():
            where = self._places.get(copy.repository, "an unknown place")
            raise RepositoryError(
                f"the copy of {url} is with ant {copy.repository} at {where}, not in {self._directory}"
            )
        return _read(folder, copy, url, most)

    def versions(self, copy: Copy, url: str, *, most: int | None = None) -> Iterator[StoredCopy]:
        """Yield the existing copies of the page `url`, newest first, beginning at `copy`.

        With `keep = "newest"`, `tidy` removes older copies over time. If the newest copy cannot be read,
        RepositoryError is raised as in `read`. An older copy that cannot be read ends the iteration.
        """
        found = self.read(copy, url, most=most)
        yield found
        while found.before is not None:
            try:
                older = self.read(found.before, url, most=most)
            except RepositoryError:
                return
            if older.at >= found.at:  # a damaged record could lead back to itself
                return
            found = older
            yield found

    def reaches(self, number: int) -> bool:
        """Return whether the folder of an ant can be read on this machine."""
        return self._folder(number).directory.is_dir()

    def may_hold(self, copy: Copy) -> bool:
        """Return whether a copy may still exist. If the folder of the copy's ant cannot be read on this machine, return
        True.
        """
        folder = self._folder(copy.repository)
        return folder.holds(copy) or (copy.repository != 0 and not folder.directory.is_dir())

    def close(self) -> None:
        """Close the files that were kept open for reading."""
        for folder in self._folders.values():
            folder.let_go()

    def _folder(self, number: int) -> Folder:
        if number not in self._folders:
            path = folder_of_ant(self._directory, number) if number else self._directory
            self._folders[number] = Folder(path, repository=number)
        return self._folders[number]


class Repository:
    """The only writer of a folder of WARC files. Thread-safe.

    Parameters
    ----------
    directory : the folder; if it does not exist, it is created, readable by the user only
    number : number of this ant in a crawl with many ants, whose folders are neighbours (`folder_of_ant`); 0: the only
        ant
    rules : what the collection stores: the newest copies or all versions, the limit in bytes, and whether other answers
        are stored too
    rotate_bytes : size at which a file is closed and the next one is started, bytes
    given_out : the largest file number that the store names; the number of a lost file is never used again
    software : name and user agent of the writer for the warcinfo records

    Raises
    ------
    RepositoryError
        if another process writes here, or the folder cannot be created or written.
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        rules: RepositoryTable | None = None,
        number: int = 0,
        rotate_bytes: int = GIGABYTE,
        given_out: int = 0,
        software: str = "webfountain",
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        rules = rules or RepositoryTable()
        if rules.max_bytes is not None:
            rotate_bytes = max(1, min(rotate_bytes, rules.max_bytes // FILES_PER_LIMIT))
        self.keep_answers = rules.keep_answers
        """True if the collection stores all responses, not only copies of pages."""
        self._records = WarcWriter(software=software)
        self._writer = Writer(
            Path(directory),
            records=self._records,
            clock=clock,
            rotate_bytes=rotate_bytes,
            given_out=given_out,
            repository=number,
        )
        self._folder = Folder(Path(directory), repository=number)
        self.others = IdleFolders(Path(directory).parent) if number else None
        """The folders of ants that no longer run, or None if the crawl has only one ant."""
        self._others = Pages(Path(directory).parent if number else directory)
        self._number = number
        self._retention = Retention(self._folder, self._writer, rules=rules, rotate_bytes=rotate_bytes)
        # Two locks, because `settled` may be called where waiting for a disk is not allowed.
        self._writing = threading.Lock()
        self._counting = threading.Lock()
        self._unsettled: Counter[int] = Counter()

    def write(self, captures: Sequence[Capture]) -> list[Copy | None]:
        """Write all fetches or none. After a successful call, a kill loses none of the fetches. Return the location of
        each body; None for a revisit or a fetch without a response.

        Raises
        ------
        RepositoryError
            if the disk is full or the folder cannot be written; then nothing of the batch is stored, and the caller
            must not settle its pages.
        """
        groups = [self._records.members(capture) for capture in captures]
        members = [member for group in groups for member in group]
        if not members:
            return [None for _ in groups]
        with self._writing:
            places = iter(self._writer.append(members))
            copies = [_first_copy(group, places) for group in groups]
            with self._counting:
                self._unsettled.update(copy.file for copy in copies if copy is not None)
        return copies

    def settled(self, copies: Iterable[Copy | None]) -> None:
        """Record that the pages of these copies were settled, or that their leases were lost.

        `copies` must be copies that `write` returned.

        Until `settled` is called, `tidy` does not delete the files of these copies.
        """
        with self._counting:
            self._unsettled.subtract(copy.file for copy in copies if copy is not None)
            self._unsettled = +self._unsettled

    def read(self, copy: Copy, url: str) -> StoredCopy:
        """Return a copy as `Pages.read` does. The copy may be in the folder of another ant on this machine."""
        if copy.repository != self._number:
            return self._others.read(copy, url)
        return _read(self._folder, copy, url)

    def reaches(self, number: int) -> bool:
        return number == self._number or self._others.reaches(number)

    def holds(self, copy: Copy) -> bool:
        """Return whether the file of a copy exists, and is long enough to contain the copy."""
        return self._folder.holds(copy) if copy.repository == self._number else self._others.may_hold(copy)

    def is_untidy(self) -> bool:
        """Return whether `tidy` is due, by the number of bytes written since its last run."""
        return self._retention.is_due()

    def tidy(self, store: CopyStore) -> TidyResult:
        """Delete superseded files, and keep the folder within `max_bytes`.

        Raises
        ------
        RepositoryError
            if the folder is above `max_bytes` and contains only live copies. The crawl must end.
        """
        return self._retention.tidy(store, self._unsettled_files)

    def erase(
        self,
        is_forgotten: Callable[[str], bool],
        store: CopyStore,
        *,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> ErasureResult:
        """Remove every record for whose URL `is_forgotten` returns True."""
        return self._retention.erase(is_forgotten, store, progress=progress)

    def bytes_on_disk(self) -> int:
        return self._folder.bytes_on_disk()

    def free_bytes(self) -> int:
        """Return the free bytes on the folder's disk, or the largest number if they are unknown."""
        try:
            return shutil.disk_usage(self._folder.directory).free
        except OSError:
            return sys.maxsize

    def close(self) -> None:
        """Write everything to disk, and release the lock."""
        self._folder.let_go()
        self._others.close()
        self._writer.close()

    def _unsettled_files(self) -> Counter[int]:
        with self._writing, self._counting:
            return self._unsettled.copy()


class IdleFolders:
    """The folders of ants that no longer run, from which copies can be erased.

    Parameters
    ----------
    directory : the crawl's folder of copies, which is not created
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.held: list[Path] = []
        """The folders that the last `erase` skipped, because ants write there."""

    def erase(self, is_forgotten: Callable[[str], bool], store: CopyStore) -> ErasureResult:
        """Remove records as `Repository.erase` does, from each folder to which no ant writes."""
        records = files = 0
        self.held.clear()
        for place in sorted(self._directory.glob("ant-*")):
            try:
                repository = Repository(place, number=int(place.name.removeprefix("ant-")))
            except RepositoryHeld:
                self.held.append(place)
                continue
            with contextlib.closing(repository):
                done = repository.erase(is_forgotten, store)
                records, files = records + done.records, files + done.files
        return ErasureResult(records, files)


def _read(folder: Folder, copy: Copy, url: str, most: int | None = None) -> StoredCopy:
    """Return a copy; raise RepositoryError if its record belongs to another page."""
    found = stored(folder.record(copy, most=most))
    if found.url != target_uri(url):
        raise RepositoryError(
            f"{folder.directory}, file {copy.file}, offset {copy.offset}: the record is of {found.url}, not of {url}"
        )
    return found


def _first_copy(group: Sequence[Member], places: Iterator[Copy]) -> Copy | None:
    """Return the location of the response record among the records of one fetch."""
    mine = [next(places) for _ in group]
    return mine[0] if group and group[0].kind == "response" else None
