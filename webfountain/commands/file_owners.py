"""Name the owner of a file or folder in an error line, and say how to get access.

The folder of a crawl often belongs to another user, such as a service. The message "Permission denied" alone does not
tell the user whom to ask.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from typing import TYPE_CHECKING

from webfountain.errors import InputError
from webfountain.private_files import is_stream

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["owner_hint", "require_writable_folder", "user_name"]


def require_writable_folder(file: Path, *, name: str) -> None:
    """Check that a file can be created at a path.

    `name` is the command-line argument with the path, for the error message.

    Raises
    ------
    InputError
        if its folder is missing or cannot be written, or if it is a folder, a device or a pipe. The text names the
        folder's owner.
    """
    if file.is_dir():
        raise InputError(f"{name} is a folder")
    if is_stream(file):
        raise InputError(f"{name} is a device or a pipe, not a file; a file appears there only when it is complete")
    folder = file.parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        hint = owner_hint(folder) if folder.exists() else ""
        raise InputError(f"{name}: {folder} is not a folder that can be written{hint}")


def owner_hint(place: Path) -> str:
    """Return a hint such as " (/srv belongs to ann: run the command as ann, or ask ann for access)"."""
    for path in (place, *place.parents):
        with contextlib.suppress(OSError):
            owner = user_name(path.stat().st_uid)
            return f" ({path} belongs to {owner}: run the command as {owner}, or ask {owner} for access)"
    return ""


def user_name(number: int) -> str:
    """Return a user's name, or the number if the system knows no name."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
