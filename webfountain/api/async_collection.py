"""A collection for asyncio. All calls run one after another in the thread of the collection."""

from __future__ import annotations

import asyncio
import functools
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from webfountain.api.collection import StoredCollection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from concurrent.futures import ThreadPoolExecutor

    from webfountain.api.answers import PageAnswer, SiteAnswer, TextAnswer
    from webfountain.api.changes import PageChange
    from webfountain.formats.markdown import PageFormat
    from webfountain.records import State
    from webfountain.store.site_orders import SiteOrder

__all__ = ["POLL_S", "AsyncCollection"]

_P = ParamSpec("_P")
_T = TypeVar("_T")
POLL_S: Final = 0.5
"""Time to wait before the change log is polled again, in seconds."""
_PART: Final = 500
"""Number of entries or rows that an iterator requests in one call."""


def _in_thread(
    method: Callable[Concatenate[StoredCollection, _P], _T],
) -> Callable[Concatenate[AsyncCollection, _P], Coroutine[Any, Any, _T]]:
    """Return a coroutine function that calls a method in the collection's thread."""

    @functools.wraps(method)
    async def call(collection: AsyncCollection, /, *given: _P.args, **named: _P.kwargs) -> _T:
        return await collection.call(lambda opened: method(opened, *given, **named))

    return call


class AsyncCollection:
    """A collection with the methods of `StoredCollection` as coroutines. A method that returns a list in parts becomes
    an async iterator over the whole list."""

    status = _in_thread(StoredCollection.status)
    live = _in_thread(StoredCollection.live)
    history = _in_thread(StoredCollection.history)
    page = _in_thread(StoredCollection.page)
    copy = _in_thread(StoredCollection.copy)
    text = _in_thread(StoredCollection.text)
    versions = _in_thread(StoredCollection.versions)
    explain = _in_thread(StoredCollection.explain)
    now = _in_thread(StoredCollection.now)
    forget = _in_thread(StoredCollection.forget)
    pause = _in_thread(StoredCollection.pause)
    resume = _in_thread(StoredCollection.resume)
    block = _in_thread(StoredCollection.block)
    unblock = _in_thread(StoredCollection.unblock)
    blocks = _in_thread(StoredCollection.blocks)
    drain = _in_thread(StoredCollection.drain)

    def __init__(self, collection: StoredCollection, thread: ThreadPoolExecutor) -> None:
        self._collection = collection
        self._thread = thread

    @classmethod
    async def opened(cls, opener: Callable[[], StoredCollection], thread: ThreadPoolExecutor) -> AsyncCollection:
        """Open a collection in a new thread, which also runs all later calls."""
        try:
            collection = await asyncio.get_running_loop().run_in_executor(thread, opener)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(collection, thread)

    async def call(self, function: Callable[[StoredCollection], _T]) -> _T:
        """Call a function in the collection's thread, with the collection as argument."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, self._collection)

    async def sites(self, order: SiteOrder = "name") -> AsyncIterator[SiteAnswer]:
        """Yield every site, sorted as in `StoredCollection.sorted_sites`."""
        after: str | None = ""
        while after is not None:
            read = partial(StoredCollection.sorted_sites, order=order, after=after, limit=_PART)
            found, after = await self.call(read)
            for site in found:
                yield site

    async def pages(self, site: str, *, state: State | None = None) -> AsyncIterator[PageAnswer]:
        """Yield every page of a site. Raise InputError when the site is not known."""
        for row in await self.call(lambda collection: list(collection.every_page(site, state=state))):
            yield row

    async def texts(
        self, *, since: str | None = None, format: PageFormat = "text", main: bool = False
    ) -> AsyncIterator[TextAnswer]:
        """Yield the texts of all pages, and then the texts of pages that changed after the call began."""
        read = partial(StoredCollection.texts, format=format, main=main, limit=_PART)
        while found := await self.call(partial(read, since=since)):
            for text in found:
                yield text
            since = found[-1].cursor

    async def changes(
        self, *, since: str | None = None, reader: str | None = None, follow: bool = True
    ) -> AsyncIterator[PageChange]:
        """Yield the entries of the change log after a cursor, or after the position of a named reader.

        With `follow`, wait at the end of the log for new entries, until the caller stops the iteration.
        """
        cursor = since
        if cursor is None and reader is not None:
            cursor = await self.call(lambda collection: collection.places().cursor(reader))
        while True:
            found = await self.call(partial(StoredCollection.changes, since=cursor, limit=_PART))
            for change in found:
                if reader is not None:
                    change.__dict__["keep"] = partial(self._keep, reader)
                yield change
                cursor = change.cursor
            if not found and not follow:
                return
            if not found:
                await asyncio.sleep(POLL_S)

    async def close(self) -> None:
        """Close the collection and end its thread. Calling `close` again has no effect."""
        await self.call(StoredCollection.close)
        self._thread.shutdown(wait=False)

    async def _keep(self, reader: str, cursor: str) -> None:
        await self.call(lambda collection: collection.places().keep(reader, cursor))
