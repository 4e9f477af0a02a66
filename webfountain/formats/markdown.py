"""Write a page's blocks as Markdown or as plain text.

Place in the walk: after `page_blocks` and `main_content`. Links become absolute, tables become pipe tables, and code
is fenced with its language. Plain text has one line per block, and code keeps its lines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webfountain.formats.page_blocks import inline_pieces
from webfountain.urls import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.formats.page_blocks import Block, Inline

__all__ = ["markdown_of", "plain_text_of"]

_BLANKS: Final = re.compile(r"\s+")
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>]|&(?=#?\w+;))")
_LINE_START: Final = re.compile(r"^(?:(?=[-+=#>|~])|(\d+)(?=[.)](?:\s|$)))")
"""Pattern of a line start that Markdown would read as a heading, a list, a quotation, a rule or a table."""
_FENCE: Final = re.compile(r"`{3,}")
_MARKS: Final = {"strong": "**", "em": "*"}
_INDENT: Final = "    "
"""Indentation of content inside a list item: enough for ``10. ``, and not too much for ``- ``."""


def markdown_of(blocks: Sequence[Block], base: str) -> str:
    """Return blocks as Markdown (CommonMark with pipe tables). Relative links are resolved against the URL `base`."""
    parts: list[str] = []
    was_item = False
    for block in blocks:
        is_item = block.kind == "item" or (was_item and block.depth > 0 and block.kind == "paragraph")
        separator = "\n" if was_item and block.kind == "item" else "\n\n"
        text = _written(block, base)
        if text:
            parts += [separator if parts else "", _quoted(text, block.quotes)]
            was_item = is_item
    return "".join(parts)


def plain_text_of(blocks: Sequence[Block]) -> str:
    """Return the words of blocks: one line per block, table row and line of code."""
    return "\n".join(text for block in blocks if (text := block.text))


def _written(block: Block, base: str) -> str:
    if block.kind == "rule":
        return "---"
    if block.rows is not None:
        return _table(block.rows, base)
    indent = _INDENT * max(0, block.depth - 1)
    if block.kind == "code":
        return _indented(_fenced(block.text, block.language), _INDENT * block.depth)
    text = _inline(block.pieces, base)
    if block.level:
        return f"{'#' * block.level} {' '.join(text.split())}"
    if block.kind == "item":
        return _indented(f"{block.marker} {text}", indent, hanging=_INDENT)
    return _indented(text, _INDENT * block.depth)


def _indented(text: str, indent: str, *, hanging: str = "") -> str:
    first, *rest = text.split("\n")
    return "\n".join([indent + first, *(indent + hanging + line if line else "" for line in rest)])


def _quoted(text: str, depth: int) -> str:
    mark = "> " * depth
    return "\n".join((mark + line).rstrip() for line in text.split("\n")) if depth else text


def _fenced(code: str, language: str) -> str:
    longest = max((len(run) for run in _FENCE.findall(code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def _table(rows: Sequence[Sequence[str]], base: str) -> str:
    width = max(len(row) for row in rows)
    lines = []
    for number, row in enumerate(rows):
        cells = [_inline(inline_pieces(cell), base).replace("\n", " ").replace("|", "\\|") for cell in row]
        lines.append(f"| {' | '.join(cells + [''] * (width - len(cells)))} |")
        if number == 0:
            lines.append("|" + " --- |" * width)
    return "\n".join(lines)


def _inline(pieces: Sequence[Inline], base: str) -> str:
    """Return inline pieces as Markdown; neighbours with the same mark and target are merged."""
    joined: list[Inline] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and last.mark and piece[1:] == last[1:] and piece.mark not in ("image", "break"):
            joined[-1] = last._replace(text=last.text + piece.text)
        else:
            joined.append(piece)
    raw = "".join(_piece(piece, base) for piece in joined)
    lines = [re.sub(r" {2,}", " ", line).strip() for line in raw.split("\n")]
    return "  \n".join(_LINE_START.sub(r"\1\\", line) for line in lines if line).strip()


def _piece(piece: Inline, base: str) -> str:
    if piece.mark == "break":
        return "\n"
    text = _BLANKS.sub(" ", piece.text)
    inner = text.strip()
    if piece.mark == "image":
        target = _absolute(piece.target, base)
        return f"![{_escaped(inner)}]({target})" if target is not None and inner else ""
    if not inner:
        return text
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    if piece.mark == "code":
        return f"{before}{_code_span(inner)}{after}"
    written = _escaped(inner)
    if piece.mark == "link":
        target = _absolute(piece.target, base)
        written = written if target is None else f"[{written}]({_link_target(target)})"
    elif mark := _MARKS.get(piece.mark):
        written = f"{mark}{written}{mark}"
    return f"{before}{written}{after}"


def _code_span(code: str) -> str:
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * (longest + 1)
    blank = " " if code[0] == "`" or code[-1] == "`" else ""
    return f"{fence}{blank}{code}{blank}{fence}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _absolute(href: str, base: str) -> str | None:
    """Return a link's target as an absolute URL with its fragment, or None if it is not a web page."""
    target = join(base, href)
    fragment = href.partition("#")[2]
    return f"{target}#{fragment}" if target is not None and fragment else target


def _link_target(url: str) -> str:
    return url.replace("(", "%28").replace(")", "%29")
