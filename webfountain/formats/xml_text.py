"""Read untrusted XML as a stream, without a tree, without external data, and with a limit on the number of elements.

This module reads XML pages, sitemaps and feeds. Documents are decoded by the same rules as in browsers. Two common
errors are repaired: a bare ``&``, and an emoji written as two surrogates.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webfountain.formats.charset import decode, xml_encoding_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "MAX_ELEMENTS",
    "PIECE_BYTES",
    "HasEntities",
    "StopReading",
    "XmlText",
    "pieces_of",
    "read_feed_into",
    "read_into",
    "xml_text",
]

MAX_ELEMENTS: Final = 1_000_000
"""Maximum number of elements that are read: four times the number in a full sitemap."""
PIECE_BYTES: Final = 65_536
_MAX_MENDED: Final = 1_000_000
_REFERENCE_CHARS: Final = 64
_BARE_AMPERSAND: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_SURROGATES: Final = re.compile(r"(?:&#(?:[xX]0{0,9}[dD][89A-Fa-f][0-9A-Fa-f]{2}|0{0,9}5[5-7][0-9]{3});)+")
_NUMBER: Final = re.compile(r"&#(?:[xX]([0-9A-Fa-f]+)|([0-9]+));")
_ENTITY: Final = re.compile(r"<!\s*ENTITY", re.IGNORECASE)
_CDATA: Final = "<![CDATA["


class StopReading(Exception):
    """Exception that stops the parser, because the caller needs no more data or the document has too many elements."""


class HasEntities(Exception):
    """Exception for a document that defines entities."""


def pieces_of(body: bytes) -> Iterator[bytes]:
    return (body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES))


def read_feed_into(target: Any, pieces: Iterable[bytes]) -> None:
    """Parse a sitemap or a feed as `read_into` does, and repair each bare ``&``.

    Raises
    ------
    HasEntities
        if the document defines any.
    StopReading
        if the target raised it, or the document has too many errors.
    """

    def checked() -> Iterator[str]:
        mended, raw = 0, False
        for text in _decoded(pieces, None):
            if _ENTITY.search(text):
                raise HasEntities
            raw = raw or _CDATA in text  # a bare ampersand is valid in a CDATA section
            if raw or "&" not in text:
                yield text
                continue
            whole, many = _BARE_AMPERSAND.subn("&amp;", text)
            mended += many
            if mended > _MAX_MENDED:
                raise StopReading
            yield whole

    _feed(target, checked())


def read_into(target: Any, pieces: Iterable[bytes], *, charset: str | None) -> None:
    """Parse a document as far as possible, and call lxml's parser `target` for each event.

    `charset` is from the Content-Type header, or None. If `target` raises StopReading, this exception reaches the
    caller.
    """
    _feed(target, _decoded(pieces, charset))


def _feed(target: Any, texts: Iterable[str]) -> None:
    from lxml import etree  # noqa: PLC0415  a crawl without feeds does not need it

    parser = etree.XMLParser(
        target=target,
        encoding="utf-8",  # our own encoding: the document's declaration was already used when it was decoded
        recover=True,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
    )
    try:
        for text in texts:
            parser.feed(text.encode("utf-8", "replace"))
        parser.close()
    except (etree.LxmlError, UnicodeDecodeError):
        return


def _decoded(pieces: Iterable[bytes], charset: str | None) -> Iterator[str]:
    """Yield the document as text. Each piece of text ends before a ``<`` if possible, so that no character reference is
    split."""
    decoder, carry = None, ""
    for piece in pieces:
        if decoder is None:
            name, mark = xml_encoding_of(piece, charset)
            decoder = codecs.getincrementaldecoder(name)("webfountain.browser")
            piece = piece[mark:]  # noqa: PLW2901
        text = carry + decoder.decode(piece)
        cut = text.rfind("<")
        if cut < 1:
            cut = text.find("&", max(1, len(text) - _REFERENCE_CHARS))
            cut = len(text) if cut < 0 else cut
        carry = text[cut:]
        yield _SURROGATES.sub(_joined, text[:cut])
    if decoder is not None:
        yield _SURROGATES.sub(_joined, carry + decoder.decode(b"", True))


def _joined(run: re.Match[str]) -> str:
    """Return the characters that numeric references to surrogate pairs stand for."""
    units = (int(found[1], 16) if found[1] else int(found[2]) for found in _NUMBER.finditer(run[0]))
    return "".join(map(chr, units)).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class XmlText(NamedTuple):
    """The title of an XML document, if any, and all its character data."""

    title: str | None
    text: str


def xml_text(body: bytes, charset: str | None, *, most: int) -> XmlText:
    """Return the title and the character data of a document, joined by blanks, up to about `most` characters.

    The first title element is the title. Broken XML is read as far as possible. A body without elements is read as
    plain text. External entities are dropped.
    """
    found = _Text(most)
    with suppress(StopReading):
        read_into(found, pieces_of(body), charset=charset)
    if not found.elements:
        return XmlText(None, decode(body, charset))
    return XmlText(" ".join("".join(found.title).split()) or None, " ".join(found.runs()))


class _Text:
    """Parser target that collects the character data between tags, comments and processing instructions."""

    def __init__(self, most: int) -> None:
        self.elements = 0
        self.title: list[str] = []
        self._room = most
        self._runs: list[str] = []
        self._run: list[str] = []
        self._depth = 0
        self._title_depth = 0
        self._has_title = False

    def start(self, tag: str, attributes: object) -> None:
        self._end_run()
        self._depth += 1
        self.elements += 1
        if self.elements > MAX_ELEMENTS:
            raise StopReading
        if not self._has_title and tag.rpartition("}")[2] == "title":
            self._has_title, self._title_depth = True, self._depth

    def end(self, tag: str) -> None:
        self._end_run()
        if self._depth == self._title_depth:
            self._title_depth = 0
        self._depth -= 1

    def data(self, text: str) -> None:
        self._run.append(text)
        if self._title_depth:
            self.title.append(text)
        self._room -= len(text)
        if self._room < 0:
            raise StopReading

    def comment(self, text: str) -> None:
        self._end_run()

    def pi(self, target: str, data: str | None) -> None:
        self._end_run()

    def close(self) -> None:
        self._end_run()

    def runs(self) -> list[str]:
        """Return all pieces of character data."""
        self._end_run()
        return self._runs

    def _end_run(self) -> None:
        if self._run:
            self._runs.append("".join(self._run))
            self._run.clear()
