"""Streams of server-sent events, limited in number.

A stream is a series of chunks, each with one or more events. The caller encodes a chunk once for all streams at the
same cursor. A client that does not read is disconnected. Between events a comment keeps the connection open.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web

from webfountain.service.problems import ProblemError, problem_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["MAX_STREAMS", "STREAMS", "StreamPlaces", "event", "send_stream"]

MAX_STREAMS: Final = 200
QUIET_S: Final = 15.0
"""A comment is sent after this time without an event, s."""
WRITE_S: Final = 30.0
"""A client that accepts no bytes for this time is disconnected, s."""
RETRY_MS: Final = 2000
_COMMENT: Final = b": \n\n"


class StreamPlaces:
    """Limit on the number of open streams."""

    def __init__(self, most: int = MAX_STREAMS) -> None:
        self._most = most
        self.open = 0
        """Number of open streams."""

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Occupy a place during the block. Raise ProblemError if no place is free."""
        if self.open >= self._most:
            raise ProblemError(503, "busy", f"{self._most} event streams are open", retry_after_s=10)
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


STREAMS: Final = web.AppKey("streams", StreamPlaces)


def event(name: str, data: object, *, cursor: str | None = None) -> bytes:
    """Return an event with data as JSON. A client sends `cursor` back when it reconnects."""
    head = b"" if cursor is None else b"id: " + cursor.encode() + b"\n"
    return head + b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


async def send_stream(request: web.Request, chunks: AsyncIterator[bytes]) -> web.StreamResponse:
    """Send chunks as they arrive, until the client disconnects or the chunks end. An empty chunk means no news."""
    with request.app[STREAMS].taken():
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        response.headers["X-Accel-Buffering"] = "no"
        await response.prepare(request)
        loop = asyncio.get_running_loop()
        await _write(response, f"retry: {RETRY_MS}\n\n".encode())
        quiet_since = loop.time()
        try:
            async for chunk in chunks:
                if chunk or loop.time() - quiet_since >= QUIET_S:
                    await _write(response, chunk or _COMMENT)
                    quiet_since = loop.time()
        except (ConnectionError, TimeoutError):
            pass  # the client is gone or does not read
        except Exception as error:
            problem = problem_of(error)
            await _write(response, event("problem", problem.problem))
        return response


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_S):
        await response.write(data)
