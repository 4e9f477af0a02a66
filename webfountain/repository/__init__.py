"""Pages on disk. The life of a copy:

A fetch with a new body becomes a response and a request record (`warc`), appended with its batch to the newest
file (`folder`, which also cuts what a kill tore); the place is a `Copy` in the page's record. Fetches that
repeat it are revisit records. `folder` and `warc` read it back, by number and byte range, for ``cat`` and
change detection. A changed body supersedes it: when a file has no live copy left it is deleted, and above
`max_bytes` the live ones of the emptiest files move. A take-down removes it, all versions.

`Repository` is the door to all this: the newest copy of each page, bounded in size, readable at any time. Place in the
walk: `write` comes first in the order of durability (DESIGN.md section 3): records written →
links discovered → settled. Then the crawl says so with `settled`: a copy that no page record names yet must not
be taken for a superseded one. `tidy` runs once a period, never on the reactor's thread; `erase` is the
take-down. `Pages` only reads and needs no lock: ``webfountain cat`` uses it beside a running crawl.

It does not keep texts, decide what is a change, or know policies.

What leaves the disk: superseded files, compaction under a size limit, take-down. It runs beside the crawl, once a
period and whenever so much was written that something may have to go. Three things may name a place in a file at the
same moment: the store's page records, leases that are out (their records are settled later), and captures that are
written but not settled. So a file goes only when none of the three can need it: it is closed, has no unsettled
capture, and no page names it, directly or by a row of a ``.moved`` file (`folder`).

Each step of moving records survives a kill: copy to the file being written → note the moves → tell the store →
delete the old file. Repeating it from the start loses nothing; at worst dead bytes wait for the next time.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from webfountain.clock import SystemClock
from webfountain.errors import RepositoryError, RepositoryHeld
from webfountain.records import Copy, Move
from webfountain.repository.folder import Folder, Writer, summary
from webfountain.repository.warc import Member, Stored, WarcWriter, stored, target_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webfountain.clock import Clock
    from webfountain.records import PageRecord
    from webfountain.repository.folder import IndexRow, Summary
    from webfountain.repository.warc import Capture, Record

__all__ = [
    "FILES_PER_LIMIT",
    "GIGABYTE",
    "CopyStore",
    "Erased",
    "Keep",
    "Pages",
    "Repository",
    "Retention",
    "Tidied",
    "Unheld",
    "folder_of_ant",
]

_BATCH_BYTES: Final = 4_000_000
_FORWARD_S: Final = 86_400.0
"""How long a ``.moved`` file outlives its use: longer than any lease."""
FILES_PER_LIMIT: Final = 16
"""With `max_bytes` a file is at most this part of it: only closed files can be tidied."""
_HIGH: Final = 0.85
"""Compaction begins at this part of the limit: it needs room for a file, and one more is written meanwhile."""
_ENOUGH: Final = 0.8
"""It goes on to this part, so that it does not run again at once."""
_WORTHWHILE: Final = 0.02
"""A file of which less than this share is superseded counts as live."""
_CHEAP: Final = 0.25
"""Until the limit itself is near, only files of which this share is superseded are rewritten."""
_MOST_PER_LIVE: Final = 2.0
"""Without a limit the folder is compacted at this many times what is live, down to _ENOUGH_PER_LIVE."""
_ENOUGH_PER_LIVE: Final = 1.5
_LEAST_STEP: Final = 32_000_000
"""So many bytes are always written between two looks where there is no limit."""


class CopyStore(Protocol):
    """What is asked of the frontier's store (`store.contract.FrontierStore`)."""

    def copies(self, *, repository: int = 0) -> dict[int, int]:
        """WARC file number -> how many page records name it, of one repository."""
        ...

    def page(self, site: str, key: bytes) -> PageRecord | None:
        """The record of one URL, None when unknown."""
        ...

    def relocate(self, moves: Sequence[Move]) -> int:
        """Let page records follow copies that moved."""
        ...


