"""The card of an embedded store: a second copy of its description, beside its own files.

Place in the walk: opening. A folder whose database lost its main file or its own description looks as if it contained
no store. The card shows that there was one, so that no new store is created where a repair is possible.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from webfountain.errors import StoreError
from webfountain.private_files import replaced
from webfountain.store.embedded.keys import Meta

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["damaged", "is_damaged", "keep_card", "kept_card", "remove_card"]

FILE = "store-card"


def keep_card(folder: Path, meta: Meta) -> None:
    """Write the card if its content has changed."""
    data = msgspec.msgpack.encode(msgspec.structs.replace(meta, generation=0))
    with suppress(OSError):  # a full disk was reported by the previous step
        if not (folder / FILE).exists() or (folder / FILE).read_bytes() != data:
            with replaced(folder / FILE) as file:
                file.write(data)


def kept_card(folder: Path) -> Meta | None:
    """Return the content of the card, or None if there is no readable card."""
    try:
        return msgspec.msgpack.decode((folder / FILE).read_bytes(), type=Meta)
    except (OSError, msgspec.MsgspecError):
        return None


def remove_card(folder: Path) -> None:
    """Delete the card, because a new store is created."""
    with suppress(OSError):
        (folder / FILE).unlink(missing_ok=True)


def is_damaged(folder: Path) -> bool:
    """Return whether a folder without a store description contains, or contained, a store: tables, a log, or a card."""
    database = folder / "db"
    if not database.is_dir():
        return (folder / "salvage" / "whole").exists()
    if (folder / FILE).exists():
        return True
    with suppress(OSError):
        return any(file.suffix in {".sst", ".log"} and file.stat().st_size > 0 for file in database.iterdir())
    return False


def damaged(folder: Path, why: str) -> StoreError:
    """Return the error for a store whose files are damaged."""
    return StoreError(
        f"{folder}: the store is damaged ({why}); `webfountain check --repair` makes a new one from the readable part"
    )
