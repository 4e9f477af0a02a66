"""Write a page's blocks as Markdown or as plain text.

Links become absolute, tables become pipe tables, and code is fenced with its language. Plain text has one line per
block, and code keeps its lines.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import quote

from webfountain.formats.page_blocks import Inline, inline_pieces
from webfountain.urls import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.formats.page_blocks import Block

__all__ = ["PageFormat", "markdown_of", "plain_text_of", "written_lines"]

PageFormat = Literal["text", "markdown", "html"]
_BLANKS: Final = re.compile(r"\s+")
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>]|&(?=#?\w+;))")
_LINE_START: Final = re.compile(r"^(?:(?=[-+=#>|~])|(\d+)(?=[.)](?:\s|$)))")
"""Pattern of a line start that Markdown would read as markup, such as a heading or a list."""
_FENCE: Final = re.compile(r"`{3,}")
_TARGET_END: Final = re.compile(r"[\s()<>\\]")
"""Pattern of the characters that could end a link's target."""
_MARKS: Final = {"strong": "**", "em": "*"}
_INDENT: Final = "    "
_QUOTE: Final = "> "
_DEEPEST: Final = 12


def markdown_of(blocks: Sequence[Block], base: str) -> str:
    """Return blocks as Markdown (CommonMark with pipe tables). Relative links are resolved against `base`.

    Lists and quotations that are nested deeper than `_DEEPEST` are written at this depth, so that the output stays
    short.
    """
    parts: list[str] = []
    around = _Around()
    for block in blocks:
        if text := _written(block, base):
            is_next_item = block.kind == "item" and around.items > 0
            prefix, hanging, around = _prefixes(block, around)
            parts += ["\n" if is_next_item else "\n\n"] if parts else []
            parts.append(_prefixed(text, prefix, hanging))
    return "".join(parts)


class _Around(NamedTuple):
    """Number of open list items after a block, and number of quotations around them."""

    items: int = 0
    quotes: int = 0


def _prefixes(block: Block, around: _Around) -> tuple[str, str, _Around]:
    """Return the prefix of a block's first line, the prefix of its other lines, and the nesting after the block.

    Only the content of list items is indented, because Markdown reads other indented text as code.
    """
    quotes, is_item = min(block.quotes, _DEEPEST), block.kind == "item"
    if quotes < around.quotes or (is_item and quotes > around.quotes) or not around.items:
        around = _Around(0, quotes)
    items = min(block.depth - is_item, _DEEPEST, around.items)
    prefix = _QUOTE * around.quotes + _INDENT * items + _QUOTE * (quotes - around.quotes)
    return prefix, prefix + (_INDENT if is_item else ""), _Around(items + is_item, around.quotes)


def _prefixed(text: str, prefix: str, hanging: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([prefix + first, *(hanging + line if line else hanging.rstrip() for line in rest)])


def plain_text_of(blocks: Sequence[Block]) -> str:
    """Return blocks as plain text: one line for each block, table row and line of code."""
    return "\n".join(text for block in blocks if (text := block.text))


def written_lines(block: Block, lines: list[str], form: PageFormat, base: str) -> list[str]:
    """Return the lines of a block in the format in which diffs show them. `lines` has the lines of the block as plain
    text. Return `lines` unchanged if the format would change the number of lines."""
    if form == "text" or block.kind == "code":
        return lines
    if form == "html":
        written = (
            [" ".join(block.html.split())]
            if block.rows is None
            else [" ".join(" ".join(row).split()) for row in block.rows]
        )
    elif block.rows is None:
        written = _written(block, base).split("\n")
    else:
        written = [_row(row, base) for row in block.rows]
    return written if len(written) == len(lines) else lines


def _written(block: Block, base: str) -> str:
    """Return a block as Markdown, without the indents and prefixes that lists and quotations add."""
    if block.kind == "rule":
        return "---"
    if block.rows is not None:
        return _table(block.rows, base)
    if block.kind == "code":
        return _fenced(block.text, block.language)
    text = _inline(block.pieces, base)
    if block.level:
        return f"{'#' * block.level} {' '.join(text.split())}"
    return f"{block.marker} {text}" if block.kind == "item" else text


def _fenced(code: str, language: str) -> str:
    longest = max((len(run) for run in _FENCE.findall(code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def _table(rows: Sequence[Sequence[str]], base: str) -> str:
    """Return a table as a pipe table. The header row gets empty cells if another row is wider."""
    width = max(map(len, rows))
    header = [*rows[0], *[""] * (width - len(rows[0]))]
    return "\n".join([_row(header, base), "|" + " --- |" * width, *(_row(row, base) for row in rows[1:])])


def _row(cells: Sequence[str], base: str) -> str:
    written = (_inline(inline_pieces(cell), base).replace("\n", " ").replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(written)} |"


def _inline(pieces: Sequence[Inline], base: str) -> str:
    """Return the pieces of a block as Markdown. Adjacent pieces with the same formatting and link target are merged."""
    written: list[str] = []
    for (mark, target), same in groupby(pieces, key=itemgetter(1, 2)):
        if mark in ("image", "break"):
            written += (_piece(piece, base) for piece in same)
        else:
            written.append(_piece(Inline("".join(piece.text for piece in same), mark, target), base))
    lines = [re.sub(r" {2,}", " ", line).strip() for line in "".join(written).split("\n")]
    return "  \n".join(_LINE_START.sub(r"\1\\", line) for line in lines if line).strip()


def _piece(piece: Inline, base: str) -> str:
    if piece.mark == "break":
        return "\n"
    text = _BLANKS.sub(" ", piece.text)
    inner = text.strip()
    if piece.mark == "image":
        target = _absolute(piece.target, base)
        return f"![{_escaped(inner)}]({_link_target(target)})" if target is not None and inner else ""
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
    """Return a link's target as an absolute URL with fragment, or None if the target is not a web page."""
    target = join(base, href)
    fragment = href.partition("#")[2]
    return f"{target}#{fragment}" if target is not None and fragment else target


def _link_target(url: str) -> str:
    return _TARGET_END.sub(lambda found: quote(found[0]), url)
