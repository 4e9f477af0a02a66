"""The file with the number of the change log's newest entry, beside the store's own files.

RocksDB writes a step to its log. The end of that log may be lost with a machine or a disk, or if an old copy of the
folder is restored. Then entries are missing that consumers have already read, and their numbers would be used again.
The number in this file reveals that when the store is opened next; then the change log gets another name.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FILE", "LogEnd", "NoLogEnd"]

FILE = "log-end"
_BYTES = 8
_MOST = 1 << 48
"""A number larger than that of any entry."""


class NoLogEnd:
    """Replaces `LogEnd` for a store that is not written."""

    def note(self, last: int) -> None:
        """Store the number of the newest entry, after the entry was written."""

    def close(self) -> None:
        """Close the file. A second call has no effect."""


class LogEnd(NoLogEnd):
    """The file of a store that one process writes."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        kept = os.pread(self._file, _BYTES + 1, 0)
        self._noted = int.from_bytes(kept[:_BYTES], "big")
        self.is_damaged = len(kept) not in (0, _BYTES) or self._noted >= _MOST
        """True if the file contains no number that a log can have reached."""
        if self.is_damaged:
            self._noted = -1

    @property
    def last(self) -> int:
        """The number that was last stored; 0 if there was none, -1 if the file is damaged."""
        return self._noted

    def note(self, last: int) -> None:
        """Store the number of the newest entry. One system call if it has changed."""
        if last != self._noted:
            self._noted = last
            with suppress(OSError):  # a full or missing disk was reported by the step before
                os.pwrite(self._file, last.to_bytes(_BYTES, "big"), 0)
                if self.is_damaged:
                    os.ftruncate(self._file, _BYTES)
                    self.is_damaged = False

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
