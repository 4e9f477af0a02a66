"""Whether somebody has a RocksDB open: its lock is asked, without opening it."""

from __future__ import annotations

import errno
import fcntl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["is_locked"]


def is_locked(folder: Path) -> bool:
    """Whether another process has the store in a folder open for writing.

    Not to be asked by the process that has it open itself: closing the file would let go of its lock, a POSIX one.
    """
    try:
        file = (folder / "db" / "LOCK").open("rb+")
    except OSError:
        return False
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in (errno.EACCES, errno.EAGAIN)
    return False
