"""The lines of a page that the crawl compares to detect changes, each with its place in the page.

A policy says in which elements changes count (`ReadingRules`). `core.noise` learns in which places a page differs at
each visit; changes in these places are ignored. A line is the text of a block, a row of a table or a line of code.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import msgspec
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from webfountain.formats.main_content import main_blocks
from webfountain.formats.markdown import PageFormat, written_lines
from webfountain.formats.page_blocks import attributes_of, blocks_in, blocks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from selectolax.lexbor import LexborNode

    from webfountain.formats.page_blocks import Block, Region

__all__ = [
    "WHOLE_PAGE",
    "ReadingRules",
    "Unit",
    "is_selector",
    "lines_of_text",
    "units_of_blocks",
    "units_of_page",
    "units_of_text",
]

ALWAYS_COUNTS: Final = 0
"""The place of every line that the policy's `change.always` selects: a change of such a line always counts."""
_MARK: Final = "data-webfountain-always"
_DIGIT: Final = re.compile(r"\d")
_LONGEST_REMEMBERED: Final = 200
"""The path step of an element is cached if its attributes have at most this number of characters."""


class ReadingRules(msgspec.Struct, frozen=True, array_like=True):
    """Options that say what is read from a page in addition to its links.

    `main`: read only the main content as text, one line per block. `units`: also return the lines with their places.
    Lines come from elements of `select`, but not from elements of `ignore`. Lines in elements of `always` are never
    ignored as noise. `metadata`: also return the metadata that the page gives. `extractors`: names of extractor
    functions of the project, by media type. `shown`: the format in which diffs show lines. `base`: URL of the page,
    against which links are resolved.
    """

    main: bool = False
    units: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    metadata: bool = False
    extractors: dict[str, str] = {}
    shown: PageFormat = "text"
    base: str = ""


WHOLE_PAGE: Final = ReadingRules()


class Unit(NamedTuple):
    """A line of a page, the place of the line in the page, and the place of the element around the line. A place is a
    32-bit hash of the path of elements to the line, and does not depend on the text. `shown` is the line as diffs show
    it, or "" if diffs show it unchanged."""

    place: int
    line: str
    around: int = 0
    shown: str = ""


def is_selector(text: str) -> bool:
    """Return whether a text is a CSS selector that the parser supports."""
    try:
        LexborHTMLParser("<p>").css(text)
    except SelectolaxError:
        return False
    return True


def units_of_page(tree: LexborHTMLParser, rules: ReadingRules) -> list[Unit]:
    """Return the lines of a page that the rules select. Ignored elements are removed from the tree."""
    for selector in rules.always:
        for node in tree.css(selector):
            node.attrs[_MARK] = ""
    for selector in rules.ignore:
        _remove(tree, selector)
    if rules.select:
        return units_of_blocks(_selected(tree, rules.select), rules)
    blocks = blocks_of(tree)
    return units_of_blocks(main_blocks(blocks) if rules.main else blocks, rules)


def units_of_text(text: str) -> list[Unit]:
    """Return the lines of a plain text; the place of each line is its line number."""
    return [Unit(number, line) for number, line in enumerate(lines_of_text(text), start=1)]


def lines_of_text(text: str) -> list[str]:
    """Return the lines of a text that are not blank."""
    return [line for line in text.split("\n") if line and not line.isspace()]


def _remove(tree: LexborHTMLParser, selector: str) -> None:
    """Remove the elements that a CSS selector finds, inner elements before outer ones."""
    found = {node.mem_id: node for node in tree.css(selector) if node.tag not in ("html", "body")}
    for node in reversed(found.values()):
        node.decompose()


def _selected(tree: LexborHTMLParser, selectors: Sequence[str]) -> list[Block]:
    """Return the blocks in the elements that the selectors find, in document order, each block once."""
    found = {node.mem_id: node for node in tree.css(", ".join(selectors))}
    outermost = [node for node in found.values() if not _is_inside(node, found)]
    return [block for node in outermost for block in blocks_in(node)]


def _is_inside(node: LexborNode, found: Mapping[int, LexborNode]) -> bool:
    around = node.parent
    while around is not None and around.mem_id not in found:
        around = around.parent
    return around is not None


def units_of_blocks(blocks: Sequence[Block], rules: ReadingRules) -> list[Unit]:
    """Return the lines of blocks, each with its place in the page."""
    paths: dict[int, _Path] = {}
    counts: dict[int, int] = {}
    found: list[Unit] = []
    for block in blocks:
        around, is_marked = _path(block.region, paths)
        counts_always = is_marked or _is_marked(block)
        lines = lines_of_text(block.text)
        shown = written_lines(block, lines, rules.shown, rules.base)
        for line, form in zip(lines, shown, strict=True):
            number = counts[around] = counts.get(around, 0) + 1
            place = ALWAYS_COUNTS if counts_always else crc32(f"#{number}".encode(), around) or 1
            found.append(Unit(place, line, around, "" if form is line else form))
    return found


def _is_marked(block: Block) -> bool:
    """Return whether `change.always` names an element inside a block, such as a table cell."""
    if block.rows is None:
        return _MARK in block.html
    return _MARK in block.said or any(_MARK in cell for row in block.rows for cell in row)


class _Path(NamedTuple):
    """A hash of the path to a region, and whether `change.always` names an element on the path."""

    number: int
    is_marked: bool


def _path(region: Region, known: dict[int, _Path]) -> _Path:
    """Return the path to a region, and cache it in `known`."""
    unknown: list[Region] = []
    here: Region | None = region
    while here is not None and here.number not in known:
        unknown.append(here)
        here = here.parent
    path = _Path(0, False) if here is None else known[here.number]
    for each in reversed(unknown):
        remembers = len(each.attributes) <= _LONGEST_REMEMBERED
        step = _remembered_step(each.tag, each.attributes) if remembers else _step(each.tag, each.attributes)
        path = known[each.number] = _Path(crc32(step.encode(), path.number), path.is_marked or _MARK in step)
    return path


def _step(tag: str, attributes: str) -> str:
    """Return an element's tag, classes and id as text, for one step of a path. Classes and ids that contain digits are
    omitted, because such names often change."""
    said = attributes_of(attributes)
    names = f"{said.get('class', '')} {said.get('id', '')}".split()
    return f">{_MARK if _MARK in said else ''}{tag}.{'.'.join(name for name in names if not _DIGIT.search(name))}"


_remembered_step = lru_cache(4096)(_step)
