"""Hostile behaviours of a server: for each, a name, a path, the outcomes of a good crawler, and an act.

`wire.py`, `markup.py`, `pages.py`, `redirects.py` and `robots.py` fill `BEHAVIOURS`, and `hostile.py` serves them. An
endless behaviour ends after `LIMIT_BYTES` or `LIMIT_SECONDS`, so that no test hangs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

__all__ = [
    "BEHAVIOURS",
    "LIMIT_BYTES",
    "LIMIT_SECONDS",
    "Ask",
    "Behaviour",
    "behaviour",
    "flood",
    "send",
    "trickle",
]

LIMIT_BYTES = 2_000_000_000
LIMIT_SECONDS = 120.0


class Ask(NamedTuple):
    """A request. `nth` counts the requests for this path of the site, from 1. `sites` are all sites by name."""

    path: str
    headers: dict[str, str]
    base: str
    sites: dict[str, str]
    nth: int


class Behaviour(NamedTuple):
    """A behaviour on all paths that start with `place`. `outcomes` are the outcomes allowed for ``/bad`` (DESIGN
    section 7).

    `outcomes` is empty if every outcome is allowed, or if the behaviour concerns robots.txt or sitemaps. `body`, if
    any, takes long to make, so the server makes it before it reports that it is ready.
    """

    name: str
    place: str
    outcomes: frozenset[str]
    act: Callable[[Ask, asyncio.StreamWriter], Awaitable[None]]
    body: Callable[[], bytes] | None = None

    @property
    def says(self) -> str:
        """The docstring of the act."""
        return (self.act.__doc__ or "").strip()


BEHAVIOURS: dict[str, Behaviour] = {}
Act = Callable[[Ask, asyncio.StreamWriter], Awaitable[None]]


def behaviour(*outcomes: str, place: str = "/bad", body: Callable[[], bytes] | None = None) -> Callable[[Act], Act]:
    """Add a behaviour under its function's name, with hyphens."""

    def enter(act: Act) -> Act:
        name = getattr(act, "__name__", "").replace("_", "-")
        BEHAVIOURS[name] = Behaviour(name, place, frozenset(outcomes), act, body)
        return act

    return enter


async def send(
    writer: asyncio.StreamWriter,
    body: bytes | str = b"",
    *headers: str,
    status: str = "200 OK",
    media_type: str = "text/html; charset=utf-8",
) -> None:
    """Send a well-formed answer with its length, and close the connection. An empty media type is left out."""
    content = body.encode() if isinstance(body, str) else body
    typed = [f"Content-Type: {media_type}"] if media_type else []
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", "Connection: close", *typed, *headers]
    writer.write("\r\n".join([*lines, "\r\n"]).encode("latin-1") + content)
    await writer.drain()


async def flood(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Send the piece again and again, as fast as the client reads, up to the limit."""
    block = piece * max(1, 65_536 // len(piece))
    async with asyncio.timeout(LIMIT_SECONDS):
        for _ in range(LIMIT_BYTES // len(block)):
            writer.write(block)
            await writer.drain()


async def trickle(writer: asyncio.StreamWriter, data: bytes, *, seconds: float = 1.0) -> None:
    """Send a byte every `seconds`, and the data again after its end, up to the limit."""
    for i in range(int(LIMIT_SECONDS / seconds)):
        at = i % len(data)
        writer.write(data[at : at + 1])
        await writer.drain()
        await asyncio.sleep(seconds)
