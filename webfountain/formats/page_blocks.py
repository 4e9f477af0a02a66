"""The blocks of a parsed page in document order: headings, paragraphs, list items, tables, code, quotes.

Place in the walk: when a copy is prepared for a person or an index. `main_content` selects among the blocks,
`markdown` writes them. The tree is traversed without recursion, because pages can be nested deeply.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborHTMLParser, LexborNode

__all__ = ["Block", "Inline", "Region", "blocks_of"]

Kind = Literal["heading", "paragraph", "item", "code", "table", "rule"]

_SKIPPED: Final = frozenset({
    "script", "style", "noscript", "template", "head", "svg", "math", "iframe", "object", "embed", "canvas", "video",
    "audio", "input", "select", "textarea", "button", "option", "optgroup", "datalist", "map", "area", "meta", "link",
    "base", "title", "dialog",
})  # fmt: skip
"""Elements without readable text: scripts, embedded media, form controls."""
_CONTAINERS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dir", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr",
    "html", "legend", "li", "main", "menu", "nav", "ol", "p", "pre", "search", "section", "summary", "table", "tbody",
    "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip
"""Elements that begin and end a block."""
_INLINE_MARKS: Final = {
    "b": "strong", "strong": "strong", "i": "em", "em": "em",
    "code": "code", "kbd": "code", "samp": "code", "tt": "code",
}  # fmt: skip
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_CODE_CLASS: Final = re.compile(r"(?:^|\s)(?:language|lang|highlight|brush:|sourceCode)[-:\s]+([\w+#-]+)")
_NO_LANGUAGE: Final = frozenset({"notranslate", "default", "none", "text", "plaintext"})
_BLANKS: Final = re.compile(r"\s+")
MAX_BLOCKS: Final = 50_000


class Inline(NamedTuple):
    """A piece of a block: its text, and its mark (``link``, ``image``, ``code``, ``strong``, ``em``, ``break``)."""

    text: str
    mark: str = ""
    target: str = ""


class Region(NamedTuple):
    """An element around blocks: its tag, role, classes and id in lower case, and the region around it."""

    tag: str
    role: str
    names: str
    hidden: bool
    parent: Region | None
    number: int


class Block(NamedTuple):
    """A block with its pieces. `level` is the level of a heading, `depth` the nesting of lists, `quotes` the nesting
    of quotations.

    A table has `rows`, each a list of cells; code has its text in one piece, and its `language`.
    """

    kind: Kind
    pieces: list[Inline]
    region: Region
    level: int = 0
    depth: int = 0
    quotes: int = 0
    marker: str = ""
    language: str = ""
    rows: list[list[list[Inline]]] | None = None

    @property
    def text(self) -> str:
        """The words of the block."""
        if self.rows is not None:
            return "\n".join("\t".join(text_of(cell) for cell in row) for row in self.rows)
        if self.kind == "code":
            return "".join(piece.text for piece in self.pieces)
        return text_of(self.pieces)

    @property
    def link_share(self) -> float:
        """The share of the block's characters that belong to links."""
        pieces = self.pieces if self.rows is None else [piece for row in self.rows for cell in row for piece in cell]
        total = sum(len(piece.text.strip()) for piece in pieces)
        return sum(len(piece.text.strip()) for piece in pieces if piece.mark == "link") / total if total else 0.0


def text_of(pieces: list[Inline]) -> str:
    """Return the words of inline pieces with collapsed white space; line breaks stay."""
    raw = "".join(
        "\n" if piece.mark == "break" else _BLANKS.sub(" ", piece.text) for piece in pieces if piece.mark != "image"
    )
    return "\n".join(line.strip() for line in raw.split("\n")).strip()


def blocks_of(tree: LexborHTMLParser) -> list[Block]:
    """Return the blocks of a page in document order, at most `MAX_BLOCKS`."""
    body = tree.body
    return [] if body is None else _Walk(body).blocks


