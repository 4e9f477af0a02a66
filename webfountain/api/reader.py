"""A reader's place in the change log, kept under its name.

With an embedded store, the place is a file ``readers/NAME`` in the store's folder, which is replaced as a whole. On a
server, the place is a published value. Only `keep` moves a place. The reader calls `keep` after it has processed the
entries.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from webfountain.errors import InputError, StoreError
from webfountain.private_files import replaced

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.contract import Board

__all__ = ["BoardPlaces", "FolderPlaces", "ReaderPlaces", "checked_name"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FOLDER: Final = "readers"


class ReaderPlaces(Protocol):
    """Storage of the places of readers."""

    def cursor(self, name: str) -> str | None:
        """Return the last stored cursor of a reader. None if there is none yet."""
        ...

    def keep(self, name: str, cursor: str) -> None:
        """Replace the stored cursor of a reader."""
        ...


class FolderPlaces:
    """Places in a store's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER

    def cursor(self, name: str) -> str | None:
        """See `ReaderPlaces.cursor`."""
        try:
            return (self._folder / checked_name(name)).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None

    def keep(self, name: str, cursor: str) -> None:
        """See `ReaderPlaces.keep`."""
        path = self._folder / checked_name(name)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with replaced(path) as file:
                file.write(cursor.encode("ascii") + b"\n")
        except OSError as error:
            raise StoreError(f"{path}: the place of the reader cannot be stored: {error.strerror}") from None


class BoardPlaces:
    """Places in a store's published values. On a server any process may write them."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def cursor(self, name: str) -> str | None:
        """See `ReaderPlaces.cursor`."""
        value = self._board.value(f"reader/{checked_name(name)}")
        return None if value is None else value.decode("ascii")

    def keep(self, name: str, cursor: str) -> None:
        """See `ReaderPlaces.keep`."""
        self._board.put_value(f"reader/{checked_name(name)}", cursor.encode("ascii"))


def checked_name(name: str) -> str:
    """Return a reader's name. Raise InputError if it is invalid."""
    if _NAME.fullmatch(name) is None:
        raise InputError(f"reader {name!r}: is not a valid name (allowed: up to 100 letters, digits and . _ -)")
    return name
