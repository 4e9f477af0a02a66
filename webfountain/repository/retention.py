"""What leaves the disk: superseded files, compaction under a size limit, take-down.

It runs beside the crawl, once a period and whenever so much was written that something may have to go. Three
things may name a place in a file at the same moment: the store's page records, leases that are out (their records
are settled later), and captures that are written but not settled. So a file goes only when none of the three can
need it: it is closed, has no unsettled capture, and no page names it, directly or by a row of a ``.moved`` file
(`folder`).

Each step of moving records survives a kill: copy to the file being written → note the moves → tell the store →
delete the old file. Repeating it from the start loses nothing; at worst dead bytes wait for the next time.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from webfountain.errors import RepositoryError
from webfountain.records import Copy, Move
from webfountain.repository.index import summary
from webfountain.repository.warc import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webfountain.records import PageRecord
    from webfountain.repository.folder import Folder
    from webfountain.repository.index import Row, Summary
    from webfountain.repository.record import Record
    from webfountain.repository.writer import Writer

__all__ = ["FILES_PER_LIMIT", "CopyStore", "Erased", "Retention", "Tidied"]

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
    """What is asked of the frontier's store (`store.base.FrontierStore`)."""

    def copies(self) -> dict[int, int]:
        """WARC file number -> how many page records name it."""
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
        self._next_look = self._step()

    def is_due(self) -> bool:
        """Whether so much was written since the last `tidy` that it should run again."""
        return self._writer.appended >= self._next_look

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
        self._next_look = self._writer.appended + self._step()
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
        ask = list(store.copies())
        while ask:
            number = ask.pop()
            if number not in needed:
                needed.add(number)
                if number not in files:
                    ask.extend({place.file for place in self._folder.moves(number).values()})
        return needed

    def _mend(self, store: CopyStore) -> None:
        """Bring pages up to date that still name files that are gone; forget moves that nobody can name now."""
        files, named = self._folder.files(), store.copies()
        for number, path in self._folder.moved_files().items():
            if number in files:
                continue
            if number in named:
                store.relocate(list(self._moves_again(number)))
            elif path.stat().st_mtime < time.time() - _FORWARD_S:
                path.unlink()

    def _moves_again(self, number: int) -> Iterator[Move]:
        for offset, length in self._folder.moves(number):
            old = Copy(number, offset, length)
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

    def _head(self, number: int, row: Row) -> Record | None:
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
            if number not in store.copies():
                done = Tidied(done.files + 1, done.bytes + self._delete(number), done.moved + moved)
            else:
                self._damaged.add(number)  # a page names a record here that cannot be moved: leave the file alone
        return done

    def _live_rows(self, number: int, store: CopyStore) -> Iterator[Row]:
        """Responses that a page names, each with its request record, which follows it."""
        files = self._folder.files()
        with_request = False
        for row in self._folder.rows(number):
            if row.kind == "response":
                copy = self._newest(number, row, store)
                if copy is not None and copy.file not in files:
                    copy = self._place(copy)
                with_request = copy == Copy(number, row.offset, row.length)
                if with_request:
                    yield row
            elif row.kind == "request" and with_request:
                yield row
            else:
                with_request = False

    def _newest(self, number: int, row: Row, store: CopyStore) -> Copy | None:
        """The newest copy of the page that a response is of, by the store."""
        head = self._head(number, row)
        page = None if head is None else head.page
        record = None if page is None else store.page(*page)
        return None if record is None else record.copy

    def _move(self, store: CopyStore, number: int, rows: Sequence[Row]) -> int:
        """Copy records byte for byte to the file being written, tell the store; how many copies moved."""
        moved = 0
        for batch in _batches(rows):
            old = [Copy(number, row.offset, row.length) for row in batch]
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

    def _shares(self, numbers: Iterable[int], store: CopyStore, unsettled: Counter[int]) -> list[tuple[float, int]]:
        live = unsettled + Counter(store.copies())
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


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in groups of a few megabytes, an answer never parted from its request."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        if size >= _BATCH_BYTES and row.kind != "request":
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row.length
    if batch:
        yield batch