class _Walk:
    """One traversal of a tree, with an explicit stack of nodes to enter and elements to leave."""

    def __init__(self, body: LexborNode) -> None:
        self.blocks: list[Block] = []
        self._pieces: list[Inline] = []
        self._lists: list[list[int]] = []
        self._quotes = 0
        self._marker = ""
        self._level = 0
        self._marks: list[tuple[str, str]] = []
        self._number = 0
        self._region = Region("body", "", "", False, None, 0)
        stack: list[tuple[LexborNode, bool]] = [(body, True)]
        while stack and len(self.blocks) < MAX_BLOCKS:
            node, entering = stack.pop()
            if not entering:
                self._leave(node)
            elif self._enter(node):
                stack.append((node, False))
                stack += [(child, True) for child in reversed(list(_children(node)))]
        self._flush()

    def _enter(self, node: LexborNode) -> bool:
        """Process a node, and return whether to process its children."""
        if node.is_text_node:
            self._add(node.text_content or "")
            return False
        tag = node.tag or ""
        if tag in _SKIPPED or not node.is_element_node:
            return False
        if tag in _CONTAINERS:
            return self._enter_container(node, tag)
        attributes = node.attributes
        if tag in ("br", "img"):
            self._pieces.append(Inline("", "break") if tag == "br" else _image(attributes))
            return False
        if tag == "a" and attributes.get("href"):
            self._marks.append(("link", attributes["href"] or ""))
        else:
            self._marks.append((_INLINE_MARKS.get(tag, ""), ""))
        if _is_hidden(attributes):
            self._marks.pop()
            return False
        return True

    def _enter_container(self, node: LexborNode, tag: str) -> bool:
        attributes = node.attributes
        self._flush()
        if tag == "hr":
            self.blocks.append(Block("rule", [], self._region))
            return False
        self._number += 1
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".strip().lower()
        role = (attributes.get("role") or "").lower()
        self._region = Region(tag, role, names, _is_hidden(attributes), self._region, self._number)
        if tag == "pre":
            self._take_code(node)
            return self._skip(node)
        if tag == "table" and _is_data_table(node):
            self._take_table(node)
            return self._skip(node)
        if tag in ("ul", "ol", "menu", "dir"):
            self._lists.append([1 if tag == "ol" else 0])
        elif tag == "li":
            counter = self._lists[-1] if self._lists else [0]
            self._marker = f"{counter[0]}." if counter[0] else "-"
            counter[0] += counter[0] > 0
        elif tag == "blockquote":
            self._quotes += 1
        elif tag in _HEADINGS:
            self._level = _HEADINGS[tag]
        return True

    def _skip(self, node: LexborNode) -> bool:
        """Leave an element whose whole content was already taken."""
        self._leave(node)
        return False

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag not in _CONTAINERS:
            self._marks.pop()
            return
        self._flush()
        assert self._region.parent is not None or tag == "body"
        if self._region.parent is not None:
            self._region = self._region.parent
        if tag in ("ul", "ol", "menu", "dir"):
            self._lists.pop()
        elif tag == "li":
            self._marker = ""
        elif tag == "blockquote":
            self._quotes -= 1
        elif tag in _HEADINGS:
            self._level = 0

    def _add(self, text: str) -> None:
        if text:
            mark, target = next(((m, t) for m, t in reversed(self._marks) if m == "link"), ("", ""))
            if not mark:
                mark = next((m for m, _ in reversed(self._marks) if m), "")
            self._pieces.append(Inline(text, mark, target))

    def _flush(self) -> None:
        """End the current block and keep it if it has any words."""
        pieces, self._pieces = self._pieces, []
        if not any(piece.text.strip() for piece in pieces):
            return
        kind: Kind = "heading" if self._level else "item" if self._marker else "paragraph"
        depth = len(self._lists)
        self.blocks.append(Block(kind, pieces, self._region, self._level, depth, self._quotes, self._marker))
        self._marker = ""

    def _take_code(self, node: LexborNode) -> None:
        text = node.text().strip("\n")
        if not text.strip():
            return
        inner = node.css_first("code")
        around = [node, inner, node.parent, node.parent.parent if node.parent is not None else None]
        found = (
            _CODE_CLASS.search(each.attributes.get("class") or "")
            for each in around
            if each is not None and each.is_element_node
        )
        language = next((match[1] for match in found if match), "")
        language = "" if language in ("notranslate", "default", "none", "text") else language
        self.blocks.append(Block("code", [Inline(text)], self._region, depth=len(self._lists), language=language))

    def _take_table(self, node: LexborNode) -> None:
        rows = []
        for row in node.css("tr"):
            cells = [_cell(cell) for cell in _children(row) if cell.tag in ("td", "th")]
            if any(text_of(cell) for cell in cells):
                rows.append(cells)
        caption = node.css_first("caption")
        if caption is not None and (words := (caption.text() or "").strip()):
            self.blocks.append(Block("paragraph", [Inline(words)], self._region))
        if rows:
            self.blocks.append(Block("table", [], self._region, rows=rows))


def _cell(cell: LexborNode) -> list[Inline]:
    pieces = []
    for node in cell.traverse(include_text=True):
        if node.is_text_node and (parent := node.parent) is not None and parent.tag not in _SKIPPED:
            link = parent.tag == "a" and parent.attributes.get("href")
            pieces.append(Inline(node.text_content or "", "link" if link else "", link or ""))
        elif node.tag == "br":
            pieces.append(Inline(" "))
    return pieces


def _children(node: LexborNode) -> Iterator[LexborNode]:
    child = node.child
    while child is not None:
        yield child
        child = child.next


def _image(attributes: dict[str, str | None]) -> Inline:
    return Inline(_BLANKS.sub(" ", attributes.get("alt") or "").strip(), "image", attributes.get("src") or "")


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return "hidden" in attributes or "display:none" in style or "visibility:hidden" in style


def _is_data_table(table: LexborNode) -> bool:
    """Return whether a table contains data: rows of two or more cells, and no blocks in the cells unless it has a
    header row.
    """
    inner = {
        node.tag for node in table.css("table, div, ul, ol, p, h1, h2, h3, form, pre") if node.mem_id != table.mem_id
    }
    if "table" in inner or (inner and table.css_first("th") is None):
        return False
    widest = max((sum(1 for cell in _children(row) if cell.tag in ("td", "th")) for row in table.css("tr")), default=0)
    return widest >= 2
