"""The positions of named readers in the change log.

An embedded store keeps the position of a reader in the file ``readers/NAME`` of the store's folder. A store on a server
keeps the position in its database. A reader calls `keep` after it has processed entries, so no entry is lost if the
reader is killed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webfountain.errors import InputError, StoreError
from webfountain.private_files import replaced

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.contract import Board

__all__ = ["ReaderPlaces"]

_NAME: Final = re.compile(r"(?!.*\.tmp$)[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Pattern of a reader's name. The suffix .tmp is reserved for temporary files."""
_FOLDER: Final = "readers"


class ReaderPlaces:
    """The stored positions of the readers of one store."""

    def __init__(self, board: Board, folder: Path | None) -> None:
        self._board = board
        self._folder = None if folder is None else folder / _FOLDER

    def cursor(self, name: str) -> str | None:
        """Return the stored cursor of a reader, or None if the reader has stored no cursor. Raise StoreError if the
        cursor cannot be read."""
        _check(name)
        if self._folder is None:
            value = self._board.value(f"reader/{name}")
            return None if value is None else value.decode("ascii", "replace")
        try:
            return (self._folder / name).read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            place = self._folder / name
            raise StoreError(f"{place}: the reader's position cannot be read: {error.strerror}") from None

    def keep(self, name: str, cursor: str) -> None:
        """Replace the stored cursor of a reader."""
        _check(name)
        if self._folder is None:
            self._board.put_value(f"reader/{name}", cursor.encode("ascii"))
            return
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with replaced(self._folder / name) as file:
                file.write(cursor.encode("ascii") + b"\n")
        except OSError as error:
            place = self._folder / name
            raise StoreError(f"{place}: the reader's position cannot be stored: {error.strerror}") from None


def _check(name: str) -> None:
    """Raise InputError if a reader's name is invalid."""
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"reader {name!r} is not a valid name (allowed: up to 100 letters, digits and . _ -, but "
            "not .tmp at the end)"
        )
