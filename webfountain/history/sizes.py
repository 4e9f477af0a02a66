"""Disk sizes of a store and its copies, for the history."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["folder_bytes"]

MAX_FILES: Final = 100_000
"""Maximum number of files in a measured folder. More would take too long, because sizes are measured once a minute."""
_DEPTH: Final = 2
"""Number of levels of folders that are measured."""


def folder_bytes(folder: Path) -> int | None:
    """Return the bytes of all files in a folder tree; None if the folder is absent or has too many files."""
    total, left = 0, MAX_FILES
    folders = [(str(folder), _DEPTH)]
    while folders:
        name, levels = folders.pop()
        try:
            with os.scandir(name) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        folders += [(entry.path, levels - 1)] if levels else []
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            if name == str(folder):
                return None  # a file or folder below it was removed meanwhile
        if left < 0:
            return None
    return total
