"""The text of a copy for people and indexes: one line for each block; preformatted text keeps its lines.

`texts` and `cat --text` use it. Changes are judged from `document.visible_text`, which is faster and joins all pieces
with blanks. Both texts have the same words, except in code, which this one keeps unbroken.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webfountain.formats.document import Document, text_of
from webfountain.formats.html_text import capped, title_of, tree_of, visible_text

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

    from webfountain.formats.media_type import ContentType

__all__ = ["readable_document"]

_BLOCKS: Final = (
    "address,article,aside,blockquote,br,button,caption,center,dd,details,dialog,div,dl,dt,fieldset,figcaption,figure,"
    "footer,form,h1,h2,h3,h4,h5,h6,header,hgroup,hr,legend,li,main,menu,nav,ol,optgroup,option,p,section,select,"
    "summary,table,tbody,textarea,tfoot,thead,tr,ul"
)
"""Elements that start and end a line in a browser (HTML standard, Rendering)."""
_BREAK: Final = "\x1e"
"""Mark for the start or end of a block. The character never occurs in the text, because it is removed from the page
first.
"""
_LINE: Final = "\x1f"
"""Mark for a line feed of preformatted text."""
_MARKS: Final = re.compile(f"[{_BREAK}{_LINE}]")
_MARKS_IN_BYTES: Final = re.compile(rb"[\x1e\x1f]|&#(?:30|31|[xX]1[eEfF]);?")
_BLANKS: Final = re.compile(r"[^\S\x1e\x1f]+")


def readable_document(body: bytes, kind: ContentType) -> Document:
    """Return the title and the readable text of a body, without its links."""
    if not kind.is_html:
        return text_of(body, kind)
    tree = tree_of(_MARKS_IN_BYTES.sub(b" ", body), kind.charset)
    title = title_of(tree)
    _mark(tree)
    return Document(title, capped(_lines(visible_text(tree))))


def _mark(tree: LexborHTMLParser) -> None:
    """Put a mark at both ends of each block, and at each line feed of preformatted text."""
    for node in tree.css("pre"):
        lines = _MARKS.sub(" ", node.text()).strip("\n").replace("\r\n", "\n").split("\n")
        node.replace_with(_BREAK + _LINE.join(lines) + _BREAK)
    for node in tree.css(_BLOCKS):
        node.insert_before(_BREAK)
        node.insert_after(_BREAK)


def _lines(text: str) -> str:
    """Return the blocks that contain text, one line each; white space is collapsed except in preformatted lines."""
    found = []
    for block in text.split(_BREAK):
        if _LINE in block:
            found += [line.rstrip() for line in block.split(_LINE)]
        elif line := _BLANKS.sub(" ", block).strip():
            found.append(line)
    return "\n".join(found)
