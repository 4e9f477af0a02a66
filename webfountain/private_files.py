"""Create files that only their owner can read, because a crawl may contain data of an intranet. Detect memory-mapped
files that have become shorter.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["draft_of", "is_cut", "is_stream", "private", "replaced", "write_document"]

_OWNER = 0o600


def private(path: Path, mode: str = "wb") -> IO[Any]:
    """Open a file; if it does not exist, create it with mode 0600."""
    return open(path, mode, opener=partial(os.open, mode=_OWNER), encoding=None if "b" in mode else "utf-8")


@contextmanager
def replaced(path: Path, *, durable: bool = False, mode: int = _OWNER) -> Iterator[IO[bytes]]:
    """Open a temporary file for writing; the file replaces `path` when the ``with`` block ends without an error.

    Other processes never see an incomplete file. If a process is killed while it writes, the old file stays, and the
    next process overwrites the temporary file. If `durable` is True, the new file survives a power failure.
    """
    draft = path.with_name(f".{path.name}.tmp")
    draft.unlink(missing_ok=True)
    try:
        with open(draft, "wb", opener=partial(os.open, mode=mode)) as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces `path` when the ``with`` block ends without an error.

    The file gets the system's default mode, because the user may want to share it. Raise OSError if `path` is a device
    or a pipe, because the device or pipe would be replaced.
    """
    if is_stream(path):
        raise OSError(errno.EINVAL, "is a device or a pipe, not a file", str(path))
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield draft
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def is_stream(path: Path) -> bool:
    """Return whether a path leads to a device, a pipe, or an open file of a process, such as /dev/stdout."""
    is_open_file = path.is_symlink() and str(path.readlink()).startswith("/proc/")
    return is_open_file or (path.exists() and not path.is_file() and not path.is_dir())


def is_cut(path: Path, size: int) -> bool:
    """Return whether a file is now shorter than `size` bytes, for example because a backup was copied over it.

    Call this function before each read of a mapped file, because a read beyond the end of the file kills the process
    (SIGBUS). A deleted or replaced file is no danger, because a process that has mapped the file still reads the old
    content.
    """
    try:
        return path.stat().st_size < size
    except FileNotFoundError:
        return False


def write_document(file: Path, document: object) -> None:
    """Write a JSON document completely or not at all, because a reader may wait for the file to appear."""
    with draft_of(file) as draft:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(document)) + b"\n")