class Tidied(msgspec.Struct, frozen=True):
    """What one tidying did: files deleted, bytes freed, live copies that were moved."""

    files: int = 0
    bytes: int = 0
    moved: int = 0


class Erased(msgspec.Struct, frozen=True):
    """What a take-down removed: records (requests and revisits too), and the files written anew for it."""

    records: int = 0
    files: int = 0


class Retention:
    """Deletes and rewrites closed files; used by one thread at a time."""

    def __init__(
        self, folder: Folder, writer: Writer, *, keep_all: bool, max_bytes: int | None, rotate_bytes: int
    ) -> None:
        self._folder = folder
        self._writer = writer
        self._keep_all = keep_all
        self._max_bytes = max_bytes
        self._least_step = min(_LEAST_STEP, rotate_bytes)
        self._damaged: set[int] = set()
        self._summaries: dict[int, tuple[int, Summary]] = {}
        self._next_tidy = self._step()

    def is_due(self) -> bool:
        """Whether so much was written since the last `tidy` that it should run again."""
        return self._writer.appended >= self._next_tidy

    def tidy(self, store: CopyStore, unsettled: Callable[[], Counter[int]]) -> Tidied:
        """Delete superseded files, then compact while the folder is near its limit, or far above what is live.

        Raises
        ------
        RepositoryError
            when it would be above its limit even with all that is superseded gone.
        """
        self._mend(store)
        done = Tidied()
        if not self._keep_all:
            done = self._delete_superseded(store, unsettled)
            held = self._folder.bytes_on_disk()
            if self._max_bytes is None:
                live = self._live_bytes(store, unsettled)
                if held > _MOST_PER_LIVE * live + self._least_step:
                    done = self._compact(store, unsettled, done, goal=_ENOUGH_PER_LIVE * live, least=_CHEAP)
            elif held > _HIGH * self._max_bytes:
                near = held > (1 - 2 / FILES_PER_LIMIT) * self._max_bytes
                least = _WORTHWHILE if near else _CHEAP
                done = self._compact(store, unsettled, done, goal=_ENOUGH * self._max_bytes, least=least)
        self._next_tidy = self._writer.appended + self._step()
        if self._max_bytes is not None:
            self._check_limit(store, unsettled)
        return done

    def _step(self) -> float:
        """How many bytes may be written before the next look."""
        if self._max_bytes is not None:
            return self._max_bytes / FILES_PER_LIMIT
        return math.inf if self._keep_all else max(self._least_step, self._folder.bytes_on_disk() / 2)

    def _live_bytes(self, store: CopyStore, unsettled: Callable[[], Counter[int]]) -> float:
        """About how much of the folder compaction would leave."""
        sizes = {number: path.stat().st_size for number, path in self._folder.files().items()}
        shares = self._shares(sizes, store, unsettled())
        return sum((1.0 - share) * sizes[number] for share, number in shares)

    def erase(
        self, is_forgotten: Callable[[str], bool], store: CopyStore, *, progress: Callable[[int, int], None]
    ) -> Erased:
        """Rewrite each file that holds a record of a forgotten URL, without those records.

        The URL of every record on disk is read (no body is unpacked; about 15 µs each), so it takes some
        seconds per gigabyte; `progress` is told (files done, of). A record whose URL cannot be read goes, too.
        What is written while it runs is not looked at: bar the URL first (`FrontierStore.forget`).
        """
        current = self._writer.rotate()
        numbers = [number for number in self._folder.files() if number != current]
        records = rewritten = 0
        for done, number in enumerate(numbers, start=1):
            rows = [row for row in self._folder.rows(number) if row.kind != "warcinfo"]
            kept = [row for row in rows if (head := self._head(number, row)) and not is_forgotten(head.url)]
            if len(kept) < len(rows):
                self._move(store, number, kept)
                self._delete(number)
                records += len(rows) - len(kept)
                rewritten += 1
            progress(done, len(numbers))
        return Erased(records, rewritten)

    def _delete_superseded(self, store: CopyStore, unsettled: Callable[[], Counter[int]]) -> Tidied:
        candidates = self._closed(unsettled)  # before the store is asked: what it was told until then counts
        needed = self._needed(store)
        doomed = [number for number in candidates if number not in needed]
        return Tidied(files=len(doomed), bytes=sum(self._delete(number) for number in doomed))

    def _closed(self, unsettled: Callable[[], Counter[int]]) -> list[int]:
        """Files that may go as far as the crawl is concerned."""
        current, files, waiting = self._writer.number, self._folder.files(), unsettled()
        if any(number not in files for number in waiting):
            return []  # a take-down moved a capture that is not settled: where it is now, no page tells
        return [number for number in files if number < current and number not in waiting]

    def _needed(self, store: CopyStore) -> set[int]:
        """Files that a page names, directly or by way of files that are gone."""
        files = self._folder.files()
        needed: set[int] = set()
        ask = list(self._copies(store))
        while ask:
            number = ask.pop()
            if number not in needed:
                needed.add(number)
                if number not in files:
                    ask.extend({place.file for place in self._folder.moves(number).values()})
        return needed

    def _mend(self, store: CopyStore) -> None:
        """Bring pages up to date that still name files that are gone; forget moves that nobody can name now."""
        files, named = self._folder.files(), self._copies(store)
        for number, path in self._folder.moved_files().items():
            if number in files:
                continue
            if number in named:
                store.relocate(list(self._moves_again(number)))
            elif path.stat().st_mtime < time.time() - _FORWARD_S:
                path.unlink()

    def _moves_again(self, number: int) -> Iterator[Move]:
        for offset, length in self._folder.moves(number):
            old = self._folder.copy(number, offset, length)
            new = self._place(old)
            page = None if new is None else self._page(new)
            if new is not None and page is not None:
                yield Move(*page, old=old, new=new)

    def _page(self, copy: Copy) -> tuple[str, bytes] | None:
        """Whose record stands there; None when it is damaged."""
        try:
            return self._folder.record(copy).page
        except RepositoryError:
            return None

    def _head(self, number: int, row: IndexRow) -> Record | None:
        """The WARC header of a record; None when it is damaged."""
        try:
            return self._folder.head(number, row)
        except RepositoryError:
            return None

    def _place(self, copy: Copy) -> Copy | None:
        """Where a copy is now; None when it was superseded since, and deleted."""
        try:
            return self._folder.place(copy)
        except RepositoryError:
            return None

    def _compact(
        self, store: CopyStore, unsettled: Callable[[], Counter[int]], done: Tidied, *, goal: float, least: float
    ) -> Tidied:
        """Rewrite the files with the smallest live share, `least` of which is superseded, down to `goal` bytes."""
        current = self._writer.number
        if self._shares([current], store, unsettled())[0][0] > least:
            self._writer.rotate()
        shares = self._shares(self._closed(unsettled), store, unsettled())
        for share, number in sorted(shares, reverse=True):
            if number in self._damaged:
                continue
            if share <= least or self._folder.bytes_on_disk() <= goal:
                break
            moved = self._move(store, number, list(self._live_rows(number, store)))
            if number not in self._copies(store):
                done = Tidied(done.files + 1, done.bytes + self._delete(number), done.moved + moved)
            else:
                self._damaged.add(number)  # a page names a record here that cannot be moved: leave the file alone
        return done

    def _live_rows(self, number: int, store: CopyStore) -> Iterator[IndexRow]:
        """Responses that a page names, each with its request record, which follows it."""
        files = self._folder.files()
        with_request = False
        for row in self._folder.rows(number):
            if row.kind == "response":
                copy = self._newest(number, row, store)
                if copy is not None and copy.file not in files:
                    copy = self._place(copy)
                with_request = copy == self._folder.copy(number, row.offset, row.length)
                if with_request:
                    yield row
            elif row.kind == "request" and with_request:
                yield row
            else:
                with_request = False

    def _newest(self, number: int, row: IndexRow, store: CopyStore) -> Copy | None:
        """The newest copy of the page that a response is of, by the store."""
        head = self._head(number, row)
        page = None if head is None else head.page
        record = None if page is None else store.page(*page)
        copy = None if record is None else record.copy
        return copy if copy is not None and copy.repository == self._folder.repository else None

    def _move(self, store: CopyStore, number: int, rows: Sequence[IndexRow]) -> int:
        """Copy records byte for byte to the file being written, tell the store; how many copies moved."""
        moved = 0
        for batch in _batches(rows):
            old = [self._folder.copy(number, row.offset, row.length) for row in batch]
            new = self._writer.append(
                [Member(row.kind, self._folder.member(place)) for row, place in zip(batch, old, strict=True)]
            )
            pairs = [pair for row, *pair in zip(batch, old, new, strict=True) if row.kind == "response"]
            self._writer.note_moves(number, [(before, after) for before, after in pairs])
            heads = [self._head(number, row) for row in batch if row.kind == "response"]
            moves = [
                Move(*head.page, old=before, new=after)
                for head, (before, after) in zip(heads, pairs, strict=True)
                if head is not None and head.page is not None
            ]
            store.relocate(moves)
            moved += len(moves)
        return moved

    def _copies(self, store: CopyStore) -> dict[int, int]:
        """How many page records name each file of this repository."""
        return store.copies(repository=self._folder.repository)

    def _shares(self, numbers: Iterable[int], store: CopyStore, unsettled: Counter[int]) -> list[tuple[float, int]]:
        live = unsettled + Counter(self._copies(store))
        return [(self._superseded_share(number, live[number]), number) for number in numbers]

    def _superseded_share(self, number: int, live: int) -> float:
        """About which share of a file's bytes compaction would free, by the mean size of its responses."""
        path = self._folder.files()[number]
        size = path.stat().st_size
        known, found = self._summaries.get(number, (-1, None))
        if found is None or known != size:
            found = summary(path)
            self._summaries[number] = (size, found)
        if found.records <= 1:
            return 0.0
        return 1.0 - min(live, found.responses) * found.copy_bytes / max(found.responses, 1) / size

    def _check_limit(self, store: CopyStore, unsettled: Callable[[], Counter[int]]) -> None:
        held = self._folder.bytes_on_disk()
        if held <= (self._max_bytes or 0):
            return
        limit = f"more than repository.max_bytes = {self._max_bytes}"
        where = f"repository {self._folder.directory} holds {held} bytes, {limit}"
        if self._keep_all:
            raise RepositoryError(f'{where}, and keep = "all" deletes nothing: raise max_bytes or set keep = "newest"')
        sizes = {number: path.stat().st_size for number, path in self._folder.files().items()}
        shares = self._shares(sizes, store, unsettled())
        # What only became superseded by now is left to the next time; what will not do even then ends the crawl.
        if held - sum(share * sizes[number] for share, number in shares) > (self._max_bytes or 0):
            raise RepositoryError(f"{where}, and only newest copies are left: raise max_bytes or crawl fewer pages")

    def _delete(self, number: int) -> int:
        self._folder.let_go(number)
        self._summaries.pop(number, None)
        return self._writer.delete(number)


