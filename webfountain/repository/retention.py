"""Remove copies from the disk: delete superseded files, compact to a size limit, erase on request.

A page record, an open lease and an unsettled capture may each contain the location of a copy. A file is deleted only
under these conditions:

- the file is closed,
- no capture in the file is unsettled,
- no page names the file, not even by a ``.moved`` file.

Copies are moved in these steps, and a kill after any step loses nothing:

- copy to the file being written,
- record the moves,
- update the store,
- delete the old file.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol, cast

import msgspec

from webfountain.errors import RepositoryError
from webfountain.records import Copy, Move
from webfountain.repository.index import IndexRow, summary
from webfountain.repository.warc_writer import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webfountain.policy.tables import RepositoryTable
    from webfountain.records import PageRecord
    from webfountain.repository.folder import Folder
    from webfountain.repository.index import Summary
    from webfountain.repository.warc_reader import Record
    from webfountain.repository.warc_writer import Kind
    from webfountain.repository.writer import Writer

__all__ = ["FILES_PER_LIMIT", "CopyStore", "ErasureResult", "Retention", "TidyResult"]

_BATCH_BYTES: Final = 4_000_000
_FORWARD_S: Final = 86_400.0
"""A ``.moved`` file is kept for this many seconds after its last change, which is longer than any lease."""
FILES_PER_LIMIT: Final = 16
"""A file is closed at the latest when it reaches `max_bytes` divided by this number. Only closed files can be
compacted."""
_HIGH: Final = 0.85
"""Compaction begins at this share of the size limit, because it needs some room itself."""
_ENOUGH: Final = 0.8
"""Compaction stops at this share of the size limit, so that it does not start again at once."""
_WORTHWHILE: Final = 0.02
"""Compaction rewrites a file only if more than this share of the file is superseded."""
_CHEAP: Final = 0.25
"""If more than this share of a file is superseded, it is rewritten even if the folder is far below its size limit."""
_MOST_PER_LIVE: Final = 2.0
"""A folder without a size limit is compacted if the ratio of all its bytes to its live bytes exceeds this."""
_ENOUGH_PER_LIVE: Final = 1.5
_LEAST_STEP: Final = 32_000_000
"""Least number of bytes written between two runs of `tidy` in a folder without a size limit."""


class CopyStore(Protocol):
    def copies(self, *, repository: int = 0) -> dict[int, int]:
        """Return how many pages have their newest copy in each WARC file, by file number."""
        ...

    def get(self, site: str, key: bytes) -> PageRecord | None:
        """Return the record of a URL; None if it is unknown."""
        ...

    def relocate(self, moves: Sequence[Move]) -> int:
        """Update page records after their copies moved."""
        ...


class TidyResult(msgspec.Struct, frozen=True):
    """Result of one `tidy`: deleted files, freed bytes, moved live copies."""

    files: int = 0
    bytes: int = 0
    moved: int = 0


class ErasureResult(msgspec.Struct, frozen=True):
    """Result of an erasure: removed records (requests and revisits included), and rewritten files."""

    records: int = 0
    files: int = 0


class Retention:
    """Deletes and rewrites closed files of a repository. Only one thread at a time may use the object."""

    def __init__(self, folder: Folder, writer: Writer, *, rules: RepositoryTable, rotate_bytes: int) -> None:
        self._folder = folder
        self._writer = writer
        self._keep_all = rules.keep == "all"
        self._max_bytes = rules.max_bytes
        self._least_step = min(_LEAST_STEP, rotate_bytes)
        self._damaged: set[int] = set()
        self._summaries: dict[int, tuple[int, Summary]] = {}
        self._next_tidy = self._step()

    def is_due(self) -> bool:
        """Return whether `tidy` is due, by the number of bytes written since its last run."""
        return self._writer.appended >= self._next_tidy

    def tidy(self, store: CopyStore, unsettled: Callable[[], Counter[int]]) -> TidyResult:
        """Delete superseded files, and compact the folder if it is near its size limit or much larger than its live
        copies.

        Raises
        ------
        RepositoryError
            if the folder would be above its limit even without any superseded record.
        """
        self._mend(store)
        done = TidyResult()
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
        """Return how many bytes may be written before `tidy` is due again."""
        if self._max_bytes is not None:
            return self._max_bytes / FILES_PER_LIMIT
        return math.inf if self._keep_all else max(self._least_step, self._folder.bytes_on_disk() / 2)

    def _live_bytes(self, store: CopyStore, unsettled: Callable[[], Counter[int]]) -> float:
        """Estimate how many bytes the folder would have after compaction."""
        sizes = {number: path.stat().st_size for number, path in self._folder.files().items()}
        shares = self._shares(sizes, store, unsettled())
        return sum((1.0 - share) * sizes[number] for share, number in shares)

    def erase(
        self, is_forgotten: Callable[[str], bool], store: CopyStore, *, progress: Callable[[int, int], None]
    ) -> ErasureResult:
        """Remove the records of forgotten URLs: rewrite each file that contains such records.

        The call reads the header of every record, which takes some seconds per gigabyte. Records with unreadable URLs
        are removed too. Before the call, forget the URLs in the store (`PageRecords.forget`), because records written
        during the call are not checked.
        """
        current = self._writer.rotate()
        numbers = [number for number in self._folder.files() if number != current]
        records = rewritten = 0
        for done, number in enumerate(numbers, start=1):
            heads = [(row, self._head(number, row)) for row in self._folder.rows(number)]
            found = [(row, head) for row, head in heads if head is None or head.kind != "warcinfo"]
            # The kinds are read from the records, because those in a damaged index may be wrong.
            kept = [
                IndexRow(row.offset, row.length, cast("Kind", head.kind))
                for row, head in found
                if head is not None and not is_forgotten(head.url)
            ]
            if len(kept) < len(found):
                self._move(store, number, kept)
                self._delete(number)
                records += len(found) - len(kept)
                rewritten += 1
            progress(done, len(numbers))
        return ErasureResult(records, rewritten)

    def _delete_superseded(self, store: CopyStore, unsettled: Callable[[], Counter[int]]) -> TidyResult:
        candidates = self._closed(
            unsettled
        )  # before the store is read, so that the store knows every capture settled until now
        needed = self._needed(store)
        doomed = [number for number in candidates if number not in needed]
        return TidyResult(files=len(doomed), bytes=sum(self._delete(number) for number in doomed))

    def _closed(self, unsettled: Callable[[], Counter[int]]) -> list[int]:
        """Return the closed files in which no capture is unsettled."""
        current, files, waiting = self._writer.number, self._folder.files(), unsettled()
        if any(number not in files for number in waiting):
            return []  # an erasure moved a capture that is not settled, so no page names its new location
        return [number for number in files if number < current and number not in waiting]

    def _needed(self, store: CopyStore) -> set[int]:
        """Return the numbers of the files that page records name, and of the files to which their copies have moved."""
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
        """Correct page records that still name a deleted file, and delete ``.moved`` files that no page needs."""
        # With `keep = "all"`, `.moved` files stay, because each copy names the location of the copy before it.
        files, named = self._folder.files(), self._copies(store)
        for number, path in self._folder.moved_files().items():
            if number in files:
                continue
            if number in named:
                store.relocate(list(self._moves_again(number)))
            elif not self._keep_all and path.stat().st_mtime < time.time() - _FORWARD_S:
                path.unlink()

    def _moves_again(self, number: int) -> Iterator[Move]:
        for offset, length in self._folder.moves(number):
            old = self._folder.copy(number, offset, length)
            new = self._place(old)
            page = None if new is None else self._page(new)
            if new is not None and page is not None:
                yield Move(*page, old=old, new=new)

    def _page(self, copy: Copy) -> tuple[str, bytes] | None:
        """Return the page whose record is at a location; None if the record is damaged."""
        try:
            return self._folder.record(copy).page
        except RepositoryError:
            return None

    def _head(self, number: int, row: IndexRow) -> Record | None:
        """Return the WARC header of a record; None if it is damaged."""
        try:
            return self._folder.head(number, row)
        except RepositoryError:
            return None

    def _place(self, copy: Copy) -> Copy | None:
        """Return the current location of a copy; None if it was deleted."""
        try:
            return self._folder.place(copy)
        except RepositoryError:
            return None

    def _compact(
        self, store: CopyStore, unsettled: Callable[[], Counter[int]], done: TidyResult, *, goal: float, least: float
    ) -> TidyResult:
        """Rewrite files, beginning with the file that has the smallest live share, until the folder has at most `goal`
        bytes. A file is rewritten only if its superseded share is larger than `least`.
        """
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
                done = TidyResult(done.files + 1, done.bytes + self._delete(number), done.moved + moved)
            else:
                self._damaged.add(number)  # a page names a record here that cannot be moved, so the file stays
        return done

    def _live_rows(self, number: int, store: CopyStore) -> Iterator[IndexRow]:
        """Yield the live responses of a file, each followed by its request record."""
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
        """Look up the page of a response in the store, and return the page's newest copy."""
        head = self._head(number, row)
        page = None if head is None else head.page
        record = None if page is None else store.get(*page)
        copy = None if record is None else record.copy
        return copy if copy is not None and copy.repository == self._folder.repository else None

    def _move(self, store: CopyStore, number: int, rows: Sequence[IndexRow]) -> int:
        """Copy records to the file being written and update the store. Return the number of moved copies."""
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
        return store.copies(repository=self._folder.repository)

    def _shares(self, numbers: Iterable[int], store: CopyStore, unsettled: Counter[int]) -> list[tuple[float, int]]:
        live = unsettled + Counter(self._copies(store))
        return [(self._superseded_share(number, live[number]), number) for number in numbers]

    def _superseded_share(self, number: int, live: int) -> float:
        """Estimate the share of a file that compaction would free."""
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
        where = f"repository {self._folder.directory} has {held} bytes, {limit}"
        if self._keep_all:
            raise RepositoryError(f'{where}, and keep = "all" deletes nothing: raise max_bytes or set keep = "newest"')
        sizes = {number: path.stat().st_size for number, path in self._folder.files().items()}
        shares = self._shares(sizes, store, unsettled())
        # Copies that were superseded only now are left to the next run. If even they are not enough, the crawl ends.
        if held - sum(share * sizes[number] for share, number in shares) > (self._max_bytes or 0):
            raise RepositoryError(f"{where}, and only newest copies are left: raise max_bytes or crawl fewer pages")

    def _delete(self, number: int) -> int:
        self._folder.let_go(number)
        self._summaries.pop(number, None)
        return self._writer.delete(number)


def _batches(rows: Iterable[IndexRow]) -> Iterator[list[IndexRow]]:
    """Yield rows in groups of a few megabytes, each response with its request."""
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
