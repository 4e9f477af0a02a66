"""Hostile behaviours of markup and encodings: pages that cost a parser much time or memory, and unknown charsets."""

from __future__ import annotations

import gzip
from functools import cache
from typing import TYPE_CHECKING

from tests.formats.markup import MARKUP
from tests.servers.behaviours import BEHAVIOURS, Ask, Behaviour, behaviour, send

if TYPE_CHECKING:
    from asyncio import StreamWriter

__all__: list[str] = []

SIZES = {
    "formatting elements opened again in each paragraph": 30_000,
    "formatting elements opened again in each table row": 300_000,
    "adoption agency": 60_000,
    "attributes with less-than signs": 250_000,
    "option groups": 250_000,
    "options and selects": 250_000,
    "foster parents": 250_000,
}
"""Size of each markup in bytes. Each markup is served by its own site."""


def _enter(name: str, size: int) -> None:
    async def act(_: Ask, writer: StreamWriter) -> None:
        await send(writer, MARKUP[name](size))

    act.__doc__ = f"{size // 1000} kB of markup: {name}."
    key = f"markup-{name.replace(' ', '-')}"
    BEHAVIOURS[key] = Behaviour(key, "/bad", frozenset({"new", "failed"}), act)


for _name, _size in SIZES.items():
    _enter(_name, _size)


def _enter_charset(label: str) -> None:
    async def act(_: Ask, writer: StreamWriter) -> None:
        await send(writer, "<title>T</title><p>text</p>", media_type=f"text/html; charset={label}")

    act.__doc__ = f"A page that says charset={label}."
    BEHAVIOURS[f"charset-{label}"] = Behaviour(f"charset-{label}", "/bad", frozenset({"new"}), act)


for _label in ("hex", "base64", "idna", "undefined", "punycode"):
    _enter_charset(_label)


@behaviour("new")
async def xml_in_euc_jp(_: Ask, writer: StreamWriter) -> None:
    """An XML page whose encoding lxml does not know."""
    body = '<?xml version="1.0" encoding="EUC-JP"?><x>日本</x>'.encode("euc_jp")
    await send(writer, body, media_type="application/xml; charset=EUC-JP")


@behaviour("new")
async def deadly(_: Ask, writer: StreamWriter) -> None:
    """A page that kills its examiner in `tests.crawl.dying`, and is harmless elsewhere."""
    await send(writer, "<title>D</title><p>whoever reads this dies</p>")


@behaviour("new", "failed")
async def many_bombs(ask: Ask, writer: StreamWriter) -> None:
    """Links to 20 pages of a megabyte, which take a parser minutes."""
    if ask.path == "/bad":
        await send(writer, "".join(f'<a href="/bad/{i}">{i}</a>' for i in range(20)))
    else:
        await send(writer, MARKUP["attributes with greater-than signs"](1_000_000))


@behaviour("new", "failed")
async def large_pages(ask: Ask, writer: StreamWriter) -> None:
    """7.5 MB of paragraphs, as 40 kB of gzip."""
    await send(writer, _large(), "Content-Encoding: gzip")


@cache
def _large() -> bytes:
    words = " ".join(f"word{i}" for i in range(60))
    return gzip.compress(b"<title>L</title>" + f"<p>{words}</p>".encode() * (7_500_000 // (len(words) + 7)))
