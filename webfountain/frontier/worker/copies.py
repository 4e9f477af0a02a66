"""Write copies of pages into the repository, detect lost copies, and remove superseded and forgotten copies.

If a page's copy is missing on the disk, the page is fetched again in full. If a page was forgotten during its fetch,
its copy is not written. Near the end of a batch, superseded copies are removed (`DiskRoom`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.formats.page_metadata import warc_fields
from webfountain.frontier.inbox.notes import erase
from webfountain.frontier.stage import Stage
from webfountain.records import ANSWERED
from webfountain.repository.warc_writer import Capture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.inbox.notes import ForgetNote
    from webfountain.frontier.visit import Visit
    from webfountain.records import Copy, FetchResult, Lease
    from webfountain.repository.repository import Repository
    from webfountain.store.answers import LeaseBatch
    from webfountain.store.contract import FrontierStore

__all__ = ["CopyWriter", "DiskRoom", "LostCopies", "RepositoryCopyWriter", "Takedowns"]

logger = logging.getLogger(__name__)
_SHORT: Final = (
    "Fetching stops: the disk of the copies has %.0f MB left, and the limit is %.0f MB (WEBFOUNTAIN_LEAST_FREE_BYTES)"
)
_ROOM: Final = 1.1
"""If a disk was too full, fetching resumes when this multiple of `least_free` bytes is free."""


class CopyWriter(Stage):
    """The base of all writers of copies. In a crawl without a repository, a plain `CopyWriter` is used, which writes
    nothing.
    """

    def write(self, visits: Sequence[Visit]) -> Sequence[Copy | None]:
        """Write the bodies of visits. Return the location of each copy, or None if the visit has no body."""
        return [None] * len(visits)

    def settled(self, copies: Sequence[Copy | None]) -> None:
        """Record that the settlement of `copies` has ended, whether or not the store now has their records."""

    def record(self, answers: Sequence[FetchResult]) -> None:
        """Archive answers that are not copies of pages, such as redirects, errors and robots.txt."""

    def erase(self, barred: Sequence[ForgetNote]) -> None:
        """Remove the copies of forgotten pages."""


class RepositoryCopyWriter(CopyWriter):
    """Writes copies into a repository."""

    def __init__(self, repository: Repository, store: FrontierStore) -> None:
        self._repository = repository
        self._store = store

    def write(self, visits: Sequence[Visit]) -> Sequence[Copy | None]:
        copies: list[Copy | None] = [None] * len(visits)
        if not visits:
            return copies
        written = [i for i, visit in enumerate(visits) if visit.kind in ANSWERED]
        places = self._repository.write([_capture(visits[i]) for i in written])
        for i, place in zip(written, places, strict=True):
            copies[i] = place
        if self._repository.keep_answers:
            self.record([visit.fetched for visit in visits if visit.kind not in ANSWERED])
        return copies

    def settled(self, copies: Sequence[Copy | None]) -> None:
        self._repository.settled(copies)

    def record(self, answers: Sequence[FetchResult]) -> None:
        if answers:
            self._repository.settled(self._repository.write([Capture(fetched) for fetched in answers]))

    def erase(self, barred: Sequence[ForgetNote]) -> None:
        erase(self._repository, barred, self._store.pages)

    def close(self) -> None:
        self._repository.close()


class LostCopies(Stage):
    """The stage that detects lost copies. The stage removes the location and validators of a lost copy from the leased
    record, so that the page is fetched in full.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def hurried(self, leases: list[Lease]) -> list[Lease]:
        return [lease if self._is_whole(lease) else _without_copy(lease) for lease in leases]

    def leased(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        del at
        if all(map(self._is_whole, dealt.recrawl)):
            return dealt
        return msgspec.structs.replace(dealt, recrawl=self.hurried(dealt.recrawl))

    def _is_whole(self, lease: Lease) -> bool:
        record = lease.record
        return record.digest is None or (record.copy is not None and self._repository.holds(record.copy))


class Takedowns:
    """Detects pages that a `ForgetNote` removed from the store while they were leased."""

    def __init__(self, store: FrontierStore, copies: CopyWriter) -> None:
        self._store = store
        self._copies = copies
        self.happened = False
        """True if pages were removed from the store."""

    def note(self) -> None:
        """Record that pages were removed from the store."""
        self.happened = True

    def erase(self, barred: Sequence[ForgetNote]) -> None:
        """Remove this process's copies of pages that another process removed from the store."""
        self.happened = True
        self._copies.erase(barred)

    def holds(self, lease: Lease) -> bool:
        """Return whether a leased page was removed from the store."""
        return self._store.pages.get(lease.site, lease.key) is None


class DiskRoom(Stage):
    """The stage that removes superseded copies, and stops fetching while less than `least_free` bytes of the disk are
    free.
    """

    def __init__(self, repository: Repository, store: FrontierStore, *, least_free: int) -> None:
        self._repository = repository
        self._store = store
        self._least_free = least_free
        self._lacks_room = False

    def chores(self, batch: Batch, result: BatchResult) -> None:
        """Remove superseded copies from time to time, and check the free disk space."""
        repository = self._repository
        if batch.tidy or repository.is_untidy():
            self._tidy(result)
        if repository.free_bytes() < self._least_free:
            if not self._lacks_room:
                self._tidy(result)
                logger.warning(_SHORT, repository.free_bytes() / 1e6, self._least_free / 1e6)
            self._lacks_room = True
        elif self._lacks_room and repository.free_bytes() >= _ROOM * self._least_free:
            logger.warning("Fetching resumes: the disk of the copies has room again")
            self._lacks_room = False
        result.lacks_room = self._lacks_room

    def _tidy(self, result: BatchResult) -> None:
        result.counts["repository/deleted"] += self._repository.tidy(self._store.pages).files


def _capture(visit: Visit) -> Capture:
    """Return what the repository must archive for a visit. A body that equals the stored copy becomes a WARC revisit
    record.
    """
    record = visit.record
    repeats = record.copied if visit.kind in ("same", "not_modified") and record.copy is not None else None
    before = None if repeats else record.copy
    fields = () if repeats else warc_fields(record.metadata)
    return Capture(visit.fetched, digest=record.digest, repeats=repeats, before=before, metadata=fields)


def _without_copy(lease: Lease) -> Lease:
    record = msgspec.structs.replace(lease.record, copy=None, etag=None, last_modified=None)
    return msgspec.structs.replace(lease, record=record)
