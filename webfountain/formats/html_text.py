"""Extract the visible text of a page, which the crawl compares to detect changes.

A body is parsed only once, and the links are read from the tree before the text.

The text consists of all text in the body element except script, style, noscript and template.
"""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from webfountain.formats.charset import encoding_of
from webfountain.formats.html_safety import tame

__all__ = ["MAX_TEXT_BYTES", "capped", "title_of", "tree_of", "utf8", "visible_text"]

MAX_TEXT_BYTES = 1_000_000
"""Maximum size of a page's text in UTF-8, bytes. Longer texts are cut (Edwards 2001, section 2: "up to 1 MB of text of
each page")."""

_INVISIBLE = ["script", "style", "noscript", "template"]


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
    """Return the visible text of a tree, at most `MAX_TEXT_BYTES` in UTF-8.

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
