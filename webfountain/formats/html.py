"""The visible text of a page: what changes are judged by, and what a search or RAG index takes in.

A fetched body is parsed once: `tree_of` gives the tree, the frontier takes the links from it, then `visible_text`
takes the text. Nothing here is stored; shingles and verdicts are made from the text in `core`.

The text of an HTML page: script, style, noscript and template removed, the text nodes of body joined with a blank.
It keeps its letters and white space; `core.shingles` lower-cases and splits it.
"""

from __future__ import annotations

__all__ = ["MAX_TEXT_BYTES", "capped", "title", "tree_of", "tree_of_ordinary", "visible_text"]

from selectolax.lexbor import LexborHTMLParser

from webfountain.formats.charset import encoding_of
from webfountain.formats.html_limits import tame

MAX_TEXT_BYTES = 1_000_000
"""A page's text is cut here, in UTF-8 (Edwards 2001, section 2: "up to 1 MB of text of each page")."""

_INVISIBLE = ["script", "style", "noscript", "template"]


def tree_of(body: bytes, charset: str | None) -> LexborHTMLParser:
    """Parse an HTML body, whatever it is: a browser's parser never fails.

    Parameters
    ----------
    charset : from the Content-Type header, or None: then the byte order mark, the meta declaration, else UTF-8
    """
    return LexborHTMLParser(tame(_utf8(body, charset)))


def tree_of_ordinary(body: bytes, charset: str | None) -> LexborHTMLParser:
    """As `tree_of`, for a body that `html_limits.is_ordinary` vouches for: nothing in it needs to be tamed."""
    return LexborHTMLParser(_utf8(body, charset))


def _utf8(body: bytes, charset: str | None) -> bytes:
    """What lexbor reads: it decodes UTF-8 itself, faster than Python does."""
    name, mark = encoding_of(body, charset)
    body = body[mark:] if mark else body
    return body if name == "utf-8" else body.decode(name, "webfountain.browser").encode()


def visible_text(tree: LexborHTMLParser) -> str:
    """Visible text of a tree, at most `MAX_TEXT_BYTES` in UTF-8; empty for a frameset.

    Call it after the links are taken: it removes the invisible elements from the tree, and with noscript its links.
    """
    tree.strip_tags(_INVISIBLE)
    body = tree.body
    return "" if body is None else capped(body.text(separator=" "))


def title(tree: LexborHTMLParser) -> str | None:
    """The title of a tree with its white space collapsed; None when it has none or an empty one."""
    node = tree.css_first("title")
    return None if node is None else " ".join(node.text().split()) or None


def capped(text: str) -> str:
    """Text that encodes to at most `MAX_TEXT_BYTES`: no lone surrogates, cut between two characters."""
    if len(text) * 4 <= MAX_TEXT_BYTES:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= MAX_TEXT_BYTES else encoded[:MAX_TEXT_BYTES].decode("utf-8", "ignore")
