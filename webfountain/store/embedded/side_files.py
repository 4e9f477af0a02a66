"""The files beside the database of an embedded store. When a store is opened, these files show whether a part of the
store was lost.

- ``log-end`` contains the number of the change log's newest entry. RocksDB writes each step to its own log. The end of
  that log may be lost: by a failure of the machine or disk, or because an old copy of the folder was restored. Then
  entries are missing that consumers have already read, and their numbers would be used again. If the number in the file
  shows such a loss, the change log gets another name.
- ``store-card`` is a second copy of the store's description. A folder whose database lost its main file or its own
  description looks as if it contained no store. The card shows that there was a store. So no new store is created where
  the old one can be repaired.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from webfountain.errors import StoreError
from webfountain.private_files import replaced
from webfountain.store.embedded.keys import Meta

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LOG_END", "LogEnd", "NoLogEnd", "damaged", "is_damaged", "keep_card", "kept_card", "remove_card"]

LOG_END = "log-end"
_BYTES = 8
_MOST = 1 << 48
"""The number of a change-log entry is always less than this."""

CARD = "store-card"


class NoLogEnd:
    """Replacement for `LogEnd` that writes nothing, used by a store that is opened for reading."""

    def note(self, last: int) -> None:
        """Write the number of the change log's newest entry."""

    def close(self) -> None:
        """Close the file."""


class LogEnd(NoLogEnd):
    """A file beside the database that contains the number of the change log's newest entry."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / LOG_END, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        kept = os.pread(self._file, _BYTES + 1, 0)
        self._noted = int.from_bytes(kept[:_BYTES], "big")
        self.is_damaged = len(kept) not in (0, _BYTES) or self._noted >= _MOST
        """True if the content of the file cannot be the number of a change-log entry."""
        if self.is_damaged:
            self._noted = -1

    @property
    def last(self) -> int:
        """The entry number in the file, 0 if the file has none, or -1 if the file is damaged."""
        return self._noted

    def note(self, last: int) -> None:
        """Write the number of the log's newest entry, by one system call if the number has changed."""
        if last != self._noted:
            self._noted = last
            with suppress(OSError):  # the step before has reported a full or missing disk
                os.pwrite(self._file, last.to_bytes(_BYTES, "big"), 0)
                if self.is_damaged:
                    os.ftruncate(self._file, _BYTES)
                    self.is_damaged = False

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def keep_card(folder: Path, meta: Meta) -> None:
    """Write ``store-card``, a copy of the store's description, if the description has changed."""
    data = msgspec.msgpack.encode(msgspec.structs.replace(meta, generation=0))
    with suppress(OSError):  # a full disk was reported by the previous step
        if not (folder / CARD).exists() or (folder / CARD).read_bytes() != data:
            with replaced(folder / CARD) as file:
                file.write(data)


def kept_card(folder: Path) -> Meta | None:
    """Return the content of ``store-card``, or None if there is no readable one."""
    try:
        return msgspec.msgpack.decode((folder / CARD).read_bytes(), type=Meta)
    except (OSError, msgspec.MsgspecError):
        return None


def remove_card(folder: Path) -> None:
    """Delete the ``store-card`` of an old store before a new store is created."""
    with suppress(OSError):
        (folder / CARD).unlink(missing_ok=True)


def is_damaged(folder: Path) -> bool:
    """Return whether a folder without a store description contains tables, a log or the ``store-card`` of a store."""
    database = folder / "db"
    if not database.is_dir():
        return (folder / "salvage" / "whole").exists()
    if (folder / CARD).exists():
        return True
    with suppress(OSError):
        return any(file.suffix in {".sst", ".log"} and file.stat().st_size > 0 for file in database.iterdir())
    return False


def damaged(folder: Path, why: str) -> StoreError:
    """Return the error for a store whose files are damaged."""
    return StoreError(
        f"{folder}: the store is damaged ({why}); `webfountain check --repair` makes a new one from the readable part"
    )
