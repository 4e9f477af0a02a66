"""The feeds: the change log and the live snapshots, by poll or as server-sent events. One read of the store serves all
clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from webfountain.history.live import EVERY_S
from webfountain.service.answers import ChangesPart, LivePart
from webfountain.service.streams import READ, ChangeFilter, event, send_stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from webfountain.api.collection import StoredCollection
    from webfountain.service.answers import ChangesQuery
    from webfountain.service.operation import Call
    from webfountain.service.served_store import ServedStore

__all__ = ["changes", "live"]

_STREAM_WAIT_S: Final = 5.0
"""Longest time that a stream waits for new entries before it polls the change log again, in seconds."""


async def changes(call: Call) -> object:
    """Answer a poll, a long poll or a stream request for the change log."""
    store, query = call.store, call.query
    assert store is not None
    wanted = ChangeFilter.of(query.site, query.prefix, query.verdict, query.least)
    since = query.since or call.request.headers.get("Last-Event-ID", "")
    if query.feed == "sse":
        cursor = await store.call(lambda collection: _begin(collection, since, query.after, at_end=True))
        await store.call(
            lambda collection: collection.changes(since=cursor, limit=1)
        )  # raise errors before the stream begins
        return await send_stream(call.request, _stream(store, cursor or "", wanted))
    part = await store.call(lambda collection: _part(collection, since, query, wanted))
    if query.feed == "long":
        loop = asyncio.get_running_loop()
        until = loop.time() + query.wait
        while not part.items and await store.tail.wait_beyond(part.next, until - loop.time()):
            after = part.next
            part = await store.call(lambda collection, after=after: _part(collection, after, query, wanted))  # type: ignore[misc]
    return part


async def live(call: Call) -> object:
    """Return the last snapshot of each crawling process, or a stream of snapshots."""
    assert call.store is not None
    if call.query.feed == "sse":
        return await send_stream(call.request, _snapshots(call.store))
    return LivePart(await call.store.live.get())


def _begin(collection: StoredCollection, since: str, after: float | None, *, at_end: bool) -> str | None:
    """Return the cursor at which a client begins to read, or None for the oldest entry."""
    if since:
        return since
    if after is not None:
        return collection.changes_from(after)
    return collection.changes_end() if at_end else None


def _part(collection: StoredCollection, since: str, query: ChangesQuery, wanted: ChangeFilter) -> ChangesPart:
    cursor = _begin(collection, since, query.after, at_end=False)
    end = collection.changes_end() if cursor is None else cursor
    found = collection.changes(since=cursor, limit=READ)
    items = [each for each in found if wanted.accepts(each)][: query.limit]
    if len(items) == query.limit:
        return ChangesPart(items, items[-1].cursor)  # type: ignore[arg-type]  # the union of its classes
    return ChangesPart(items, found[-1].cursor if found else end)  # type: ignore[arg-type]


async def _stream(store: ServedStore, cursor: str, wanted: ChangeFilter) -> AsyncIterator[bytes]:
    while True:
        data, end = await store.parts.after(cursor, wanted)
        yield data
        if end == cursor:
            await store.tail.wait_beyond(cursor, _STREAM_WAIT_S)
        cursor = end


async def _snapshots(store: ServedStore) -> AsyncIterator[bytes]:
    last: object = None
    while True:
        found = await store.live.get()
        yield b"" if found == last else event("live", LivePart(found))
        last = found
        await asyncio.sleep(EVERY_S)
