"""Read a fetched body: its title, visible text and links, according to its type.

This module reads HTML itself; `xml_text` reads XML. Bodies that are neither HTML nor XML are read as plain text.
Parsing a hostile body may take minutes, so `DocumentReader.read_at_once` reads only bodies that are sure to parse fast.
The `sandbox` reads the bodies that may parse slowly.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from selectolax.lexbor import LexborHTMLParser

from webfountain.formats.charset import decode, encoding_of
from webfountain.formats.extractors import ExtractedText, extractor_named
from webfountain.formats.html_safety import MAX_ORDINARY_BYTES, is_ordinary_markup, tame
from webfountain.formats.links import MAX_LINKS, PageLinks
from webfountain.formats.main_content import main_blocks
from webfountain.formats.markdown import plain_text_of
from webfountain.formats.page_blocks import blocks_of
from webfountain.formats.page_metadata import PageMetadata, metadata_of
from webfountain.formats.page_units import (
    WHOLE_PAGE,
    ReadingRules,
    Unit,
    lines_of_text,
    units_of_blocks,
    units_of_page,
    units_of_text,
)
from webfountain.formats.xml_text import xml_text
from webfountain.urls import join

if TYPE_CHECKING:
    from webfountain.formats.links import LinkExtractor, LinkSource
    from webfountain.formats.media_type import ContentType

__all__ = [
    "MAX_TEXT_BYTES",
    "Document",
    "DocumentReader",
    "ReadError",
    "capped",
    "text_of",
    "title_of",
    "tree_of",
    "utf8",
    "visible_text",
]

ReadError = Literal["parse-time", "parse-memory", "parse-crash"]
"""Reason why a body could not be read: too much time, too much memory, or a crash of the parser."""
MAX_TEXT_BYTES: Final = 1_000_000
"""Maximum size of a page's text in UTF-8, bytes. Longer texts are cut (Edwards 2001, section 2: "up to 1 MB of text of
each page")."""
_INVISIBLE: Final = ["script", "style", "noscript", "template"]
_MAX_XML_BYTES: Final = 8_192
_BLANK_LINE: Final = re.compile(r"(?:\A|\n)[^\S\n]*(?:\n|\Z)")
_SHIFTING: Final = frozenset({"utf-16-le", "utf-16-be", "iso2022_jp", "iso2022_kr", "hz"})
"""Encodings in which the byte ``<`` does not always stand for the character ``<``."""


class Document(msgspec.Struct, frozen=True, array_like=True):
    """Title, visible text and canonical links of a body, in document order.

    A document with an `error` has no other content.
    """

    title: str | None = None
    text: str = ""
    links: list[str] = []
    error: ReadError | None = None
    canonical: str | None = None
    """Canonical URL that the page names, if it is not the page's own URL."""
    language: str | None = None
    """Language that the page declares, such as ``de-AT``."""
    anchors: list[str] = []
    """Text of each link, or "" for a link without text; [] if the texts were not requested."""
    nofollow: list[str] = []
    """Canonical URLs of the nofollow links, or [] if these links were not requested."""
    units: list[Unit] | None = None
    """The lines of the page, each with its place in the page, or None if the lines were not requested."""
    metadata: PageMetadata | None = None
    """Metadata of the page, or None if the metadata were not requested."""

    @property
    def lines(self) -> list[str]:
        return lines_of_text(self.text) if self.units is None else [unit.line for unit in self.units]

    @property
    def line_text(self) -> str:
        """The lines of the page, joined by line feeds."""
        if self.units is None and _BLANK_LINE.search(self.text) is None:
            return self.text
        return "\n".join(self.lines)

    @property
    def shown(self) -> list[str]:
        """The lines of the page in the format in which diffs show them."""
        return self.lines if self.units is None else [unit.shown or unit.line for unit in self.units]


