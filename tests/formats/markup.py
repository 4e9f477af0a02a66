"""Markup that makes a parser do more than linear work, by the part of the tree construction algorithm that it abuses.

Each of `MARKUP` gives about as many bytes as it is asked for. Used against the linear look (`test_html_limits`), the
sandbox, and in whole crawls (`tests.servers.markup`).
"""

from __future__ import annotations

import itertools
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["BOMBS", "MARKUP", "MEGABYTES", "packed"]

MEGABYTES: Final = 50

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_FORMATTING = ["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"]


def _names() -> Iterator[str]:
    """Short names, each once."""
    for length in itertools.count(1):
        yield from ("x" + "".join(letters) for letters in itertools.product(_LETTERS, repeat=length))


def _up_to(size: int, parts: Iterable[str]) -> str:
    taken: list[str] = []
    for part in parts:
        if size <= 0:
            break
        size -= len(part)
        taken.append(part)
    return "".join(taken)


def _again(part: str) -> Callable[[int], str]:
    return lambda size: part * (size // len(part))


def _then(first: Callable[[int], str], second: Callable[[int], str], *, share: float = 0.5) -> Callable[[int], str]:
    return lambda size: first(int(share * size)) + second(int((1 - share) * size))


def _numbered(before: str, after: str) -> Callable[[int], str]:
    return lambda size: _up_to(size, (f"{before}{name}{after}" for name in _names()))


MARKUP: Final[dict[str, Callable[[int], str]]] = {
    "formatting elements opened again in each paragraph": lambda size: (
        "<p>" + _then(_numbered("<b ", ">"), _again("<p>x"))(size)
    ),
    "formatting elements opened again in each table row": lambda size: (
        "<table>" + _then(_numbered("<b ", ">"), _again("<tr>x"))(size)
    ),
    "formatting elements whose ends hide in cells": lambda size: (
        "<p>" + _then(_numbered("<b ", "><table><td></b></table>"), _again("<p>x"), share=0.8)(size)
    ),
    "formatting elements whose ends hide in comments": lambda size: (
        "<p>" + _then(_numbered("<b ", "><!--</b>-->"), _again("<p>x"))(size)
    ),
    "three of each formatting element": lambda size: (
        "".join(f"<{tag}>" * 3 for tag in _FORMATTING) + _again("<p>x")(size)
    ),
    "adoption agency": _then(_numbered("<b ", "><div>"), _again("</b>"), share=2 / 3),
    "links in blocks": _again("<a><div>"),
    "attributes": lambda size: "<p " + _numbered("", " ")(size) + ">t</p>",
    "attributes with less-than signs": lambda size: "<div " + _numbered("", " <")(size) + ">t</div>",
    "attributes with greater-than signs": lambda size: "<p " + _numbered("", "='>'")(size) + ">t</p>",
    "attributes with quotes in quotes": lambda size: "<p " + _numbered("", '="\'>"')(size) + ">t</p>",
    "one huge attribute": lambda size: f'<p title="{"x" * size}">t</p>',
    "attributes of body, tag by tag": _numbered("<body ", ">"),
    "depth": _again("<div>"),
    "depth and its ends": _then(_again("<div>"), _again("</div>")),
    "ends that fit nothing": _then(_again("<span>"), _again("</x>")),
    "paragraphs in spans": _then(_again("<span>"), _again("<p>")),
    "list items in lists": _again("<ul><li>"),
    "headings": _again("<h1><b>"),
    "option groups": _again("<optgroup>"),
    "options and selects": _again("<option><select>"),
    "foster parents": lambda size: "<table>" + _again("<b>x<tr>")(size),
    "tables in cells": _again("<table><td>"),
    "templates": _again("<template>"),
    "vector graphics": lambda size: "<svg>" + _then(_again("<g>"), _again("</x>"))(size),
    "mathematics": _again("<math><mi>"),
    "frames": _again("<frameset>"),
    "rubies": _again("<ruby><rt>"),
    "buttons": _again("<button>"),
    "references": _again("&CounterClockwiseContourIntegral;"),
    "references without end": _again("&notit"),
    "comments": _again("<!-->"),
    "nulls": _again("\0<b>\0"),
    "links": _numbered("<a href=/", ">x</a>"),
    "bases": _numbered("<base href=/", ">"),
    "metas": _again("<meta<meta "),
    "text": _again("lorem ipsum "),
}
BOMBS: Final = (
    "attributes with greater-than signs",
    "formatting elements opened again in each paragraph",
    "formatting elements opened again in each table row",
)
"""Those that cannot be read within bounds, at a megabyte, however much is made harmless before."""


def packed(start: bytes, part: bytes, *, megabytes: int = MEGABYTES) -> bytes:
    """`start`, then `part` again and again for so many megabytes, as gzip; packed once and repeated."""
    packer = zlib.compressobj(6, wbits=-15)
    head = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(part * (1_000_000 // len(part))) + packer.flush(zlib.Z_FULL_FLUSH)
    body = b"\x1f\x8b\x08" + bytes(6) + b"\xff" + head + block * megabytes + packer.flush()
    return body + bytes(8)  # a wrong checksum, which is found at the end
