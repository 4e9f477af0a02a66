"""What a fetched body says: its title, its visible text and where it leads, by its type.

The one place that knows which reader is for which type: HTML (`html`, `links`), other XML (`xml`), anything else is
plain text. Pure, and as expensive as a body makes it: `is_ordinary` tells of a body whether reading it is short
whatever it holds. Whoever reads what strangers wrote has all others read by the `sandbox`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from webfountain.formats import html
from webfountain.formats.charset import decode, encoding_of
from webfountain.formats.html_limits import MAX_ORDINARY_BYTES
from webfountain.formats.html_limits import is_ordinary as is_ordinary_markup
from webfountain.formats.xml import xml_text

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

    from webfountain.formats.content_type import ContentType
    from webfountain.formats.links import LinkExtractor

__all__ = ["Document", "DocumentReader", "PlainReader", "ReadError", "is_ordinary", "text_of"]

ReadError = Literal["parse-time", "parse-memory", "parse-crash"]
"""Why a body has no document: it took too long, too much memory, or its reader broke on it."""
_MAX_XML_BYTES: Final = 8_192
_SHIFTING: Final = frozenset({"utf-16-le", "utf-16-be", "iso2022_jp", "iso2022_kr", "hz"})
"""Encodings in which a byte that looks like a ``<`` may be none, or the other way round."""


class Document(msgspec.Struct, frozen=True, array_like=True):
    """Title (None where there is none), visible text of at most `html.MAX_TEXT_BYTES`, and canonical links in order.

    With an `error` the body could not be read, and there is nothing of it.
    """

    title: str | None = None
    text: str = ""
    links: list[str] = []
    error: ReadError | None = None


class DocumentReader(Protocol):
    """Whoever reads bodies."""

    def read(
        self, body: bytes, kind: ContentType, *, url: str | None = None, robots_header: str | None = None
    ) -> Document:
        """What a body says. Without the canonical `url` of its page its links are not asked for."""
        ...

    def read_at_once(
        self, body: bytes, kind: ContentType, *, url: str | None = None, robots_header: str | None = None
    ) -> Document | None:
        """As `read`, where that is short whatever the body holds; else None."""
        ...


class PlainReader:
    """Reads every body here and now: for bodies that are trusted."""

    __slots__ = ("_extractor",)

    def __init__(self, extractor: LinkExtractor) -> None:
        self._extractor = extractor

    def read(
        self, body: bytes, kind: ContentType, *, url: str | None = None, robots_header: str | None = None
    ) -> Document:
        if not kind.is_html:
            return text_of(body, kind)
        return self._said(html.tree_of(body, kind.charset), url, robots_header)

    def read_at_once(
        self, body: bytes, kind: ContentType, *, url: str | None = None, robots_header: str | None = None
    ) -> Document | None:
        if not is_ordinary(body, kind):
            return None
        if not kind.is_html:
            return text_of(body, kind)
        return self._said(html.tree_of_ordinary(body, kind.charset), url, robots_header)

    def _said(self, tree: LexborHTMLParser, url: str | None, robots_header: str | None) -> Document:
        title = html.title(tree)
        # Links first: taking the text prunes the tree.
        links = [] if url is None else self._extractor.extract(tree, url, robots_header=robots_header)
        return Document(title, html.visible_text(tree), links)


def text_of(body: bytes, kind: ContentType) -> Document:
    """Title and text of a body, without its links."""
    if kind.is_html:
        tree = html.tree_of(body, kind.charset)
        return Document(html.title(tree), html.visible_text(tree))
    if kind.is_xml:
        title, text = xml_text(body, kind.charset, most=html.MAX_TEXT_BYTES)
        return Document(title, html.capped(text))
    return Document(None, html.capped(decode(body, kind.charset)))


def is_ordinary(body: bytes, kind: ContentType) -> bool:
    """Whether reading a body takes at most about 20 ms and 20 MB, whatever it holds."""
    if kind.is_html:
        return is_ordinary_markup(body) and encoding_of(body, kind.charset)[0] not in _SHIFTING
    return len(body) <= (_MAX_XML_BYTES if kind.is_xml else MAX_ORDINARY_BYTES)
