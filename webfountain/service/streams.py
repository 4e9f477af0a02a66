"""Streams of server-sent events. The number of open streams is limited.

A stream is a series of chunks, each with one or more events. All streams share each computed chunk, so fifty streams
cost about as much as one. Between events, comments keep the connection open.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from aiohttp import web

from webfountain.api.changes import VERDICTS
from webfountain.errors import InputError
from webfountain.policy.errors import cut
from webfountain.service.problems import ProblemError, problem_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from webfountain.api.changes import PageChange
    from webfountain.records import Change

__all__ = ["MAX_STREAMS", "READ", "STREAMS", "ChangeFilter", "StreamParts", "StreamPlaces", "event", "send_stream"]

READ: Final = 500
"""Number of change-log entries that one call reads."""
_PARTS: Final = 64
"""Maximum number of chunks that are kept in memory, so that several streams can use them."""
MAX_STREAMS: Final = 200
QUIET_S: Final = 15.0
"""If a stream has no event for this number of seconds, it sends a comment."""
WRITE_S: Final = 30.0
"""A client that accepts no bytes for this number of seconds is disconnected."""
RETRY_MS: Final = 2000
_COMMENT: Final = b": \n\n"


class StreamPlaces:
    """Counter that limits the number of open streams."""

    def __init__(self, most: int = MAX_STREAMS) -> None:
        self._most = most
        self.open = 0
        """Number of open streams."""

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Count one more open stream while the `with` block runs. Raise ProblemError if too many streams are open."""
        if self.open >= self._most:
            raise ProblemError(503, "busy", f"{self._most} event streams are open already", retry_after_s=10)
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


STREAMS: Final = web.AppKey("streams", StreamPlaces)


def event(name: str, data: object, *, cursor: str | None = None) -> bytes:
    """Return an event with data as JSON. After an interruption, the client sends `cursor` to continue after this
    event.
    """
    head = b"" if cursor is None else b"id: " + cursor.encode() + b"\n"
    return head + b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


async def send_stream(request: web.Request, chunks: AsyncIterator[bytes]) -> web.StreamResponse:
    """Send chunks as they arrive, until they end or the client disconnects. An empty chunk means that nothing is
    new."""
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


class ChangeFilter(NamedTuple):
    """Filter of change-log entries, in which an empty field accepts every entry."""

    site: str = ""
    prefix: str = ""
    """Text with which the URL must begin."""
    verdicts: frozenset[str] = frozenset()
    least: int = 0
    """Only changes that affect at least this percentage of the text are accepted. A change whose texts were not
    compared counts as 0 %."""

    @classmethod
    def of(cls, site: str, prefix: str, verdicts: str, least: int = 0) -> ChangeFilter:
        """Return a filter made from query parameters. `verdicts` are separated by commas. Raise InputError for an
        unknown verdict."""
        words = [word.strip() for word in verdicts.split(",") if word.strip()]
        for word in words:
            if word not in VERDICTS:
                raise InputError(f"{cut(word)} is not a verdict (allowed: {', '.join(VERDICTS)})")
        return cls(site, prefix, frozenset(words), least)

    def accepts(self, change: Change | PageChange) -> bool:
        """Return whether the filter accepts an entry."""
        share = 0.0 if change.resemblance is None else 1.0 - change.resemblance
        return (
            (not self.site or change.site == self.site)
            and (not self.prefix or change.url.startswith(self.prefix))
            and (not self.verdicts or change.verdict in self.verdicts)
            and (not self.least or round(100 * share, 6) >= self.least)
        )


class StreamParts:
    """Cache of encoded chunks of a change log, for all streams of the store. `read` returns the entries after a
    cursor."""

    def __init__(self, read: Callable[[str], Awaitable[list[PageChange]]]) -> None:
        self._read = read
        self._parts: OrderedDict[tuple[str, ChangeFilter], asyncio.Future[tuple[bytes, str]]] = OrderedDict()

    async def after(self, cursor: str, wanted: ChangeFilter) -> tuple[bytes, str]:
        """Return the entries after a cursor as encoded events, and the cursor after the last entry."""
        place = (cursor, wanted)
        found = self._parts.get(place)
        if found is None:
            found = self._parts[place] = asyncio.ensure_future(self._encoded(cursor, wanted))
            while len(self._parts) > _PARTS:
                self._parts.popitem(last=False)
        try:
            data, end = await asyncio.shield(found)
        except BaseException:
            self._parts.pop(place, None)
            raise
        if end == cursor:
            self._parts.pop(place, None)  # this cursor will have more entries later
        return data, end

    async def _encoded(self, cursor: str, wanted: ChangeFilter) -> tuple[bytes, str]:
        found = await self._read(cursor)
        events = [event(each.verdict, each, cursor=each.cursor) for each in found if wanted.accepts(each)]
        return b"".join(events), found[-1].cursor if found else cursor
