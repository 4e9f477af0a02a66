"""A collection for asyncio. All calls run in order in the one thread of the collection."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from webfountain.api.answers import (
        BlockAnswer,
        CopyAnswer,
        ExplanationAnswer,
        HistoryAnswer,
        NoteAnswer,
        PageAnswer,
        SiteAnswer,
        StatusAnswer,
        TextAnswer,
        VersionAnswer,
    )
    from webfountain.api.changes import PageChange
    from webfountain.api.collection import StoredCollection
    from webfountain.formats.markdown import PageFormat
    from webfountain.history.archive import Step
    from webfountain.history.live import LiveSnapshot
    from webfountain.records import State
    from webfountain.store.site_orders import SiteOrder

__all__ = ["POLL_S", "AsyncCollection"]

_T = TypeVar("_T")
POLL_S: Final = 0.5
"""Time between two polls of a change log without news, s."""
_PART: Final = 500
"""Number of entries or rows in one read."""


class AsyncCollection:
    """The methods of `StoredCollection` as coroutines. Lists are async iterators that load their parts themselves."""

    def __init__(self, collection: StoredCollection, thread: ThreadPoolExecutor) -> None:
        self._collection = collection
        self._thread = thread

    @classmethod
    async def opened(cls, opener: Callable[[], StoredCollection], thread: ThreadPoolExecutor) -> AsyncCollection:
        """Open a collection in a new thread, in which all its later calls run."""
        try:
            collection = await asyncio.get_running_loop().run_in_executor(thread, opener)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(collection, thread)

    async def call(self, function: Callable[[StoredCollection], _T]) -> _T:
        """Call a function with the collection in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, self._collection)

    async def status(self) -> StatusAnswer:
        """See `StoredCollection.status`."""
        return await self.call(lambda collection: collection.status())

    async def live(self) -> list[LiveSnapshot]:
        """See `StoredCollection.live`."""
        return await self.call(lambda collection: collection.live())

    async def history(self, step: Step = "minute", *, since: float, until: float | None = None) -> list[HistoryAnswer]:
        """See `StoredCollection.history`."""
        return await self.call(lambda collection: collection.history(step, since=since, until=until))

    async def sites(self, order: SiteOrder = "name") -> AsyncIterator[SiteAnswer]:
        """Yield every site in an order; see `StoredCollection.sorted_sites`."""
        after: str | None = ""
        while after is not None:
            found, after = await self.call(partial(_sites, order, after))
            for site in found:
                yield site

    async def pages(self, site: str, *, state: State | None = None) -> AsyncIterator[PageAnswer]:
        """Yield every page of a site. Raise InputError when the site is not known."""
        for row in await self.call(lambda collection: list(collection.every_page(site, state=state))):
            yield row

    async def page(self, url: str) -> PageAnswer | None:
        """See `StoredCollection.page`."""
        return await self.call(lambda collection: collection.page(url))

    async def copy(self, url: str, *, fetched: float | None = None) -> CopyAnswer:
        """See `StoredCollection.copy`."""
        return await self.call(lambda collection: collection.copy(url, fetched=fetched))

    async def text(
        self, url: str, *, format: PageFormat = "text", main: bool = False, fetched: float | None = None
    ) -> str:
        """See `StoredCollection.text`."""
        return await self.call(lambda collection: collection.text(url, format=format, main=main, fetched=fetched))

    async def versions(self, url: str, *, limit: int = 20) -> list[VersionAnswer]:
        """See `StoredCollection.versions`."""
        return await self.call(lambda collection: collection.versions(url, limit=limit))

    async def texts(
        self, *, since: str | None = None, format: PageFormat = "text", main: bool = False
    ) -> AsyncIterator[TextAnswer]:
        """Yield the pages as texts: first the whole list, then the changes since it began, until there are no more."""
        while found := await self.call(partial(_texts, since, format, main)):
            for text in found:
                yield text
            since = found[-1].cursor

    async def explain(self, url: str, *, linked_by: str | None = None) -> ExplanationAnswer:
        """See `StoredCollection.explain`."""
        return await self.call(lambda collection: collection.explain(url, linked_by=linked_by))

    async def changes(
        self, *, since: str | None = None, reader: str | None = None, follow: bool = True
    ) -> AsyncIterator[PageChange]:
        """Yield the entries of the change log after a cursor, or after the place of a named reader.

        With `follow`, wait at the end for new entries, until the caller stops the iteration.
        """
        cursor = since
        if cursor is None and reader is not None:
            cursor = await self.call(lambda collection: collection.places().cursor(reader))
        while True:
            found = await self.call(partial(_changes, cursor))
            for change in found:
                if reader is not None:
                    change.__dict__["keep"] = partial(self._keep, reader)
                yield change
                cursor = change.cursor
            if not found and not follow:
                return
            if not found:
                await asyncio.sleep(POLL_S)

    async def now(self, urls: Sequence[str]) -> NoteAnswer:
        """See `StoredCollection.now`."""
        return await self.call(lambda collection: collection.now(urls))

    async def forget(self, url: str | None = None, *, site: str | None = None) -> NoteAnswer:
        """See `StoredCollection.forget`."""
        return await self.call(lambda collection: collection.forget(url, site=site))

    async def pause(self) -> NoteAnswer:
        """See `StoredCollection.pause`."""
        return await self.call(lambda collection: collection.pause())

    async def resume(self) -> NoteAnswer:
        """See `StoredCollection.resume`."""
        return await self.call(lambda collection: collection.resume())

    async def block(self, prefix: str, *, until: float | None = None) -> NoteAnswer:
        """See `StoredCollection.block`."""
        return await self.call(lambda collection: collection.block(prefix, until=until))

    async def unblock(self, prefix: str) -> NoteAnswer:
        """See `StoredCollection.unblock`."""
        return await self.call(lambda collection: collection.unblock(prefix))

    async def blocks(self) -> list[BlockAnswer]:
        """See `StoredCollection.blocks`."""
        return await self.call(lambda collection: collection.blocks())

    async def drain(self, ant: str) -> NoteAnswer:
        """See `StoredCollection.drain`."""
        return await self.call(lambda collection: collection.drain(ant))

    async def close(self) -> None:
        """Close the collection and end its thread. A second call has no effect."""
        await self.call(lambda collection: collection.close())
        self._thread.shutdown(wait=False)

    async def _keep(self, reader: str, cursor: str) -> None:
        await self.call(lambda collection: collection.places().keep(reader, cursor))


def _sites(order: SiteOrder, after: str, collection: StoredCollection) -> tuple[list[SiteAnswer], str | None]:
    return collection.sorted_sites(order, after=after, limit=_PART)


def _texts(since: str | None, form: PageFormat, main: bool, collection: StoredCollection) -> list[TextAnswer]:
    return collection.texts(since=since, format=form, main=main, limit=_PART)


def _changes(since: str | None, collection: StoredCollection) -> list[PageChange]:
    return collection.changes(since=since, limit=_PART)
