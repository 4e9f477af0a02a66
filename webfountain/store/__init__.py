"""Where the frontier's bytes live: the contract, its backends, and `open_store`.

Life of a lease
---------------
A link is *discovered*: its URL gets a record and stands in its site's never-crawled queue, in the lane of its
importance. An ant takes the site by a *site lease*, whose token every later step names, and leases the URL into its
hand: the entry stays where it is and is only hidden, so a crash at any moment from here on loses nothing. The URL is
fetched, its copy is written to the repository, its links are discovered; then the lease is *settled*: in one atomic
step the record takes the outcome, the census counts it, the change log tells of it, the queue entry goes, and the
page stands in the recrawl lane of its bucket. From there it is leased again when the caller's horizon reaches it, for
as long as the collection lives. A hand that is emptied early *releases* its leases. A URL lease has no deadline of its
own: it ends with the site lease, when the site is parked or another takes it over after its time ran out; a settle that
comes after that has no effect and is counted. `forget` ends a page's life in any of these places, and bars it;
`evict` ends that of its copy.

`contract` is what every store keeps, `memory` the reference, `embedded` the default, `shared` that of many processes;
`rules` holds what all of them share. From a store's URL to an open store leads `open_store`: the backends are imported
here, lazily, and nowhere else. ``memory:`` is gone with the process; ``rocksdb:///absolute/folder`` and
``rocksdb://relative/folder`` are folders; ``redis://``, ``rediss://``, ``unix://``, ``redis+cluster://`` and
``redis+sentinel://`` are servers, for many processes.

A private temporary folder that does not outlive its process for long, however the process ends. A folder that is
closed is removed. One whose process was killed is removed by the next process that makes one: the living hold a lock
on a file in theirs, which the system lets go of with the process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from webfountain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared.private import PrivateServer
    from webfountain.store.transfer import Row

__all__ = [
    "DEFAULT_STORE",
    "Scratch",
    "folder_of",
    "is_held",
    "is_shared",
    "load_store",
    "open_store",
    "private_server",
    "read_every_entry",
    "recount",
    "without_password",
]

_PREFIX: Final = "webfountain-scratch-"
_LOCK: Final = "lock"
_NEWBORN_S: Final = 3600.0
"""A folder younger than this is left alone: its process may not have locked it yet."""


class Scratch:
    """A folder of this process's own, mode 0700, in the system's folder of temporary files.

    Raises
    ------
    OSError
        when none can be made there.
    """

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder and all that is in it. A second call has no effect."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def _sweep(parent: Path) -> None:
    """Remove the folders of this user whose processes are gone."""
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


DEFAULT_STORE: Final = "rocksdb://.webfountain"
_ROCKSDB: Final = "rocksdb://"
_PRIVATE: Final = "valkey://"
_SHARED: Final = ("redis://", "rediss://", "unix://", "redis+cluster://", "rediss+cluster://", "redis+sentinel://")
"""How the URL of a store on a server begins."""


def folder_of(url: str) -> Path | None:
    """The folder of a store that has one, whose inbox and repository lie beside its data; None for other stores."""
    scheme = next((each for each in (_ROCKSDB, _PRIVATE) if url.startswith(each)), None)
    folder = "" if scheme is None else url.removeprefix(scheme)
    return Path(folder) if folder else None


def is_held(folder: Path) -> bool:
    """Whether another process writes the store in a folder: it is not opened for that, or its server runs.

    Not to be asked by the process that has it open itself: closing the file would let go of its lock, a POSIX one.
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
    """Whether a store's URL names a server, which many processes use at once."""
    return url.startswith((*_SHARED, _PRIVATE))


