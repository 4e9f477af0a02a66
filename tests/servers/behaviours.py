"""What a hostile behaviour is: a name, the path where it is met, what a good crawler makes of it, an act.

`wire.py`, `markup.py`, `pages.py`, `redirects.py` and `robots.py` fill `BEHAVIOURS`; `hostile.py` serves them. A
behaviour that never ends does end, after `LIMIT_BYTES` or `LIMIT_SECONDS`: a bad client must not hang the tests.
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
    """One request: `nth` counts from 1 how often this site's path was asked; `sites` are all sites by name."""

    path: str
    headers: dict[str, str]
    base: str
    sites: dict[str, str]
    nth: int


class Behaviour(NamedTuple):
    """It acts on paths that start with `place`; `outcomes` (DESIGN section 7) are those allowed for ``/bad``.

    Empty outcomes: the behaviour is not about the page ``/bad`` (robots.txt, sitemaps), or anything goes. `body`, where
    there is one, takes long to make: the server makes it before it says that it is ready, for its loop serves all.
    """

    name: str
    place: str
    outcomes: frozenset[str]
    act: Callable[[Ask, asyncio.StreamWriter], Awaitable[None]]
    body: Callable[[], bytes] | None = None

    @property
    def says(self) -> str:
        """The sentence that tells what it does."""
        return (self.act.__doc__ or "").strip()


BEHAVIOURS: dict[str, Behaviour] = {}
Act = Callable[[Ask, asyncio.StreamWriter], Awaitable[None]]


def behaviour(*outcomes: str, place: str = "/bad", body: Callable[[], bytes] | None = None) -> Callable[[Act], Act]:
    """Enter an act under its function's name, with hyphens."""

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
    """A well-formed answer with true length, then the connection ends; an empty media type is left out."""
    content = body.encode() if isinstance(body, str) else body
    typed = [f"Content-Type: {media_type}"] if media_type else []
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", "Connection: close", *typed, *headers]
    writer.write("\r\n".join([*lines, "\r\n"]).encode("latin-1") + content)
    await writer.drain()


async def flood(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """The piece again and again, as fast as the client reads, to the limit."""
    block = piece * max(1, 65_536 // len(piece))
    async with asyncio.timeout(LIMIT_SECONDS):
        for _ in range(LIMIT_BYTES // len(block)):
            writer.write(block)
            await writer.drain()


async def trickle(writer: asyncio.StreamWriter, data: bytes, *, seconds: float = 1.0) -> None:
    """A byte every `seconds`, from the start of the data again at its end, to the limit."""
    for i in range(int(LIMIT_SECONDS / seconds)):
        at = i % len(data)
        writer.write(data[at : at + 1])
        await writer.drain()
        await asyncio.sleep(seconds)
