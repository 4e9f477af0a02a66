"""Read the inbox, in which other processes leave notes for a running crawl.

The inbox is a folder with one file per note or, if the store is on a server, a list on the server. Commands such as
`webfountain now` write notes. The crawl's worker reads the notes twice a second, carries them out, and deletes each
note when its effect is in the store. If no crawl is running, a note waits for the next crawl.

No file in the inbox can make a crawl fail. A file that is not a note, or that contains an invalid URL, is logged and
renamed to ``.refused``.

`InboxStage` carries out the notes after the pages of a batch are settled.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import time
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import StoreError, UrlError
from webfountain.frontier.inbox.blocks import blocks_of
from webfountain.frontier.inbox.notes import Notes, ReceivedNote, decoder, is_paused, serial
from webfountain.frontier.stage import Stage
from webfountain.private_files import private, replaced
from webfountain.store.shared_contract import FeedEntry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.cluster.claims import AntStage
    from webfountain.frontier.inbox.notes import CopyEraser, Note
    from webfountain.frontier.worker.copies import Takedowns
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Feed

__all__ = ["FOLDER", "MOST_BYTES", "NOTES_AT_ONCE", "NOTE_S", "REFUSED_KEPT", "FeedInbox", "Inbox", "InboxStage"]

FOLDER = "inbox"
"""Name of the inbox in the folder of an embedded store."""
MOST_BYTES: Final = 64_000_000
"""Largest size of a note in bytes, enough for about a million URLs."""
REFUSED_KEPT: Final = 100
NOTES_AT_ONCE: Final = 16
"""Maximum number of notes that a process claims at once from the list on the server."""
NOTE_S: Final = 60.0
"""A note that a process claimed but has not carried out may be claimed by another process after this time, in
seconds.
"""
_ABANDONED_S: Final = 3600.0
"""An unfinished note file that is older than this, in seconds, is removed, because its writer was probably killed."""
_BUSY: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR})
logger = logging.getLogger(__name__)
PAUSE_POLLS: Final = 4
"""If several processes share a store, blocks and pauses are read only at every n-th poll of the inbox."""


class FeedInbox(Notes):
    """The notes in a list on the store's server. Each note is carried out by one process of the crawl."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def put(self, note: Note) -> None:
        self._feed.put([msgspec.json.encode(note)])

    def waiting(self, at: float) -> list[ReceivedNote]:
        """Return the waiting notes, oldest first, in one round trip. Notes that another process claimed over a minute
        ago but has not carried out are included.
        """
        found = []
        for taken in self._feed.take(NOTES_AT_ONCE, until=at + NOTE_S, at=at):
            try:
                found.append(ReceivedNote(taken, decoder.decode(taken.data)))
            except msgspec.DecodeError as error:
                logger.warning("Dropped an invalid note from the inbox (%.200s): %.200r", error, taken.data)
                self._feed.done([taken])
        return found

    def done(self, received: Sequence[ReceivedNote]) -> None:
        self._feed.done([each.source for each in received if isinstance(each.source, FeedEntry)])

    def is_empty(self) -> bool:
        """Return whether all notes were carried out."""
        return not self._feed.waiting()

    def _refuse(self, received: ReceivedNote, note: Note, why: UrlError) -> None:
        logger.warning("Part of a note in the store's inbox cannot be carried out (%.200s): %.500r", why, note)


