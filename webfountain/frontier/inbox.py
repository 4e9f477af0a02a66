"""The inbox: how another process tells a running crawl what to do. One folder, one file per note.

Its place is before the walk: `webfountain now` and `webfountain forget` write notes, the crawl's worker reads them
once a second, acts, and deletes each when its effect is in the store. A note is written under a temporary name and
renamed, so that a reader never sees half of one; without a crawl it waits for the next. Nothing is decided here.
"""

from __future__ import annotations

import os
import time
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from webfountain.errors import StoreError
from webfountain.records import Link
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webfountain.repository.pages import Repository
    from webfountain.store.contract import FrontierStore

__all__ = ["FOLDER", "Delivered", "Forget", "Inbox", "Note", "Now", "Received"]

FOLDER = "inbox"
"""The folder's name within an embedded store's folder."""


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
        """The notes that wait, oldest first. A file that is no note is set aside as `.refused`, not read again."""
        try:
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(".json"))
        except FileNotFoundError:
            return []
        found = (self._read(self._folder / name) for name in names)
        return [received for received in found if received is not None]

    def done(self, received: Received) -> None:
        """Delete a note whose effect is in the store. A second call has no effect."""
        received.path.unlink(missing_ok=True)

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
        for _, note in received:
            if isinstance(note, Now):
                immediate += store.immediate([_link(url) for url in note.urls], at=at)
            else:
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
            return Received(path, _decoder.decode(path.read_bytes()))
        except msgspec.DecodeError:
            path.rename(path.with_suffix(".refused"))
        except FileNotFoundError:
            pass  # a note deleted by hand between listing and reading
        return None


def _link(url: str) -> Link:
    return Link(url=url, site=site_of(url), key=fingerprint(url))


def _is_barred(url: str, barred: Sequence[Forget]) -> bool:
    return any(url == note.url if note.url is not None else site_of(url) == note.site for note in barred)
