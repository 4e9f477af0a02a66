"""The location of a store: the meaning of its URL, and the locks of its folder."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import urlsplit

from webfountain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ANOTHER_STORE",
    "PRIVATE",
    "ROCKSDB",
    "folder_of",
    "is_in_use",
    "is_shared",
    "require_readable",
    "without_password",
]

ROCKSDB: Final = "rocksdb://"
PRIVATE: Final = "valkey://"
_SHARED: Final = ("redis://", "rediss://", "unix://", "redis+cluster://", "rediss+cluster://", "redis+sentinel://")
"""Prefixes of URLs that name a store on a server."""
ANOTHER_STORE: Final = "give another store (--store or WEBFOUNTAIN_STORE)"
"""Advice in an error message about an unusable folder. Scrapy's own commands have no `--store` option, so the message
also names the environment variable.
"""


def folder_of(url: str) -> Path | None:
    """Return the folder of a store, which also contains its inbox and repository; None for a store without a folder."""
    scheme = next((each for each in (ROCKSDB, PRIVATE) if url.startswith(each)), None)
    folder = "" if scheme is None else url.removeprefix(scheme)
    if folder.startswith("~"):
        raise InputError(f"--store {url!r}: ~ is not expanded here (did you mean {scheme}{Path(folder).expanduser()}?)")
    return Path(folder) if folder else None


def require_readable(url: str) -> None:
    """Raise InputError if no other process can read the store at a URL: it is in memory, or the form of the URL is
    unknown.
    """
    if folder_of(url) is None and not is_shared(url):
        raise InputError(
            f"--store {url!r}: nothing to read (use rocksdb:///absolute/folder or rocksdb://relative/folder)"
        )


def is_in_use(folder: Path) -> bool:
    """Return whether another process has the store in a folder open for writing, or runs its server.

    A process that has the store open must not call this function, because closing the lock file would release the
    process's own POSIX lock.
    """
    return _is_locked(folder / "db" / "LOCK", fcntl.lockf) or _is_locked(folder / "valkey" / "lock", fcntl.flock)


def _is_locked(path: Path, lock: Callable[[IO[bytes], int], None]) -> bool:
    try:
        file = path.open("rb+")
    except OSError:
        return False
    with file:
        try:
            lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in (errno.EACCES, errno.EAGAIN)
    return False


def is_shared(url: str) -> bool:
    """Return whether a store's URL names a server, which many processes can use at the same time."""
    return url.startswith((*_SHARED, PRIVATE))


def without_password(url: str) -> str:
    """Return the URL without its password, for display and logs."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":***@", 1)