class Inbox(Notes):
    """The notes in one folder. The first note creates the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stuck: set[str] = set()
        self._was_busy = False

    def put(self, note: Note) -> Path:
        """Write a note to a file, which readers see only when it is complete. Raises StoreError if the folder is not
        writable.
        """
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(serial)}.json"
        path = self._folder / name
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replaced(path) as file:
                file.write(msgspec.json.encode(note))
        except OSError as error:
            raise StoreError(f"{self._folder}: cannot write a note there: {error.strerror}") from None
        return path

    def waiting(self, at: float = 0.0) -> list[ReceivedNote]:
        """Return the waiting notes, oldest first. A file that is not a note is renamed to `.refused`."""
        try:
            names = sorted(os.listdir(self._folder))
            self._was_busy = False
        except FileNotFoundError:
            return []
        except OSError as error:
            if not self._was_busy:
                logger.warning("%s: cannot be read now: %s", self._folder, error.strerror)
            self._was_busy = True
            return []
        self._sweep(names)
        notes = [name for name in names if name.endswith(".json") and name not in self._stuck]
        found = (self._read(self._folder / name) for name in notes)
        return [received for received in found if received is not None]

    def done(self, received: Sequence[ReceivedNote]) -> None:
        for path in [each.source for each in received if not isinstance(each.source, FeedEntry)]:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                self._leave(path, f"cannot be deleted ({error.strerror}); it was carried out")

    def _read(self, path: Path) -> ReceivedNote | None:
        try:
            return ReceivedNote(path, decoder.decode(_bytes_of(path)))
        except msgspec.DecodeError as error:
            self._set_aside(path, f"is no note: {error}")
        except FileNotFoundError:
            pass  # the note was deleted by hand between listing and reading
        except OSError as error:
            if error.errno not in _BUSY:
                self._set_aside(path, f"is no note: {error.strerror}")
        return None

    def _refuse(self, received: ReceivedNote, note: Note, why: UrlError) -> None:
        """Write the invalid part of a note to a `.refused` file in the same folder."""
        assert not isinstance(received.source, FeedEntry)
        path = received.source.with_suffix(".refused")
        logger.warning("%s: refused, and kept as %s: %.500s", received.source, path.name, why)
        with contextlib.suppress(OSError), private(path) as file:
            file.write(msgspec.json.encode(note))

    def _set_aside(self, path: Path, why: str) -> None:
        try:
            path.rename(path.with_suffix(".refused"))
        except OSError as error:
            self._leave(path, f"{why}; the file cannot be renamed ({error.strerror})")
        else:
            logger.warning("%s: refused, and kept as %s: %.500s", path, path.with_suffix(".refused").name, why)

    def _leave(self, path: Path, why: str) -> None:
        """Ignore a file from now on, because it could not be deleted or renamed."""
        self._stuck.add(path.name)
        logger.warning("%s: %.500s", path, why)

    def _sweep(self, names: Sequence[str]) -> None:
        """Remove old `.refused` files, and unfinished files of killed processes."""
        refused = [name for name in names if name.endswith(".refused")]
        for name in refused[:-REFUSED_KEPT]:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
        for name in names:
            with contextlib.suppress(OSError):
                if name.endswith(".tmp") and (self._folder / name).stat().st_mtime < time.time() - _ABANDONED_S:
                    (self._folder / name).unlink()


def _bytes_of(path: Path) -> bytes:
    """Return the content of a regular file of at most MOST_BYTES bytes. Raise OSError if the file is not regular or is
    too large.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if found.st_size > MOST_BYTES:
            raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES:,} bytes")
        return file.read()


class InboxStage(Stage):
    """The stage that carries out the notes of an inbox in the process `owner`. `others` is None if there are no other
    ants.
    """

    def __init__(
        self,
        inbox: Notes,
        store: FrontierStore,
        repository: CopyEraser | None,
        takedowns: Takedowns,
        *,
        owner: str,
        others: AntStage | None,
    ) -> None:
        self._inbox = inbox
        self._store = store
        self._repository = repository
        self._takedowns = takedowns
        self._owner = owner
        self._others = others
        self._is_paused = is_paused(store.board)
        self._blocks = blocks_of(store.board)
        self._polls = 0

    def after_settle(self, batch: Batch, result: BatchResult) -> None:
        if batch.inbox:
            self._deliver(batch, result)
            # Another process of the crawl may have taken the note.
            if self._store.claims is None or self._polls % PAUSE_POLLS == 0:
                self._is_paused = is_paused(self._store.board)
                self._blocks = blocks_of(self._store.board)
            self._polls += 1
        result.is_paused = self._is_paused
        result.blocks = self._blocks

    def _deliver(self, batch: Batch, result: BatchResult) -> None:
        delivered = self._inbox.deliver(self._store, self._repository, at=batch.at)
        result.counts["ant/immediate"] += delivered.immediate
        if delivered.forgotten:
            self._takedowns.note()
        if delivered.barred and self._others is not None:
            self._others.announce(delivered.barred)
        result.is_drained |= self._owner in delivered.drained
        if self._others is not None:
            self._others.drain([ant for ant in delivered.drained if ant != self._owner])
