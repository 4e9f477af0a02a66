"""Digests of the items that each request yielded when it was last made, in a file beside the store.

They are written when the items are in the feeds, before the page is settled. So a kill may repeat an item but loses
none. `new_items` uses them to drop items.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from webfountain.errors import InputError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["DIGEST_BYTES", "ItemDigests"]

FILE: Final = "items.sqlite"
DIGEST_BYTES: Final = 12


class ItemDigests:
    """Digests of the items that each request yielded when it was last made."""

    def __init__(self, folder: Path | None) -> None:
        """Open the file. Raise InputError for a store without a folder, StoreError if the file cannot be opened."""
        if folder is None:
            raise InputError('setting WEBFOUNTAIN_ITEMS: "changed" needs a store in a folder, rocksdb://FOLDER')
        self._file = folder / FILE
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file.touch(mode=0o600)
            self._database = sqlite3.connect(self._file, check_same_thread=False, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS items (page BLOB PRIMARY KEY, digests BLOB) WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self._file}: cannot be opened: {error}") from None
        self._now: dict[bytes, set[bytes]] = {}

    def is_known(self, page: bytes, digest: bytes) -> bool:
        """Return whether a page yielded an item with this digest when it was last made. Also record that it yielded the
        item now.
        """
        self._now.setdefault(page, set()).add(digest)
        found = self._database.execute("SELECT digests FROM items WHERE page = ?", (page,)).fetchone()
        if found is None:
            return False
        held: bytes = found[0]
        return any(held[at : at + DIGEST_BYTES] == digest for at in range(0, len(held), DIGEST_BYTES))

    def write(self, pages: Iterable[bytes]) -> None:
        """Save the digests of what these pages yielded now. Call it when their items are in the feeds. Raises
        StoreError."""
        rows = [(page, b"".join(sorted(self._now.pop(page)))) for page in pages if page in self._now]
        if not rows:
            return
        try:
            with self._database:
                self._database.execute("BEGIN")
                self._database.executemany("INSERT OR REPLACE INTO items VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            raise StoreError(f"{self._file}: cannot be written: {error}") from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()
