"""A private temporary folder that is removed soon after its process ends, even after a kill.

Each process locks a file in its folder, and the operating system releases the lock when the process ends. A new process
first removes all folders whose locks are free.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

__all__ = ["Scratch"]

_PREFIX: Final = "webfountain-scratch-"
_LOCK: Final = "lock"
_NEWBORN_S: Final = 3600.0
"""Folders younger than this many seconds are never removed, because their processes may not have locked them yet."""


class Scratch:
    """A temporary folder of this process, with mode 0700, in the system's folder for temporary files.

    Raises
    ------
    OSError
        when no folder can be created there.
    """

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder and its contents, unless they are already removed."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def _sweep(parent: Path) -> None:
    """Remove this user's temporary folders whose processes have ended."""
    with contextlib.suppress(OSError):
        for folder in parent.glob(_PREFIX + "*"):
            with contextlib.suppress(OSError):
                if folder.stat().st_uid == os.getuid() and folder.stat().st_mtime < time.time() - _NEWBORN_S:
                    _remove_unless_held(folder)


def _remove_unless_held(folder: Path) -> None:
    held = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(held)
