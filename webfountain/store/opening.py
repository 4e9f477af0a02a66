"""Open the store that a URL names."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from webfountain.errors import InputError
from webfountain.store.locations import PRIVATE, ROCKSDB, folder_of, is_in_use, is_shared

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared.private import PrivateServer
    from webfountain.store.shared.scrapy_redis import ScrapyRedisKeys
    from webfountain.store.transfer_rows import End, Row

__all__ = [
    "left_by_scrapy_redis",
    "load_store",
    "open_store",
    "private_server",
    "read_every_entry",
    "recount",
    "salvage",
]


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
    """Open a store, or create it if it does not exist.

    `period_s` is the length of a census period, and `fastest_s` the mean change interval of bucket 0. If `period_s` or
    `fastest_s` is None, an existing store keeps the value that it has. A new store needs `period_s`; its `fastest_s` is
    by default period_s / 96. If a store is opened for writing with a different `period_s` or `fastest_s`, its census
    rows and plan are deleted. If `fastest_s` changes, the bucket bytes in the store are converted. `read_only` gives an
    up-to-date view, even while another process writes. If `fresh` is True, the content of an existing store is deleted.
    `at` is the current time; later times in the store, from a run with a wrong clock, are corrected. `parameters` are
    further arguments of the server's client.

    Raises
    ------
    InputError
        if `url` has no known form, if None is given for a store that does not exist, or if the folder contains a store
        of the other kind.
    StoreHeld, StoreVersion, StoreBound, StoreError
        if another process uses the folder, or if the store has another version, belongs to another collection, or
        cannot be written.
    """
    if url == "memory:":
        if period_s is None:
            raise InputError("--store memory: a new store needs a period")
        from webfountain.store.memory.store import MemoryStore  # noqa: PLC0415  a backend is imported on first use

        return MemoryStore(period_s=period_s, fastest_s=fastest_s, collection=collection or "")
    folder = folder_of(url)
    _refuse_second(url)
    given: dict[str, Any] = {"collection": collection, "period_s": period_s, "fastest_s": fastest_s}
    given |= {"fresh": fresh, "at": at}
    if folder is not None and url.startswith(PRIVATE):
        from webfountain.store.shared.opening import open_private  # noqa: PLC0415

        return open_private(folder, **given)
    if is_shared(url):
        from webfountain.store.shared.opening import open_shared  # noqa: PLC0415

        return open_shared(url, parameters=parameters, **given)
    if folder is None:
        raise InputError(
            f"--store {url!r}: use memory:, rocksdb:///absolute/folder, rocksdb://relative/folder, "
            "valkey://folder, redis://host:port/0, rediss://, unix:///socket, redis+cluster://host:port or "
            "redis+sentinel://host:port/name"
        )
    from webfountain.store.embedded.opening import open_embedded  # noqa: PLC0415

    return open_embedded(folder, read_only=read_only, **given)


def _refuse_second(url: str) -> None:
    """Raise InputError if the folder contains a store of another kind."""
    # With two stores in one folder, all pages would be crawled twice.
    folder = folder_of(url)
    if folder is None:
        return
    if url.startswith(PRIVATE) and (folder / "db").is_dir():
        raise InputError(
            f"--store {url!r}: the folder holds a store for one process; give another folder, "
            f"or --store {ROCKSDB}{folder} without --ants"
        )
    if not url.startswith(PRIVATE) and (folder / "valkey").is_dir():
        raise InputError(
            f"--store {url!r}: the folder holds a store for many ants; give --ants, or --store {PRIVATE}{folder}"
        )


def private_server(url: str) -> PrivateServer | None:
    """Start and return the server of a ``valkey://folder`` store; return None for other stores.

    Raises
    ------
    StoreHeld, StoreError
        if another process owns the server, or the server cannot be started.
    """
    folder = folder_of(url)
    if folder is None or not url.startswith(PRIVATE):
        return None
    _refuse_second(url)
    from webfountain.store.shared.private import PrivateServer  # noqa: PLC0415

    return PrivateServer(folder)


def load_store(url: str, rows: Iterator[Row]) -> None:
    """Create a store from the rows of another store (`FrontierStore.rows`).

    Raises
    ------
    InputError
        if there already is a store at the URL, or the URL is ``memory:``.
    StoreHeld, StoreError
        if the folder or the server cannot be used.
    """
    folder = folder_of(url)
    _refuse_second(url)
    if folder is not None and url.startswith(PRIVATE):
        from webfountain.store.shared.opening import load_private  # noqa: PLC0415

        load_private(folder, rows)
        return
    if is_shared(url):
        from webfountain.store.shared.opening import load_shared  # noqa: PLC0415

        load_shared(url, rows)
        return
    if folder is None:
        raise InputError(f"--store {url!r}: cannot import into this store (use rocksdb://folder or a server's URL)")
    from webfountain.store.embedded.transfer import load_folder  # noqa: PLC0415

    load_folder(folder, rows)


def read_every_entry(folder: Path) -> int:
    """Read the whole content of an embedded store; return the number of entries. Raises StoreError at the first damaged
    block.
    """
    from webfountain.store.embedded.disk import open_reading  # noqa: PLC0415
    from webfountain.store.embedded.salvage import trouble_of  # noqa: PLC0415
    from webfountain.store.embedded.side_files import damaged, is_damaged  # noqa: PLC0415

    if not (folder / "db" / "CURRENT").exists() and is_damaged(folder):
        raise damaged(folder, "db/CURRENT is missing")
    if os.access(folder / "db", os.W_OK) and not is_in_use(folder) and (why := trouble_of(folder)):
        raise damaged(folder, why)
    with contextlib.closing(open_reading(folder)) as disk:
        return sum(1 for _ in disk.scan(b"\x00", b"\xff"))


def salvage(folder: Path) -> End:
    """Create a new store from the readable content of a damaged embedded store; see `embedded.salvage`."""
    from webfountain.store.embedded.salvage import salvage as of_folder  # noqa: PLC0415
    from webfountain.store.embedded.side_files import kept_card  # noqa: PLC0415

    return of_folder(folder, kept_card(folder))


def recount(url: str) -> None:
    """Compute the counts of a store again.

    Raises StoreHeld if a crawl has an embedded store open. The caller must check that no process crawls on a shared
    store.
    """
    with contextlib.closing(open_store(url, collection=None, period_s=None)) as store:
        store.recount()


def left_by_scrapy_redis(url: str, *, requests: str, dupefilter: str) -> ScrapyRedisKeys:
    """Return a context manager for the data that a scrapy-redis spider left under these keys."""
    from webfountain.store.shared.scrapy_redis import ScrapyRedisKeys  # noqa: PLC0415

    return ScrapyRedisKeys(url, requests=requests, dupefilter=dupefilter)
