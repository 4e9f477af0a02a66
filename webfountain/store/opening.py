"""From a store's URL to an open store. The backends are imported here, lazily, and nowhere else.

``memory:`` is gone with the process; ``rocksdb:///absolute/folder`` and ``rocksdb://relative/folder`` are folders;
``redis://``, ``rediss://``, ``unix://``, ``redis+cluster://`` and ``redis+sentinel://`` are servers, for many
processes.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from webfountain.errors import InputError

if TYPE_CHECKING:
    from webfountain.store.contract import FrontierStore

__all__ = [
    "DEFAULT_STORE",
    "folder_of",
    "is_held",
    "is_shared",
    "open_store",
    "read_every_entry",
    "recount",
    "without_password",
]

DEFAULT_STORE: Final = "rocksdb://.webfountain"
_ROCKSDB = "rocksdb://"
_SHARED: Final = ("redis://", "rediss://", "unix://", "redis+cluster://", "rediss+cluster://", "redis+sentinel://")
"""How the URL of a store on a server begins."""


def folder_of(url: str) -> Path | None:
    """The folder of an embedded store, whose inbox and repository lie beside its data; None for other stores."""
    folder = url.removeprefix(_ROCKSDB)
    return Path(folder) if url.startswith(_ROCKSDB) and folder else None


def is_held(folder: Path) -> bool:
    """Whether another process has the embedded store in a folder open for writing; not to be asked by that process."""
    from webfountain.store.embedded.lock import is_locked  # noqa: PLC0415

    return is_locked(folder)


def is_shared(url: str) -> bool:
    """Whether a store's URL names a server, which many processes use at once."""
    return url.startswith(_SHARED)


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
) -> FrontierStore:
    """Open a store, creating it when it is not there.

    `period_s` is the length of a census period, `fastest_s` the mean change interval of bucket 0, the unit of the
    bucket byte. None means what the store was made with; of a new one `fastest_s` is then period_s / 96. Opened for
    writing with others than it was made with, the census rows and the plan of a store go, and with another
    unit its bucket bytes are made anew. `read_only` gives an up-to-date view, also of a store that another process
    is writing, in the units that it has. `fresh` deletes what the store holds. `at` is now: times of a run whose clock
    was ahead are clamped to it, with a warning in the log.

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
        from webfountain.store.memory.store import MemoryStore  # noqa: PLC0415  a backend is imported when it is asked for

        return MemoryStore(period_s=period_s, fastest_s=fastest_s)
    if is_shared(url):
        from webfountain.store.shared.opening import open_shared  # noqa: PLC0415

        return open_shared(url, collection=collection, period_s=period_s, fastest_s=fastest_s, fresh=fresh)
    folder = folder_of(url)
    if folder is None:
        raise InputError(
            f"--store {url!r}: use memory:, rocksdb:///absolute/folder, rocksdb://relative/folder, "
            "redis://host:port/0, rediss://, unix:///socket, redis+cluster://host:port or "
            "redis+sentinel://host:port/name"
        )
    from webfountain.store.embedded.opening import open_embedded  # noqa: PLC0415

    return open_embedded(
        folder, collection=collection, period_s=period_s, fastest_s=fastest_s, read_only=read_only, fresh=fresh, at=at
    )


def read_every_entry(folder: Path) -> int:
    """Read all that an embedded store holds; how many entries. StoreError at the first damaged block."""
    from webfountain.store.embedded.disk import open_reading  # noqa: PLC0415
    from webfountain.store.embedded.mending import read_every_entry as read  # noqa: PLC0415

    with contextlib.closing(open_reading(folder)) as disk:
        return read(disk)


def recount(folder: Path) -> None:
    """Make the counts of an embedded store anew. StoreHeld while a crawl has it open."""
    from webfountain.store.embedded.disk import open_writing  # noqa: PLC0415
    from webfountain.store.embedded.mending import recount as count_anew  # noqa: PLC0415

    with contextlib.closing(open_writing(folder)) as disk:
        count_anew(disk)
