"""The visible text of a page: what changes are judged by, and what a search or RAG index takes in.

A fetched body is parsed once: `tree_of` gives the tree, the frontier takes the links from it, then `visible_text`
takes the text. Nothing here is stored; shingles and verdicts are made from the text in `core`.

The text of an HTML page: script, style, noscript and template removed, the text nodes of body joined with a blank.
It keeps its letters and white space; `core.shingles` lower-cases and splits it.
"""

from __future__ import annotations

__all__ = ["MAX_TEXT_BYTES", "Text", "decode", "text_of", "title", "tree_of", "visible_text"]

from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser
from w3lib.encoding import html_body_declared_encoding, read_bom, resolve_encoding

from webfountain.formats.html_limits import tame

MAX_TEXT_BYTES = 1_000_000
"""A page's text is cut here, in UTF-8 (Edwards 2001, section 2: "up to 1 MB of text of each page")."""

_INVISIBLE = ["script", "style", "noscript", "template"]
_HTML_TYPES = ("text/html", "application/xhtml+xml", "")


class Text(NamedTuple):
    """Title (None where there is none) and visible text of a page."""

    title: str | None
    text: str


def tree_of(body: bytes, charset: str | None) -> LexborHTMLParser:
    """Parse an HTML body, whatever it is: a browser's parser never fails.

    Parameters
    ----------
    charset : from the Content-Type header, or None: then the byte order mark, the meta declaration, else UTF-8
    """
    name = _encoding(body, charset)
    body = tame(body)
    # lexbor reads UTF-8 itself, faster than Python decodes; other encodings go through str.
    return LexborHTMLParser(body.removeprefix(b"\xef\xbb\xbf") if name == "utf-8" else _decoded(body, name))


def visible_text(tree: LexborHTMLParser) -> str:
    """Visible text of a tree, at most `MAX_TEXT_BYTES` in UTF-8; empty for a frameset.

    Call it after the links are taken: it removes the invisible elements from the tree, and with noscript its links.
    """
    tree.strip_tags(_INVISIBLE)
    body = tree.body
    return "" if body is None else _capped(body.text(separator=" "))


def title(tree: LexborHTMLParser) -> str | None:
    """The title of a tree with its white space collapsed; None when it has none or an empty one."""
    node = tree.css_first("title")
    return None if node is None else " ".join(node.text().split()) or None


def text_of(body: bytes, content_type: str, charset: str | None) -> Text:
    """Title and text of a body by its type: HTML, XML (all character data), else plain text.

    Parameters
    ----------
    content_type : media type in lower case without parameters; empty counts as HTML
    charset : from the Content-Type header, or None
    """
    if content_type in _HTML_TYPES:
        tree = tree_of(body, charset)
        return Text(title(tree), visible_text(tree))
    if content_type in ("application/xml", "text/xml") or content_type.endswith("+xml"):
        return _xml_text(body, charset)
    return Text(None, _capped(decode(body, charset)))


def decode(body: bytes, charset: str | None) -> str:
    """Body as str by header, byte order mark, meta declaration, else UTF-8; bytes that do not fit become U+FFFD."""
    return _decoded(body, _encoding(body, charset))


def _encoding(body: bytes, charset: str | None) -> str:
    """Python's name of the encoding; w3lib maps the labels as browsers do (latin-1 means windows-1252)."""
    marked = read_bom(body)[0]
    named = resolve_encoding(charset) if charset and marked is None else marked
    return named or html_body_declared_encoding(body) or "utf-8"


def _decoded(body: bytes, name: str) -> str:
    mark = read_bom(body)[1] or b""
    return body[len(mark) :].decode(name, "replace")


def _capped(text: str) -> str:
    """Text that encodes to at most `MAX_TEXT_BYTES`: no lone surrogates, cut between two characters."""
    if len(text) * 4 <= MAX_TEXT_BYTES:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= MAX_TEXT_BYTES else encoded[:MAX_TEXT_BYTES].decode("utf-8", "ignore")


def _xml_text(body: bytes, charset: str | None) -> Text:
    """All character data of an XML document, its first title element as title; broken XML as far as it reads.

    Entities are not resolved and nothing is loaded: a billion laughs stays a joke.
    """
    from lxml import etree  # noqa: PLC0415  (only for the rare XML page)

    parser = etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, encoding=charset and resolve_encoding(charset)
    )
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        return Text(None, _capped(decode(body, charset)))
    found = next((" ".join("".join(node.itertext()).split()) for node in root.iter("{*}title")), None)
    return Text(found or None, _capped(" ".join(root.xpath("//text()"))))
