"""Prepare a copy for people and indexes, as text, Markdown or HTML, with metadata.

A body that is not HTML becomes plain text, even if Markdown or HTML was requested.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.formats.charset import decode, encoding_of
from webfountain.formats.document import capped, text_of, title_of, tree_of, utf8, visible_text
from webfountain.formats.main_content import main_blocks
from webfountain.formats.markdown import markdown_of, plain_text_of
from webfountain.formats.page_blocks import blocks_of
from webfountain.formats.page_metadata import PageMetadata, metadata_of

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

    from webfountain.formats.markdown import PageFormat
    from webfountain.formats.media_type import ContentType

__all__ = ["PageReading", "read_page"]

_BLOCKS: Final = (
    "address,article,aside,blockquote,br,button,caption,center,dd,details,dialog,div,dl,dt,fieldset,figcaption,figure,"
    "footer,form,h1,h2,h3,h4,h5,h6,header,hgroup,hr,legend,li,main,menu,nav,ol,optgroup,option,p,section,select,"
    "summary,table,tbody,textarea,tfoot,thead,tr,ul"
)
"""Elements that start and end a line in a browser (HTML standard, Rendering)."""
_BREAK: Final = "\x1e"
"""Character that marks the start or the end of a block; the text of a page cannot contain it."""
_LINE: Final = "\x1f"
"""Character that stands for a line feed in preformatted text."""
_MARKS: Final = re.compile(f"[{_BREAK}{_LINE}]")
_MARKS_IN_BYTES: Final = re.compile(rb"[\x1e\x1f]|&#(?:30|31|[xX]1[eEfF]);?")
_BLANKS: Final = re.compile(r"[^\S\x1e\x1f]+")


class PageReading(msgspec.Struct, frozen=True):
    """The content of a copy, prepared for people or indexes: title, text in the requested format, and metadata."""

    title: str | None
    text: str
    metadata: PageMetadata


def read_page(
    body: bytes, kind: ContentType, url: str, *, form: PageFormat = "text", main: bool = False
) -> PageReading:
    """Return the text of a copy in the requested format, with title and metadata.

    If `main` is set, return only the main content.

    In the format ``html``, the text is the decoded body, unchanged. A text has at most `document.MAX_TEXT_BYTES`.
    """
    if not kind.is_html:
        document = text_of(body, kind)
        return PageReading(document.title, document.text, PageMetadata(title=document.title))
    tree = tree_of(_MARKS_IN_BYTES.sub(b" ", utf8(body, *encoding_of(body, kind.charset))), "utf-8")
    title, metadata = title_of(tree), metadata_of(tree, url)
    if form == "html":
        text = decode(body, kind.charset)
    elif form == "text" and not main:
        text = _whole_text(tree)
    else:
        blocks = main_blocks(blocks_of(tree)) if main else blocks_of(tree)
        text = markdown_of(blocks, url) if form == "markdown" else plain_text_of(blocks)
    return PageReading(title, capped(text), metadata)


def _whole_text(tree: LexborHTMLParser) -> str:
    """Return the text of a page, one line for each block."""
    for node in tree.css("pre"):
        lines = _MARKS.sub(" ", node.text()).strip("\n").replace("\r\n", "\n").split("\n")
        node.replace_with(_BREAK + _LINE.join(lines) + _BREAK)
    for node in tree.css(_BLOCKS):
        node.insert_before(_BREAK)
        node.insert_after(_BREAK)
    found = []
    for block in visible_text(tree).split(_BREAK):
        if _LINE in block:
            found += [line.rstrip() for line in block.split(_LINE)]
        elif line := _BLANKS.sub(" ", block).strip():
            found.append(line)
    return "\n".join(found)
