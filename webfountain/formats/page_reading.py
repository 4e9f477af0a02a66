"""Prepare a copy for people and programs: text or Markdown, the whole page or its main content, with metadata.

`texts` and `cat` call this for each copy that they read. For bodies other than HTML, every format gives the plain
text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from webfountain.formats.charset import decode
from webfountain.formats.document import text_of
from webfountain.formats.html_text import capped, title_of, tree_of
from webfountain.formats.main_content import main_blocks
from webfountain.formats.markdown import markdown_of, plain_text_of
from webfountain.formats.page_blocks import blocks_of
from webfountain.formats.page_metadata import PageMetadata, metadata_of
from webfountain.formats.readable_text import readable_document

if TYPE_CHECKING:
    from webfountain.formats.media_type import ContentType

__all__ = ["PageFormat", "PageReading", "read_page"]

PageFormat = Literal["text", "markdown", "html"]


class PageReading(msgspec.Struct, frozen=True):
    """Title (None if there is none), text in the requested format, and metadata."""

    title: str | None
    text: str
    metadata: PageMetadata


def read_page(
    body: bytes, kind: ContentType, url: str, *, form: PageFormat = "text", main: bool = False
) -> PageReading:
    """Return the text of a copy of the page at `url`; with `main`, only its main content.

    The format ``html`` is the decoded body. Texts are at most `html_text.MAX_TEXT_BYTES` long.
    """
    if not kind.is_html:
        document = text_of(body, kind)
        return PageReading(document.title, document.text, PageMetadata(title=document.title))
    tree = tree_of(body, kind.charset)
    title, metadata = title_of(tree), metadata_of(tree, url)
    if form == "html":
        return PageReading(title, capped(decode(body, kind.charset)), metadata)
    if form == "text" and not main:
        return PageReading(title, readable_document(body, kind).text, metadata)
    blocks = blocks_of(tree)
    blocks = main_blocks(blocks) if main else blocks
    return PageReading(
        title, capped(markdown_of(blocks, url) if form == "markdown" else plain_text_of(blocks)), metadata
    )
