"""The inbox: how another process tells a running crawl what to do. One folder, one file per note.

Its place is before the walk: `webfountain now` and `webfountain forget` write notes, the crawl's worker reads them
twice a second, acts, and deletes each when its effect is in the store. A note is written under a temporary name and
renamed, so that a reader never sees half of one; without a crawl it waits for the next.

Whoever may write into the folder may leave anything there, so nothing in it ends a crawl: what is no note, or names
what is no URL, is set aside as ``.refused`` with one line in the log, and only the newest of those are kept. A folder
that cannot be read at this moment (too many open files) is read at the next.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import time
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from webfountain.errors import StoreError, UrlError
from webfountain.records import Link
from webfountain.urls import canonical, fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webfountain.repository.pages import Repository
    from webfountain.store.contract import FrontierStore

__all__ = ["FOLDER", "Delivered", "Forget", "Inbox", "Note", "Now", "Received"]

FOLDER = "inbox"
"""The folder's name within an embedded store's folder."""
MOST_BYTES: Final = 64_000_000
"""A note is at most so long: about a million URLs."""
REFUSED_KEPT: Final = 100
_ABANDONED_S: Final = 3600.0
"""A draft of this age is of a process that was killed before it renamed it."""
_BUSY: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR})

logger = logging.getLogger(__name__)


class Now(msgspec.Struct, frozen=True, tag="now", tag_field="note"):
    """Put these canonical URLs on the immediate queue, in order."""

    urls: tuple[str, ...]


class Forget(msgspec.Struct, frozen=True, tag="forget", tag_field="note"):
    """Remove one page by its canonical URL, or with no `url` the whole site, for good."""

    site: str
    url: str | None = None


Note = Now | Forget


class Received(NamedTuple):
    """A note and the file it came in."""

    path: Path
    note: Note


class Delivered(NamedTuple):
    """What the notes of one delivery did."""

    immediate: int = 0
    """URLs put on the immediate queue."""
    forgotten: int = 0
    """Page records removed."""
    erased: int = 0
    """WARC records removed."""


_decoder: msgspec.json.Decoder[Note] = msgspec.json.Decoder(Note)
_serial = count()


class Inbox:
    """The notes in one folder, which is made with the first of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stuck: set[str] = set()
        self._was_busy = False

    def put(self, note: Note) -> Path:
        """Leave a note; it is whole as soon as it can be seen. Raises StoreError when the folder is not writable."""
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(_serial)}.json"
        path = self._folder / name
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = path.with_suffix(".tmp")
            draft.write_bytes(msgspec.json.encode(note))
            draft.rename(path)
        except OSError as error:
            raise StoreError(f"{self._folder}: cannot leave a note there: {error.strerror}") from None
        return path

    def waiting(self) -> list[Received]:
        """The notes that wait, oldest first. What is no note is set aside as `.refused`, not read again."""
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

    def done(self, received: Received) -> None:
        """Delete a note whose effect is in the store. A second call has no effect."""
        try:
            received.path.unlink(missing_ok=True)
        except OSError as error:
            self._leave(received.path, f"cannot be deleted ({error.strerror}); it was acted on")

    def deliver(self, store: FrontierStore, repository: Repository | None, *, at: float) -> Delivered:
        """Act on the notes that wait, in order, and delete each when its effect is kept.

        A kill in between repeats notes, which changes nothing: an immediate URL is there once, a forgotten page
        is gone. The copies of all forgotten pages are erased in one pass over the repository.
        """
        received = self.waiting()
        if not received:
            return Delivered()
        immediate = forgotten = erased = 0
        barred: list[Forget] = []
        for each in received:
            note = self._checked(each)
            if isinstance(note, Now):
                immediate += store.immediate([_link(url) for url in note.urls], at=at)
            elif note is not None:
                key = None if note.url is None else fingerprint(note.url)
                forgotten += store.forget(note.site, key, at=at)
                barred.append(note)
        if barred and repository is not None:
            erased = repository.erase(lambda url: _is_barred(url, barred), store).records
        for each in received:
            self.done(each)
        return Delivered(immediate, forgotten, erased)

    def _read(self, path: Path) -> Received | None:
        try:
            return Received(path, _decoder.decode(_bytes_of(path)))
        except msgspec.DecodeError as error:
            self._set_aside(path, f"is no note: {error}")
        except FileNotFoundError:
            pass  # a note deleted by hand between listing and reading
        except OSError as error:
            if error.errno not in _BUSY:
                self._set_aside(path, f"is no note: {error.strerror}")
        return None

    def _checked(self, received: Received) -> Note | None:
        """A note whose URLs passed the door that seeds pass; None when nothing of it did."""
        note = received.note
        if isinstance(note, Forget):
            try:
                home, url = canonical(note.site), None if note.url is None else canonical(note.url)
                if site_of(home) + "/" != home or (url is not None and site_of(url) != site_of(home)):
                    raise UrlError(f"{note.site!r} is no site, or not the page's")
            except UrlError as error:
                self._refuse(received, note, error)
                return None
            return Forget(site_of(home), url)
        good, bad, why = [], [], None
        for text in note.urls:
            try:
                good.append(canonical(text))
            except UrlError as error:
                bad.append(text)
                why = why or error
        if why is not None:
            self._refuse(received, Now(tuple(bad)), why)
        return Now(tuple(good)) if good else None

    def _refuse(self, received: Received, note: Note, why: UrlError) -> None:
        """Keep what of a note cannot be done where its author may find it."""
        path = received.path.with_suffix(".refused")
        logger.warning("%s: set aside as %s: %s", received.path, path.name, why)
        with contextlib.suppress(OSError):
            path.write_bytes(msgspec.json.encode(note))

    def _set_aside(self, path: Path, why: str) -> None:
        try:
            path.rename(path.with_suffix(".refused"))
        except OSError as error:
            self._leave(path, f"{why}; it cannot be set aside ({error.strerror})")
        else:
            logger.warning("%s: set aside as %s: %s", path, path.with_suffix(".refused").name, why)

    def _leave(self, path: Path, why: str) -> None:
        """Do not look at a file again that can be neither done nor moved."""
        self._stuck.add(path.name)
        logger.warning("%s: %s", path, why)

    def _sweep(self, names: Sequence[str]) -> None:
        """Remove drafts of killed processes, and what was set aside but for the newest."""
        refused = [name for name in names if name.endswith(".refused")]
        for name in refused[:-REFUSED_KEPT]:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
        for name in names:
            with contextlib.suppress(OSError):
                if name.endswith(".tmp") and (self._folder / name).stat().st_mtime < time.time() - _ABANDONED_S:
                    (self._folder / name).unlink()


def _bytes_of(path: Path) -> bytes:
    """What a file holds; OSError for what is no plain file of at most MOST_BYTES, and never a wait for one."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        if found.st_size > MOST_BYTES:
            raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES:,} bytes")
        return file.read()


def _link(url: str) -> Link:
    return Link(url=url, site=site_of(url), key=fingerprint(url))


def _is_barred(url: str, barred: Sequence[Forget]) -> bool:
    return any(url == note.url if note.url is not None else site_of(url) == note.site for note in barred)
