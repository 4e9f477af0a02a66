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

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FOLDER", "Forget", "Inbox", "Note", "Now", "Received"]

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

    def _read(self, path: Path) -> Received | None:
        try:
            return Received(path, _decoder.decode(path.read_bytes()))
        except msgspec.DecodeError:
            path.rename(path.with_suffix(".refused"))
        except FileNotFoundError:
            pass  # a note deleted by hand between listing and reading
        return None
