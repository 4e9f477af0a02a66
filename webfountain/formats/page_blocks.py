"""The blocks of a parsed page in document order: headings, paragraphs, list items, tables, code, quotes.

Read the links of a page before its blocks. `main_content` selects among blocks, and `markdown` writes blocks.

For speed, the parser writes its tree as HTML, and one regular expression cuts this HTML into blocks. Links and emphasis
inside a block are read only when a caller asks for them.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from selectolax.lexbor import LexborHTMLParser, LexborNode

__all__ = ["MAX_BLOCKS", "Block", "Inline", "Region", "attributes_of", "blocks_in", "blocks_of", "inline_pieces"]


Kind = Literal["heading", "paragraph", "item", "code", "table", "rule"]

_CONTAINERS: Final = (
    "p(?:re)?|li|d(?:iv|[dlt]|etails|ir)|t(?:[rdh]|able|body|foot|head)|h(?:[1-6r]|eader|group|tml)|ul|ol"
    "|a(?:ddress|rticle|side)|b(?:lockquote|ody)|c(?:aption|enter)|f(?:ieldset|igcaption|igure|ooter|orm)|legend|main"
    "|menu|nav|s(?:earch|ection|ummary)"
)
"""Pattern of the names of elements that begin and end a block."""
_ATTRIBUTES: Final = r'[^>"\0]*+(?:"[^"\0]*+"[^>"\0]*+)*+'
_TAG: Final = rf"(/?)({_CONTAINERS})(?![^\s/>])({_ATTRIBUTES})>"
_UNREADABLE: Final = (
    "script|style|noscript|template|svg|math|iframe|object|canvas|video|audio|select|textarea|button|datalist|map"
    "|dialog"
)
"""Elements without readable text: scripts, embedded media, form controls."""
_UNESCAPED: Final = frozenset({"xmp", "noembed", "noframes", "plaintext"})
"""Elements whose text the parser writes without escapes, so that a ``<`` in the text begins no tag."""
_COMMENT: Final = r"!--(?:[^-]++|-(?!->))*+-->"
_CUT: Final = (
    rf"<(?:{_TAG}|(?=[!bcdimnopstvx]|au)(?:{_COMMENT}|({_UNREADABLE}|{'|'.join(sorted(_UNESCAPED))})(?![^\s/>])"
    rf"{_ATTRIBUTES}>(?:[^<]++|<(?!/\4>))*+</\4>))"
)
"""Pattern of the tags and elements at which the HTML of a page is cut."""
_RAW: Final = (
    rf"(?s)<(?:{_COMMENT}|({_UNREADABLE})(?![^\s/>]){_ATTRIBUTES}>(?:[^<]++|<(?!/\1>))*+</\1>"
    rf"|(xmp|noembed|noframes)(?![^\s/>]){_ATTRIBUTES}>((?:[^<]++|<(?!/\2>))*+)</\2>"
    rf"|(plaintext)(?![^\s/>]){_ATTRIBUTES}>(.*)</plaintext>)"
)
"""Pattern of comments and of elements without readable text. If a page has elements such as ``xmp``, their text is
escaped with this pattern before the HTML is cut into blocks."""
_MOST_SKIPPED: Final = 100
"""If a page has more skipped elements than this, it is faster to remove them before the HTML is cut into blocks."""
_HIDDEN_INLINE: Final = (
    r"(?i)<(?!(?:area|base|basefont|bgsound|br|col|embed|frame|hr|img|input|keygen|link|meta|param|source|track|wbr)[\s/])"
    r"([a-z][^\s/>]*+)(?=\s)"
    r'(?=(?:[^>"]|"[^"]*+")*?\s(?:hidden[\s=>]|style="[^"]*?(?:display: ?none|visibility: ?hidden)))'
    rf"{_ATTRIBUTES}>(?:[^<]++|<(?!/\1>))*+</\1>"
)
_INLINE_TAG: Final = rf"<(/?)([a-z][^\s/>]*+)({_ATTRIBUTES})>"
_ANY_TAG: Final = rf"<[a-z/]{_ATTRIBUTES}>"
_ANY_TAG_BUT_BREAK: Final = rf"<(?!br>)[a-z/]{_ATTRIBUTES}>"
_LINK: Final = rf'<a\s(?=[^>]*?\bhref="[^"])({_ATTRIBUTES})>((?:[^<]++|<(?!/a>))*+)</a>'
_ATTRIBUTE: Final = r'([^\s="]++)(?:="([^"]*+)")?'
_SEMANTIC: Final = frozenset({"article", "aside", "footer", "header", "main", "menu", "nav", "search", "section"})
_LISTS: Final = frozenset({"ul", "ol", "menu", "dir"})
_BLOCKS_IN_CELLS: Final = frozenset({"div", "ul", "ol", "p", "h1", "h2", "h3", "form", "pre"})
_INLINE_MARKS: Final = {
    "b": "strong", "strong": "strong", "i": "em", "em": "em",
    "code": "code", "kbd": "code", "samp": "code", "tt": "code",
}  # fmt: skip
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_STATEFUL: Final = frozenset({"li", "blockquote", *_LISTS, *_HEADINGS})
_CODE_CLASS: Final = r"(?:^|\s)(?:language|lang|highlight|brush:|sourceCode)[-:\s]+([\w+#-]+)"
_NO_LANGUAGE: Final = frozenset({"notranslate", "default", "none", "text", "plaintext"})
_IMAGE_WITH_TEXT: Final = rf'<img\b(?=[^>]*?\salt="\s*[^"\s]){_ATTRIBUTES}>'
_PIECE_END: Final = "\0"
"""Character that separates pieces; no parsed page contains it."""
_LINE_BREAK: Final = "\1"
"""Character that stands for a line break; texts for people do not contain it."""
_TWO_BLANKS: Final = "  "
"""Pattern of consecutive blanks."""
_ASCII_BLANKS: Final = "\t\n\v\f\r\x1c\x1d\x1e\x1f"
_BLANKS: Final = (
    f"{_ASCII_BLANKS}\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f"
    "\u205f\u3000"
)
"""All characters that `str.isspace` counts as white space, except the blank itself."""
MAX_BLOCKS: Final = 50_000
_LONGEST_LINK: Final = 1000
"""A link around several blocks is repeated in each block if its tag has at most this number of characters."""


class Inline(NamedTuple):
    """A piece of a block: its text and its mark (``link``, ``image``, ``code``, ``strong``, ``em``, ``break``)."""

    text: str
    mark: str = ""
    target: str = ""


class Region(msgspec.Struct, frozen=True, gc=False):
    """An element around blocks, with its tag, its attributes and the region around it.

    An element without attributes is a region only if its tag describes its content, like ``nav``. Regions are numbered
    in document order.
    """

    tag: str
    attributes: str
    parent: Region | None
    number: int


class Block(msgspec.Struct, frozen=True, gc=False):
    """A block of a page, such as a paragraph or a table. `level` is the level of a heading, `depth` the nesting of
    lists, `quotes` the nesting of quotations. `rows` are the rows of a table, as sequences of cells with HTML. `said`
    contains the HTML attributes of the table's rows and cells. `html` is the content of a block that is neither a table
    nor code. `text` has a line for each row of a table and for each line of code."""

    kind: Kind
    html: str
    text: str
    region: Region
    level: int = 0
    depth: int = 0
    quotes: int = 0
    marker: str = ""
    language: str = ""
    rows: Sequence[Sequence[str]] | None = None
    said: str = ""

    @property
    def pieces(self) -> list[Inline]:
        """The words of the block, with marks such as ``link`` and ``strong``."""
        return [Inline(self.text)] if self.kind == "code" else inline_pieces(self.html)

    @property
    def link_share(self) -> float:
        if "<a " not in self.html or not self.text:
            return 0.0
        links = [found[1] for found in _compiled(_LINK).findall(self.html)]
        return sum(map(len, _words_of_all(links))) / len(self.text)


def blocks_of(tree: LexborHTMLParser) -> list[Block]:
    """Return the blocks of a page in document order, at most `MAX_BLOCKS`."""
    return [] if tree.body is None else blocks_in(tree.body)


def blocks_in(node: LexborNode) -> list[Block]:
    html, cut = node.html or "", _compiled(_CUT)
    if _may_hide(html):
        html = _compiled(_RAW).sub(_raw_text, html)
        if _may_hide(html):  # not only in a script
            html = _compiled(_HIDDEN_INLINE).sub(_unless_container, html)
    pieces = cut.split(html)
    skipped = [at for at, tag in enumerate(pieces[2::5]) if tag is None]
    if len(skipped) > _MOST_SKIPPED or any(pieces[5 * at + 4] in _UNESCAPED for at in skipped):
        pieces, skipped = cut.split(_compiled(_RAW).sub(_raw_text, html)), []
    return _Cutter(pieces, skipped).blocks


def _may_hide(html: str) -> bool:
    return " hidden" in html or (' style="' in html and ("display:" in html or "visibility:" in html))


def _raw_text(found: re.Match[str]) -> str:
    """Return the text of an element such as ``xmp`` as escaped HTML, or "" for an element without readable text."""
    text = found[3] if found[2] == "xmp" else found[5] if found[4] else None
    return "" if text is None else f"<pre>{escape(text, quote=False)}</pre>"


def _unless_container(found: re.Match[str]) -> str:
    """Remove a hidden element that contains no blocks."""
    return found[0] if _compiled("<" + _TAG).search(found[0]) else ""


class _Cutter:
    """Makes blocks from the pieces into which the HTML of a page was cut. `skipped` has the positions of elements
    without readable text."""

    def __init__(self, pieces: list[str | Any], skipped: Sequence[int]) -> None:
        self.blocks: list[Block] = []
        self._texts, self._ends, self._tags, self._attributes = (pieces[i::5] for i in range(4))
        for at in reversed(skipped):
            self._texts[at : at + 2] = [self._texts[at] + self._texts[at + 1]]
            del self._ends[at], self._tags[at], self._attributes[at]
        # The first text stands before all tags, so the text after a tag is the next one in the list.
        self._words = _words_of_all(self._texts)
        self._region = Region("", "", None, 0)
        self._regions: list[Region] = []
        self._number = 0
        self._lists: list[int] = []
        self._quotes = 0
        self._marker = ""
        self._level = 0
        self._link = ""
        self._cut()

    def _cut(self) -> None:
        texts, ends, tags, attributes, words = self._texts, self._ends, self._tags, self._attributes, self._words
        regions, blocks, at, last = self._regions, self.blocks, 0, len(tags)
        self._add(texts[0], words[0])
        while at < last and len(blocks) < MAX_BLOCKS:
            tag, said = tags[at], attributes[at]
            if ends[at]:
                if regions:
                    self._region = regions.pop()
                if tag in _STATEFUL:
                    self._leave(tag)
            elif tag == "hr":
                blocks.append(Block("rule", "", "", self._region))
            else:
                regions.append(self._region)
                if said or tag in _SEMANTIC:
                    self._number += 1
                    self._region = Region(tag, said, self._region, self._number)
                if tag in _STATEFUL:
                    self._enter(tag)
                elif tag == "pre":
                    at = self._take_code(at)
                elif tag == "table" and (end := self._end_of_data(at)):
                    at = self._take_table(at, end)
            at += 1
            html, text = texts[at], words[at]
            if text or "<" in html:
                self._add(html, text)

    def _enter(self, tag: str) -> None:
        if tag == "li":
            number = self._lists[-1] if self._lists else 0
            self._marker = f"{number}." if number else "-"
            if number:
                self._lists[-1] += 1
        elif tag in _LISTS:
            self._lists.append(1 if tag == "ol" else 0)
        elif tag == "blockquote":
            self._quotes += 1
        elif tag in _HEADINGS:
            self._level = _HEADINGS[tag]

    def _leave(self, tag: str) -> None:
        if tag == "li":
            self._marker = ""
        elif tag in _LISTS:
            if self._lists:
                self._lists.pop()
        elif tag == "blockquote":
            self._quotes -= 1
        elif tag in _HEADINGS:
            self._level = 0

    def _add(self, html: str, text: str) -> None:
        """Add a piece of HTML as a block if it has words, or a picture with an alternative text."""
        if self._link or "<" in html:
            html = self._with_links_closed(html)
        if not text and not ("<img" in html and _compiled(_IMAGE_WITH_TEXT).search(html)):
            return
        kind: Kind = "heading" if self._level else "item" if self._marker else "paragraph"
        self.blocks.append(
            Block(kind, html, text, self._region, self._level, len(self._lists), self._quotes, self._marker)
        )
        self._marker = ""

    def _with_links_closed(self, html: str) -> str:
        """Return HTML in which each link is opened and closed, even if the link continues in the next block."""
        begun = self._link
        last, closed = html.rfind("<a "), html.rfind("</a>")
        if last > closed:
            link = html[last : html.find(">", last) + 1]
            self._link = link if len(link) <= _LONGEST_LINK else "<a>"
            return f"{begun}{html}</a>"
        if begun and closed < 0:
            return f"{begun}{html}</a>"
        self._link = ""
        return begun + html

    def _take_code(self, at: int) -> int:
        """Add preformatted text as a block, and return the position of its end tag."""
        depth, end, raw = 1, at, [self._texts[at + 1]]
        while depth and end + 1 < len(self._tags):
            end += 1
            if self._tags[end] == "pre":
                depth += -1 if self._ends[end] else 1
            if depth:
                raw.append("\n" if self._ends[end] else "")
                raw.append(self._texts[end + 1])
        html = "".join(raw)
        text = _unescaped(_compiled(_ANY_TAG).sub("", html.replace("<br>", "\n"))).strip("\n")
        if text.strip():
            language = self._language(html)
            self.blocks.append(Block("code", "", text, self._region, depth=len(self._lists), language=language))
        self._region = self._regions.pop()
        return end

    def _language(self, html: str) -> str:
        """Return the programming language of code, from classes such as ``language-python``."""
        begin = re.match(rf"\s*<code({_ATTRIBUTES})>", html)
        around: Region | None = self._region
        said = [begin[1]] if begin else []
        while around is not None and len(said) < 4:
            said.append(around.attributes)
            around = around.parent
        names = (attributes_of(each).get("class", "") for each in said if "class" in each)
        found = next((match[1] for each in names if (match := _compiled(_CODE_CLASS).search(each))), "")
        return "" if found in _NO_LANGUAGE else found

    def _end_of_data(self, at: int) -> int:
        """Return the position of the end tag of a table with data, or 0 for a table that serves only the layout.

        A table counts as data if it contains a row of several cells and no other table. A table whose cells contain
        paragraphs or lists counts as data only if it has header cells.
        """
        widest = width = 0
        has_blocks = has_header = False
        for end in range(at + 1, len(self._tags)):
            tag = self._tags[end]
            if self._ends[end]:
                if tag == "table":
                    return end if max(widest, width) > 1 and (has_header or not has_blocks) else 0
            elif tag == "table":
                return 0
            elif tag == "tr":
                widest, width = max(widest, width), 0
            elif tag in ("td", "th"):
                width += 1
                has_header = has_header or tag == "th"
            elif tag in _BLOCKS_IN_CELLS:
                has_blocks = True
        return 0

    def _take_table(self, at: int, end: int) -> int:
        """Add a table of data as a block, and return the position of its end tag."""
        rows: list[list[list[int]]] = []
        caption: list[int] = []
        into = caption
        for here in range(at + 1, end):
            tag, is_end = self._tags[here], self._ends[here]
            if tag == "tr" and not is_end:
                rows.append([])
                into = []
            elif tag in ("td", "th"):
                into = []
                if not is_end and rows:
                    rows[-1].append(into)
            elif tag == "caption":
                into = caption if not is_end else []
            into.append(here + 1)
        if words := self._in_line(caption):
            self.blocks.append(Block("paragraph", self._html(caption), words, self._region))
        found = [(row, [self._in_line(cell) for cell in row]) for row in rows]
        kept = [(row, words) for row, words in found if any(words)]
        if kept:
            text = "\n".join("\t".join(words) for _, words in kept)
            said = "".join(self._attributes[at + 1 : end])
            cells = [[self._html(cell) for cell in row] for row, _ in kept]
            self.blocks.append(Block("table", "", text, self._region, rows=cells, said=said))
        self._region = self._regions.pop()
        return end

    def _in_line(self, cell: list[int]) -> str:
        return " ".join(words for each in cell if (words := self._words[each])).replace("\n", " ")

    def _html(self, cell: list[int]) -> str:
        return " ".join([self._texts[each] for each in cell])


def _words_of_all(pieces: Sequence[str]) -> list[str]:
    """Return the text of each piece of HTML, with collapsed white space, and with line breaks for ``<br>``."""
    # One call for all pieces: for a short piece, a call costs more than the work.
    html = _PIECE_END.join(pieces)
    if "<" in html:
        html = _compiled(_ANY_TAG_BUT_BREAK).sub("", html)
    html = _unescaped(html.replace("<br>", _LINE_BREAK) if "<" in html else html)
    for blank in _ASCII_BLANKS if html.isascii() else _BLANKS:
        html = html.replace(blank, " ")
    # Strip before the search for consecutive blanks: most of them are at the ends of pieces.
    texts = [text.strip() for text in html.split(_PIECE_END)]
    if _compiled(_TWO_BLANKS).search(_PIECE_END.join(texts)):
        texts = [" ".join(text.split()) if "  " in text else text for text in texts]
    return [_broken(text) if _LINE_BREAK in text else text for text in texts] if _LINE_BREAK in html else texts


def _broken(text: str) -> str:
    """Return a text without blanks around its line breaks, and without line breaks at its ends."""
    text = text.replace(" " + _LINE_BREAK, _LINE_BREAK).replace(_LINE_BREAK + " ", _LINE_BREAK)
    return text.strip(_LINE_BREAK).replace(_LINE_BREAK, "\n")


def _unescaped(html: str) -> str:
    """Return a text in which the parser's four escapes are replaced."""
    if "&" not in html:
        return html
    return html.replace("&nbsp;", "\xa0").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def attributes_of(written: str) -> dict[str, str]:
    """Parse the attributes of a tag that the parser wrote."""
    return {
        name: value.replace("&quot;", '"') if "&" not in value else _unescaped(value.replace("&quot;", '"'))
        for name, value in _compiled(_ATTRIBUTE).findall(written)
    }