def _batches(rows: Iterable[IndexRow]) -> Iterator[list[IndexRow]]:
    """Rows in groups of a few megabytes, an answer never parted from its request."""
    batch: list[IndexRow] = []
    size = 0
    for row in rows:
        if size >= _BATCH_BYTES and row.kind != "request":
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row.length
    if batch:
        yield batch


GIGABYTE = 1_000_000_000
Keep = Literal["newest", "all"]


def folder_of_ant(directory: Path, number: int) -> Path:
    """Where in the folder of copies of a crawl of many ants the one with this number writes."""
    return directory / f"ant-{number:04d}"


class Pages:
    """A repository that somebody else may be writing, opened for reading.

    Parameters
    ----------
    directory : the folder of copies, with those of the crawl's ants, if it has many, in a folder each
    places : of ants whose folder is not there: where it is
    """

    def __init__(self, directory: Path | str, *, places: Mapping[int, str] | None = None) -> None:
        self._directory = Path(directory)
        self._places = places or {}
        self._folders: dict[int, Folder] = {}

    def read(self, copy: Copy, url: str) -> Stored:
        """The copy of the page `url`: how it was answered, and its body after content decoding.

        Raises
        ------
        RepositoryError
            when the copy is not there, damaged, or another page's; the text says where.
        """
        folder = self._folder(copy.repository)
        if copy.repository and not folder.directory.is_dir():
            where = self._places.get(copy.repository, "nobody knows where")
            raise RepositoryError(
                f"the copy of {url} is with ant {copy.repository}, at {where}, and not in {self._directory}"
            )
        return _read(folder, copy, url)

    def reaches(self, number: int) -> bool:
        """Whether the folder of the ant with this number is here."""
        return self._folder(number).directory.is_dir()

    def may_hold(self, copy: Copy) -> bool:
        """Whether a copy is likely still there; one of an ant whose folder is not here is taken to be."""
        folder = self._folder(copy.repository)
        return folder.holds(copy) or (copy.repository != 0 and not folder.directory.is_dir())

    def close(self) -> None:
        """Close the files that are kept open for reading."""
        for folder in self._folders.values():
            folder.let_go()

    def _folder(self, number: int) -> Folder:
        if number not in self._folders:
            path = folder_of_ant(self._directory, number) if number else self._directory
            self._folders[number] = Folder(path, repository=number)
        return self._folders[number]


