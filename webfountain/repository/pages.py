"""The repository: the newest copy of each page on disk, bounded in size, readable at any time.

Place in the walk: `write` comes first in the order of durability (DESIGN.md section 3): records written →
links discovered → settled. Then the crawl says so with `settled`: a copy that no page record names yet must not
be taken for a superseded one. `tidy` runs once a period, never on the reactor's thread; `erase` is the
take-down. `Pages` only reads and needs no lock: ``webfountain cat`` uses it beside a running crawl.

It does not keep texts (`text`), decide what is a change, or know policies.
"""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from webfountain.clock import SystemClock
from webfountain.errors import RepositoryError
from webfountain.repository.folder import Folder
from webfountain.repository.record import Stored, stored
from webfountain.repository.retention import FILES_PER_LIMIT, CopyStore, Erased, Retention, Tidied
from webfountain.repository.warc import WarcWriter, target_uri
from webfountain.repository.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webfountain.clock import Clock
    from webfountain.records import Copy
    from webfountain.repository.warc import Capture, Member

__all__ = ["GIGABYTE", "Keep", "Pages", "Repository"]

GIGABYTE = 1_000_000_000
Keep = Literal["newest", "all"]


class Pages:
    """A repository that somebody else may be writing, opened for reading."""

    def __init__(self, directory: Path | str) -> None:
        self._folder = Folder(Path(directory))

    def read(self, copy: Copy, url: str) -> Stored:
        """The copy of the page `url`: how it was answered, and its body after content decoding.

        Raises
        ------
        RepositoryError
            when the copy is not there, damaged, or another page's; the text says where.
        """
        return _read(self._folder, copy, url)

    def close(self) -> None:
        """Close the files that are kept open for reading."""
        self._folder.let_go()


class Repository:
    """The one writer of a folder of WARC files. Safe to share between threads.

    Parameters
    ----------
    directory : made, readable by the user only, when it is not there
    keep : "newest" deletes files whose copies are all superseded; "all" deletes nothing
    max_bytes : size of the folder that `tidy` keeps to, bytes; None: no limit
    keep_answers : whether the caller should write answers that are no copy, too; they are nobody's newest copy
    rotate_bytes : size at which a file is closed and the next begun, bytes
    given_out : the greatest file number that the store names; a lost file's number is not given out again
    software : what the warcinfo records name as the writer, with its user agent

    Raises
    ------
    RepositoryError
        when another process writes here, or the folder cannot be made or written.
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        keep: Keep = "newest",
        max_bytes: int | None = None,
        keep_answers: bool = False,
        rotate_bytes: int = GIGABYTE,
        given_out: int = 0,
        software: str = "webfountain",
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        if max_bytes is not None:
            rotate_bytes = max(1, min(rotate_bytes, max_bytes // FILES_PER_LIMIT))
        self.keep_answers = keep_answers
        self._records = WarcWriter(software=software)
        self._writer = Writer(
            Path(directory), records=self._records, clock=clock, rotate_bytes=rotate_bytes, given_out=given_out
        )
        self._folder = Folder(Path(directory))
        self._retention = Retention(
            self._folder, self._writer, keep_all=keep == "all", max_bytes=max_bytes, rotate_bytes=rotate_bytes
        )
        # Two locks: `settled` may be called where nothing may wait for a disk.
        self._writing = threading.Lock()
        self._counting = threading.Lock()
        self._unsettled: Counter[int] = Counter()

    def write(self, captures: Sequence[Capture]) -> list[Copy | None]:
        """Write fetches, all or none; for each where its body is, None for a revisit or a fetch without an answer.

        When it returns, the records survive the death of the process.

        Raises
        ------
        RepositoryError
            when the disk is full or the folder cannot be written; nothing of the batch is kept. Settle nothing.
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
        """The pages of these copies (as `write` returned them) were settled, or their leases were lost.

        Until then `tidy` leaves their files alone.
        """
        with self._counting:
            self._unsettled.subtract(copy.file for copy in copies if copy is not None)
            self._unsettled = +self._unsettled

    def read(self, copy: Copy, url: str) -> Stored:
        """As `Pages.read`."""
        return _read(self._folder, copy, url)

    def holds(self, copy: Copy) -> bool:
        """Whether a copy is likely still there: its file is, and is long enough. Costs a look at the file's size."""
        return self._folder.holds(copy)

    def is_untidy(self) -> bool:
        """Whether so much was written since the last `tidy` that something may have to go."""
        return self._retention.is_due()

    def tidy(self, store: CopyStore) -> Tidied:
        """Delete what is superseded, keep to `max_bytes`; without it, to a few times what is live.

        Raises
        ------
        RepositoryError
            when the folder is above `max_bytes` and only live copies are left. The crawl must end.
        """
        return self._retention.tidy(store, self._unsettled_files)

    def erase(
        self,
        is_forgotten: Callable[[str], bool],
        store: CopyStore,
        *,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Erased:
        """Remove every record, of every version, whose URL `is_forgotten` (take-down). See `Retention.erase`."""
        return self._retention.erase(is_forgotten, store, progress=progress)

    def bytes_on_disk(self) -> int:
        """Size of the folder, in bytes."""
        return self._folder.bytes_on_disk()

    def close(self) -> None:
        """Make all durable and let other processes write. A second call has no effect."""
        self._folder.let_go()
        self._writer.close()

    def _unsettled_files(self) -> Counter[int]:
        with self._writing, self._counting:
            return self._unsettled.copy()


def _read(folder: Folder, copy: Copy, url: str) -> Stored:
    """A copy whose record says that it is of this page: after a loss, a place may hold another page's."""
    found = stored(folder.record(copy))
    if found.url != target_uri(url):
        raise RepositoryError(
            f"{folder.directory}, file {copy.file}, offset {copy.offset}: the record is of {found.url}, not of {url}"
        )
    return found


def _first_copy(group: Sequence[Member], places: Iterator[Copy]) -> Copy | None:
    """Of one fetch's records the place of its body; takes from `places` as many as the fetch has records."""
    mine = [next(places) for _ in group]
    return mine[0] if group and group[0].kind == "response" else None