def without_password(url: str) -> str:
    """A URL that may be shown and logged."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":***@", 1)


def open_store(
    url: str,
    *,
    collection: str | None,
    period_s: float | None,
    fastest_s: float | None = None,
    read_only: bool = False,
    fresh: bool = False,
    at: float | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> FrontierStore:
    """Open a store, creating it when it is not there.

    `period_s` is the length of a census period, `fastest_s` the mean change interval of bucket 0, the unit of the
    bucket byte. None means what the store was made with; of a new one `fastest_s` is then period_s / 96. Opened for
    writing with others than it was made with, the census rows and the plan of a store go, and with another
    unit its bucket bytes are made anew. `read_only` gives an up-to-date view, also of a store that another process
    is writing, in the units that it has. `fresh` deletes what the store holds. `at` is now: times of a run whose clock
    was ahead are clamped to it, with a warning in the log. `parameters` are further arguments of a server's client.

    Raises
    ------
    InputError
        when `url` is none of the forms above, or a None is asked of a store that does not exist.
    StoreHeld, StoreVersion, StoreBound, StoreError
        when the folder is another process's, another version's, another collection's, or cannot be written.
    """
    if url == "memory:":
        if period_s is None:
            raise InputError("--store memory: a new store needs a period")
        from webfountain.store.memory import MemoryStore  # noqa: PLC0415  a backend is imported when it is asked for

        return MemoryStore(period_s=period_s, fastest_s=fastest_s, collection=collection or "")
    folder = folder_of(url)
    if folder is not None and url.startswith(_PRIVATE):
        from webfountain.store.shared.opening import open_private  # noqa: PLC0415

        return open_private(folder, collection=collection, period_s=period_s, fastest_s=fastest_s, fresh=fresh)
    if is_shared(url):
        from webfountain.store.shared.opening import open_shared  # noqa: PLC0415

        return open_shared(
            url, collection=collection, period_s=period_s, fastest_s=fastest_s, fresh=fresh, parameters=parameters
        )
    if folder is None:
        raise InputError(
            f"--store {url!r}: use memory:, rocksdb:///absolute/folder, rocksdb://relative/folder, "
            "valkey://folder, redis://host:port/0, rediss://, unix:///socket, redis+cluster://host:port or "
            "redis+sentinel://host:port/name"
        )
    from webfountain.store.embedded import open_embedded  # noqa: PLC0415

    return open_embedded(
        folder, collection=collection, period_s=period_s, fastest_s=fastest_s, read_only=read_only, fresh=fresh, at=at
    )


def private_server(url: str) -> PrivateServer | None:
    """Start the server of a ``valkey://folder`` store, and own it; None for other stores.

    Raises
    ------
    StoreHeld, StoreError
        when another process owns it, or it cannot be started.
    """
    folder = folder_of(url)
    if folder is None or not url.startswith(_PRIVATE):
        return None
    from webfountain.store.shared.private import PrivateServer  # noqa: PLC0415

    return PrivateServer(folder)


def load_store(url: str, rows: Iterator[Row]) -> None:
    """Make a new store of another's rows (`Portable.rows`), of any kind.

    Raises
    ------
    InputError
        when there is a store at the URL, or it names a store of no process.
    StoreHeld, StoreError
        when the folder or the server cannot be used.
    """
    folder = folder_of(url)
    if folder is not None and url.startswith(_PRIVATE):
        from webfountain.store.shared.opening import load_private  # noqa: PLC0415

        load_private(folder, rows)
        return
    if is_shared(url):
        from webfountain.store.shared.opening import load_shared  # noqa: PLC0415

        load_shared(url, rows)
        return
    if folder is None:
        raise InputError(f"--store {url!r}: nothing to import into (use rocksdb://folder or a server's URL)")
    from webfountain.store.embedded.store import load_folder  # noqa: PLC0415

    load_folder(folder, rows)


def read_every_entry(folder: Path) -> int:
    """Read all that an embedded store holds; how many entries. StoreError at the first damaged block."""
    from webfountain.store.embedded import read_every_entry as read  # noqa: PLC0415
    from webfountain.store.embedded.disk import open_reading  # noqa: PLC0415

    with contextlib.closing(open_reading(folder)) as disk:
        return read(disk)


def recount(folder: Path) -> None:
    """Make the counts of an embedded store anew. StoreHeld while a crawl has it open."""
    from webfountain.store.embedded import recount as count_anew  # noqa: PLC0415
    from webfountain.store.embedded.disk import open_writing  # noqa: PLC0415

    with contextlib.closing(open_writing(folder)) as disk:
        count_anew(disk)