class DocumentReader:
    """Reader of bodies in this process. Its method `read` is for trusted bodies only."""

    def __init__(self, extractor: LinkExtractor) -> None:
        self._extractor = extractor

    def read(
        self, body: bytes, kind: ContentType, links: LinkSource | None = None, rules: ReadingRules = WHOLE_PAGE
    ) -> Document:
        """Read a body under the rules of a policy, and return the document. The document has links only if `links` is
        given."""
        if kind.kind in rules.extractors:
            return _extracted(body, kind, links, rules)
        if not kind.is_html:
            return _text_by_rules(body, kind, rules)
        return self._said(tree_of(body, kind.charset), links, rules)

    def read_at_once(
        self, body: bytes, kind: ContentType, links: LinkSource | None = None, rules: ReadingRules = WHOLE_PAGE
    ) -> Document | None:
        """Return the same as `read` if the body is sure to parse fast, else None."""
        if kind.kind in rules.extractors:
            return None  # a project's own code runs in a process that can be killed
        if not kind.is_html:
            is_short = len(body) <= (_MAX_XML_BYTES if kind.is_xml else MAX_ORDINARY_BYTES)
            return _text_by_rules(body, kind, rules) if is_short else None
        if not is_ordinary_markup(body):
            return None
        encoding, mark = encoding_of(body, kind.charset)
        if encoding in _SHIFTING:
            return None
        return self._said(LexborHTMLParser(utf8(body, encoding, mark)), links, rules)

    def _said(self, tree: LexborHTMLParser, links: LinkSource | None, rules: ReadingRules) -> Document:
        title = title_of(tree)
        # Take the links and metadata first, because taking the text removes elements from the tree.
        found = PageLinks([]) if links is None else self._extractor.extract(tree, links)
        language = tree.root.attributes.get("lang") if tree.root is not None else None
        metadata = metadata_of(tree, "" if links is None else links.url) if rules.metadata else None
        if rules.shown == "markdown" and links is not None:
            rules = msgspec.structs.replace(rules, base=links.url)
        if rules.main:
            blocks = main_blocks(blocks_of(tree))
            text = capped(plain_text_of(blocks))
            # Without selectors the lines that are compared are the lines of the text, so the page is cut only once.
            is_whole = not (rules.select or rules.ignore or rules.always)
            units = units_of_blocks(blocks, rules) if rules.units and is_whole else None
        else:
            text, units = visible_text(tree), None
        if rules.units and units is None:
            units = units_of_page(tree, rules)
        return Document(
            title,
            text,
            found.links,
            canonical=found.canonical,
            language=language,
            anchors=list(found.anchors),
            nofollow=list(found.nofollow),
            units=units,
            metadata=metadata,
        )


def _extracted(body: bytes, kind: ContentType, links: LinkSource | None, rules: ReadingRules) -> Document:
    answer = extractor_named(rules.extractors[kind.kind])(body, kind)
    found = msgspec.convert(msgspec.structs.asdict(answer), ExtractedText)  # the project may break its promise of types
    joined = [] if links is None else [join(links.url, link) for link in found.links[:MAX_LINKS]]
    text = capped(found.text)
    units = units_of_text(text) if rules.units else None
    own = links.url if links is not None else ""
    return Document(found.title, text, [url for url in dict.fromkeys(joined) if url and url != own], units=units)


def _text_by_rules(body: bytes, kind: ContentType, rules: ReadingRules) -> Document:
    """Return the document of a body other than HTML."""
    document = text_of(body, kind)
    return msgspec.structs.replace(document, units=units_of_text(document.text)) if rules.units else document


def text_of(body: bytes, kind: ContentType) -> Document:
    """Return the title and the text of a body, but no links."""
    if kind.is_html:
        tree = tree_of(body, kind.charset)
        return Document(title_of(tree), visible_text(tree))
    if kind.is_xml:
        title, text = xml_text(body, kind.charset, most=MAX_TEXT_BYTES)
        return Document(title, capped(text))
    return Document(None, capped(decode(body, kind.charset)))


def tree_of(body: bytes, charset: str | None) -> LexborHTMLParser:
    """Parse an HTML body.

    Parameters
    ----------
    charset : from the Content-Type header; if it is None, the byte order mark, the meta declaration or UTF-8 decides
    """
    return LexborHTMLParser(tame(utf8(body, *encoding_of(body, charset))))


def utf8(body: bytes, encoding: str, mark: int) -> bytes:
    """Return the body in UTF-8 without its byte order mark. lexbor decodes UTF-8 faster than Python does."""
    body = body[mark:] if mark else body
    return body if encoding == "utf-8" else body.decode(encoding, "webfountain.browser").encode()


def visible_text(tree: LexborHTMLParser) -> str:
    """Return the visible text of a tree: all text in the body element except script, style, noscript and template, at
    most `MAX_TEXT_BYTES` in UTF-8. The crawl compares this text to detect changes.

    Read the links before the call, because this function removes elements from the tree.
    """
    tree.strip_tags(_INVISIBLE)
    body = tree.body
    return "" if body is None else capped(body.text(separator=" "))


def title_of(tree: LexborHTMLParser) -> str | None:
    """Return the title with collapsed white space, or None if the title is missing or empty."""
    node = tree.css_first("title")
    return None if node is None else " ".join(node.text().split()) or None


def capped(text: str) -> str:
    """Return the beginning of a text, at most `MAX_TEXT_BYTES` in UTF-8."""
    if len(text) * 4 <= MAX_TEXT_BYTES:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= MAX_TEXT_BYTES else encoded[:MAX_TEXT_BYTES].decode("utf-8", "ignore")