class Repository:
    """The one writer of a folder of WARC files. Safe to share between threads.

    Parameters
    ----------
    directory : made, readable by the user only, when it is not there
    number : of this ant among those of its crawl, whose folders lie beside this one (`folder_of_ant`); 0: it is alone
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
        number: int = 0,
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
            Path(directory),
            records=self._records,
            clock=clock,
            rotate_bytes=rotate_bytes,
            given_out=given_out,
            repository=number,
        )
        self._folder = Folder(Path(directory), repository=number)
        self.others = Unheld(Path(directory).parent) if number else None
        """Where copies of ants that are gone lie beside; None: there are no other ants."""
        self._others = Pages(Path(directory).parent if number else directory)
        self._number = number
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
        """As `Pages.read`; also a copy of another ant's, where its folder can be reached."""
        if copy.repository != self._number:
            return self._others.read(copy, url)
        return _read(self._folder, copy, url)

    def reaches(self, number: int) -> bool:
        """Whether copies of the ant with this number can be read here, as far as it has written any."""
        return number == self._number or self._others.reaches(number)

    def holds(self, copy: Copy) -> bool:
        """Whether a copy is likely still there: its file is, and is long enough. Costs a look at the file's size."""
        return self._folder.holds(copy) if copy.repository == self._number else self._others.may_hold(copy)

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

    def free_bytes(self) -> int:
        """Bytes left on the disk where it lies; all there could be where that cannot be told: who writes says why."""
        try:
            return shutil.disk_usage(self._folder.directory).free
        except OSError:
            return sys.maxsize

    def close(self) -> None:
        """Make all durable and let other processes write. A second call has no effect."""
        self._folder.let_go()
        self._others.close()
        self._writer.close()

    def _unsettled_files(self) -> Counter[int]:
        with self._writing, self._counting:
            return self._unsettled.copy()


class Unheld:
    """The folders of a crawl of many ants in which none writes now: where copies are taken down for ants that are gone.

    Parameters
    ----------
    directory : the crawl's folder of copies; none is made
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def erase(self, is_forgotten: Callable[[str], bool], store: CopyStore) -> Erased:
        """As `Repository.erase`, folder by folder. One that an ant writes in is left to that ant."""
        records = files = 0
        for place in sorted(self._directory.glob("ant-*")):
            with (
                contextlib.suppress(RepositoryHeld),
                contextlib.closing(Repository(place, number=int(place.name.removeprefix("ant-")))) as repository,
            ):
                done = repository.erase(is_forgotten, store)
                records, files = records + done.records, files + done.files
        return Erased(records, files)


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