def inline_pieces(html: str) -> list[Inline]:
    """Cut the HTML inside a block into pieces of text, each with its mark. Text inside a link has the mark ``link``;
    other text has the mark of its innermost element."""
    return list(_inline_pieces(html))


def _inline_pieces(html: str) -> Iterator[Inline]:
    links: list[str] = []
    marks: list[str] = []
    at = 0
    for found in _compiled(_INLINE_TAG).finditer(html):
        if text := html[at : found.start()]:
            yield _marked(_unescaped(text), marks, links)
        at = found.end()
        tag = found[2]
        if tag == "br":
            yield Inline("", "break")
        elif tag == "img":
            said = attributes_of(found[3])
            yield Inline(" ".join(said.get("alt", "").split()), "image", said.get("src", ""))
        elif tag == "a":
            # No link is inside another link. An end tag without a start tag belongs to a link of an earlier block.
            links = [] if found[1] else [attributes_of(found[3]).get("href", "")]
        elif tag in _INLINE_MARKS and not found[1]:
            marks.append(_INLINE_MARKS[tag])
        elif tag in _INLINE_MARKS and marks:
            marks.pop()
    if text := html[at:]:
        yield _marked(_unescaped(text), marks, links)


def _marked(text: str, marks: list[str], links: list[str]) -> Inline:
    if links and links[0]:
        return Inline(text, "link", links[0])
    return Inline(text, marks[-1] if marks else "")


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)
