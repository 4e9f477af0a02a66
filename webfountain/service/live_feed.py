"""The live snapshots as an answer or as a stream, with one read for all clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from webfountain.history.live import EVERY_S
from webfountain.service.answers import LivePart
from webfountain.service.streams import event, send_stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from webfountain.service.operation import Call
    from webfountain.service.served_store import ServedStore

__all__ = ["live"]


async def live(call: Call) -> object:
    """Answer with the last snapshots, or with a stream of them."""
    assert call.store is not None
    if call.query.feed == "sse":
        return await send_stream(call.request, _stream(call.store))
    return LivePart(await call.store.live.get())


async def _stream(store: ServedStore) -> AsyncIterator[bytes]:
    last: object = None
    while True:
        found = await store.live.get()
        yield b"" if found == last else event("live", LivePart(found))
        last = found
        await asyncio.sleep(EVERY_S)
