"""Functions that open a collection: ``with webfountain.open("rocksdb://.webfountain") as collection``, or ``async
with``.

A crawl may run at the same time. A missing store is an error and is not created.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from webfountain.api.async_collection import AsyncCollection
from webfountain.api.collection import StoredCollection
from webfountain.report.store_reading import opened_for_reading
from webfountain.store.locations import folder_of

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Opening", "open_collection", "open_stored"]


def open_stored(store: str, *, repository: str | Path | None = None) -> StoredCollection:
    """Open a collection without a `with` block; the caller must close the collection. Raise the same errors as
    `open_collection`."""
    folder, copies = folder_of(store), None if repository is None else Path(repository)
    if copies is None and folder is not None:
        copies = folder / "repository"
    return StoredCollection(opened_for_reading(store), store, repository=copies)


class Opening:
    """Context manager that opens a collection. With `async with`, the collection runs in a thread of its own."""

    def __init__(self, store: str, repository: str | Path | None) -> None:
        self._store = store
        self._repository = repository
        self._opened: StoredCollection | None = None
        self._async: AsyncCollection | None = None

    def __enter__(self) -> StoredCollection:
        self._opened = open_stored(self._store, repository=self._repository)
        return self._opened

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._opened is not None:
            self._opened.close()

    async def __aenter__(self) -> AsyncCollection:
        thread = ThreadPoolExecutor(1, thread_name_prefix="webfountain-collection")
        self._async = await AsyncCollection.opened(
            lambda: open_stored(self._store, repository=self._repository), thread
        )
        return self._async

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._async is not None:
            await self._async.close()


def open_collection(store: str, *, repository: str | Path | None = None) -> Opening:
    """Open the collection of a store for reading, with `with` or `async with`.

    Parameters
    ----------
    store : ``rocksdb://folder``, ``valkey://folder``, or the URL of a server: ``redis://host:port/0`` and others
    repository : folder of the copies; by default the folder of the store

    Raises
    ------
    InputError
        (by `with`) when there is no store.
    StoreError
        when it cannot be read; StoreVersion when another version of webfountain wrote it.
    """
    return Opening(store, repository)
