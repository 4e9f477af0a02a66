"""What stands in a sitemap: URLs with the time of their last change, or further sitemaps. No I/O, no judgement.

Read are sitemaps and indexes (sitemaps.org 0.9), their text form, RSS and Atom feeds; plain or gzip. A sitemap is
somebody else's file: its size, entries and time are bounded, entities are never expanded, and whatever is wrong
with it becomes a word in `error` beside the entries that could be read.

XML that somebody else wrote, read as it streams: no tree, nothing loaded, a bounded number of events. Two things are
read so: the text of an XML page, and sitemaps and feeds. Both give lxml a target, so what a
document holds in memory is what its reader keeps. Before lxml sees a document it is decoded as browsers do and two
flaws are mended that the parser would answer with a loss: a bare ``&``, the commonest flaw of sitemaps, which loses
the name after it, and an emoji written as two surrogates (``&#55357;&#56832;``, how much Java and PHP writes it).
"""

from __future__ import annotations

import codecs
import re
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from webfountain.formats.content_type import decode, xml_encoding_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = [
    "MAX_ELEMENTS",
    "MAX_SITEMAP_BYTES",
    "MAX_SITEMAP_ENTRIES",
    "PIECE_BYTES",
    "HasEntities",
    "SitemapError",
    "SitemapFile",
    "StopReading",
    "XmlText",
    "lastmod_of",
    "pieces_of",
    "read_feed_into",
    "read_into",
    "read_sitemap",
    "xml_text",
]

MAX_ELEMENTS: Final = 1_000_000
"""Four times those of a full sitemap; a document that has more is read so far."""
PIECE_BYTES: Final = 65_536
_MAX_MENDED: Final = 1_000_000
_REFERENCE_CHARS: Final = 64
_BARE_AMPERSAND: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_SURROGATES: Final = re.compile(r"(?:&#(?:[xX]0{0,9}[dD][89A-Fa-f][0-9A-Fa-f]{2}|0{0,9}5[5-7][0-9]{3});)+")
_NUMBER: Final = re.compile(r"&#(?:[xX]([0-9A-Fa-f]+)|([0-9]+));")
_ENTITY: Final = re.compile(r"<!\s*ENTITY", re.IGNORECASE)
_CDATA: Final = "<![CDATA["


class StopReading(Exception):
    """A reader has what it wants, or more than anyone means to give it."""


class HasEntities(Exception):
    """The document defines entities, as no feed or sitemap does that means well."""


def pieces_of(body: bytes) -> Iterator[bytes]:
    """A body in pieces of at most `PIECE_BYTES`."""
    return (body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES))


def read_feed_into(target: Any, pieces: Iterable[bytes]) -> None:
    """As `read_into`, for a sitemap or a feed: a bare ``&`` is mended.

    Raises
    ------
    HasEntities
        when the document defines any.
    StopReading
        when the target raised it, or the document is nothing but flaws.
    """

    def checked() -> Iterator[str]:
        mended, raw = 0, False
        for text in _decoded(pieces, None):
            if _ENTITY.search(text):
                raise HasEntities
            raw = raw or _CDATA in text  # in a CDATA section an ampersand may be one
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
    """Have a document's events called on `target` (lxml's parser target), in order, as far as it can be read.

    `charset` is from the Content-Type header, or None. Raises StopReading when the target does.
    """
    _feed(target, _decoded(pieces, charset))


def _feed(target: Any, texts: Iterable[str]) -> None:
    from lxml import etree  # noqa: PLC0415  no crawl without feeds should pay for it

    parser = etree.XMLParser(
        target=target,
        encoding="utf-8",  # ours: whatever the document says of itself was heeded when it was decoded
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
    """The document as text, cut before a ``<`` where there is one, so that no reference and no declaration is torn."""
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
    """The characters of a run of numeric references to surrogates (or their neighbours, which are themselves)."""
    units = (int(found[1], 16) if found[1] else int(found[2]) for found in _NUMBER.finditer(run[0]))
    return "".join(map(chr, units)).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class XmlText(NamedTuple):
    """Title (None where there is none) and all character data of a document."""

    title: str | None
    text: str


def xml_text(body: bytes, charset: str | None, *, most: int) -> XmlText:
    """The character data of a document, its runs joined with blanks, at most about `most` characters.

    Its first title element is the title; broken XML is read as far as it goes, and what is none at all is plain text.
    Entities of its own stand for what it says, those of a file for nothing; a billion laughs end at `most`.
    """
    found = _Text(most)
    with suppress(StopReading):
        read_into(found, pieces_of(body), charset=charset)
    if not found.elements:
        return XmlText(None, decode(body, charset))
    return XmlText(" ".join("".join(found.title).split()) or None, " ".join(found.runs()))


class _Text:
    """Parser target that keeps character data: runs of it, which every tag, comment and instruction ends."""

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
        """All runs, the last one too if the document ended within it."""
        self._end_run()
        return self._runs

    def _end_run(self) -> None:
        if self._run:
            self._runs.append("".join(self._run))
            self._run.clear()


MAX_SITEMAP_BYTES: Final = 50 * 1024 * 1024
"""sitemaps.org: 50 MB uncompressed; Google's reading of it is MiB."""
MAX_SITEMAP_ENTRIES: Final = 50_000

SitemapError = Literal["bad_gzip", "broken", "entities", "no_sitemap", "too_large", "too_many"]

_ENTRIES: Final = frozenset({"url", "sitemap", "item", "entry"})
_ROOTS: Final = frozenset({"urlset", "sitemapindex", "rss", "feed", "rdf"})
_TIMES: Final = ("lastmod", "updated", "pubdate", "date", "published")
_MAX_FIELD_CHARS: Final = 10_000
_MAX_LINE_BYTES: Final = 10_000
_MAX_LINES: Final = 1_000_000
_GZIP: Final = b"\x1f\x8b"
_SLICE_BYTES: Final = 4_096
_MAX_MEMBERS: Final = 10_000
"""Of one gzip file; packers that make many make one for every 64 KB or so."""
_BLANK: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*")
_YEAR_MONTH: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")


class SitemapFile(NamedTuple):
    """`pages`: (URL as written, UTC seconds of the last change or None); `sitemaps`: those that an index names."""

    pages: list[tuple[str, float | None]]
    sitemaps: list[str]
    error: SitemapError | None = None


def read_sitemap(body: bytes, *, go_on: Callable[[], bool] | None = None) -> SitemapFile:
    """Read any bytes as a sitemap; at most MAX_SITEMAP_ENTRIES entries of MAX_SITEMAP_BYTES.

    It is unpacked, decoded and parsed in pieces: the memory that it takes is that of the entries, and of one piece.
    `go_on` is asked before each piece; once it says no, what was read is all ("too_large").
    """
    unpacked = _Unpacked(body, go_on)
    pieces = iter(unpacked)
    first = next(pieces, b"")
    blank = _BLANK.match(first)
    is_xml = first.startswith((b"<", b"\xff\xfe", b"\xfe\xff", b"\0<"), blank.end() if blank else 0)
    found = (_read_xml if is_xml else _read_lines)(chain([first], pieces))
    if found.error == "entities":
        return SitemapFile([], [], "entities")
    return found if unpacked.error is None else found._replace(error=unpacked.error)


class _Unpacked:
    """The pieces of a body without gzip (all members), as far as it is sound and within the bound.

    `error` is known when all pieces are taken.
    """

    def __init__(self, body: bytes, go_on: Callable[[], bool] | None) -> None:
        self._body = body
        self._go_on = go_on
        self.error: SitemapError | None = None

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._inflated() if self._body.startswith(_GZIP) else self._plain():
            if self._go_on is not None and not self._go_on():
                self.error = "too_large"
                return
            yield piece

    def _plain(self) -> Iterator[bytes]:
        self.error = "too_large" if len(self._body) > MAX_SITEMAP_BYTES else None
        return pieces_of(self._body[:MAX_SITEMAP_BYTES])

    def _inflated(self) -> Iterator[bytes]:
        """Input goes in by small slices, for what follows a member's end is copied: a slice, not the file."""
        room, members, at, left = MAX_SITEMAP_BYTES, 1, 0, b""
        member = zlib.decompressobj(wbits=31)
        while left or at < len(self._body):
            if not left:
                left, at = self._body[at : at + _SLICE_BYTES], at + _SLICE_BYTES
            if member.eof:
                if not (left + self._body[at : at + 1]).startswith(_GZIP):
                    return  # padding
                members += 1
                if members > _MAX_MEMBERS:
                    self.error = "bad_gzip"
                    return
                member = zlib.decompressobj(wbits=31)
            try:
                piece = member.decompress(left, min(room, PIECE_BYTES))
            except zlib.error:
                self.error = "bad_gzip"
                return
            left = member.unused_data if member.eof else member.unconsumed_tail
            if piece:
                room -= len(piece)
                yield piece
                if not room:
                    self.error = "too_large"
                    return
        if not member.eof:
            self.error = "bad_gzip"


def _read_lines(pieces: Iterable[bytes]) -> SitemapFile:
    """The text form: one URL a line. Anything else that is no XML has no URL in it."""
    pages: list[tuple[str, float | None]] = []
    with suppress(StopReading):
        for line in _lines(pieces):
            url = line.decode("utf-8", "replace").strip("\ufeff \t\r\n\f\v")
            if url.startswith(("http://", "https://")):
                pages.append((url, None))
            if len(pages) > MAX_SITEMAP_ENTRIES:
                raise StopReading
    if not pages:
        return SitemapFile([], [], "no_sitemap")
    return _bounded(SitemapFile(pages, []))


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that may be URLs: what is longer than any is left out."""
    rest, many = b"", 0
    for piece in pieces:
        *lines, rest = (rest + piece).replace(b"\r", b"\n").split(b"\n")
        rest = rest if len(rest) <= _MAX_LINE_BYTES else b""
        many += len(lines)
        if many > _MAX_LINES:
            raise StopReading
        yield from (line for line in lines if 0 < len(line) <= _MAX_LINE_BYTES)
    yield rest


def _bounded(found: SitemapFile) -> SitemapFile:
    if len(found.pages) + len(found.sitemaps) <= MAX_SITEMAP_ENTRIES:
        return found
    return SitemapFile(found.pages[:MAX_SITEMAP_ENTRIES], found.sitemaps[:MAX_SITEMAP_ENTRIES], "too_many")


def _read_xml(pieces: Iterable[bytes]) -> SitemapFile:
    entries = _Entries()
    try:
        read_feed_into(entries, pieces)
    except HasEntities:
        return SitemapFile([], [], "entities")
    except StopReading:
        return _bounded(entries.found._replace(error="too_many"))
    if entries.found.pages or entries.found.sitemaps:
        return entries.found
    if entries.root is None:
        return entries.found._replace(error="broken")
    # None yet is in order, a page of HTML is not.
    return entries.found._replace(error=None if entries.root in _ROOTS else "no_sitemap")


class _Entries:
    """Parser target that keeps the URL and time of each entry, which it has from the texts of the entry's children."""

    def __init__(self) -> None:
        self.found = SitemapFile([], [])
        self.root: str | None = None
        self._elements = 0
        self._depth = 0
        self._entry = ""
        self._entry_depth = 0
        self._fields: dict[str, str] = {}
        self._field = ""
        self._text: list[str] = []
        self._room = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise StopReading
        name = tag.rpartition("}")[2]
        if self.root is None:
            self.root = name.lower()
        if not self._entry_depth:
            if name in _ENTRIES:
                self._entry, self._entry_depth, self._fields = name, self._depth, {}
        elif self._depth == self._entry_depth + 1:
            self._field, self._text, self._room = name.lower(), [], _MAX_FIELD_CHARS
            if self._field == "link" and attributes.get("rel", "alternate") == "alternate":
                self._keep("link", attributes.get("href", ""))  # Atom's: of its links the one that leads to the page
        else:
            self._room = 0  # the text of a field is what stands before its own children

    def data(self, text: str) -> None:
        if self._room > 0:
            self._text.append(text[: self._room])
            self._room -= len(text)

    def end(self, tag: str) -> None:
        if self._entry_depth:
            if self._depth == self._entry_depth + 1:
                self._keep(self._field, "".join(self._text))
                self._room = 0
            elif self._depth == self._entry_depth:
                self._entry_depth = 0
                self._take()
        self._depth -= 1

    def close(self) -> None:
        """Nothing is left to do: an entry without an end is none."""

    def _keep(self, name: str, text: str) -> None:
        text = text.strip()
        if text:
            self._fields[name] = text

    def _take(self) -> None:
        """Add one entry's URL and time."""
        fields = self._fields
        url = fields.get("loc") or fields.get("link")
        if not url:
            return
        if self._entry == "sitemap":
            self.found.sitemaps.append(url)
        else:
            # Last words of sitemaps, Atom, RSS 2.0, RSS 1.0 (Dublin Core); an Atom entry may have been published only.
            changed = next((fields[key] for key in _TIMES if key in fields), None)
            self.found.pages.append((url, None if changed is None else lastmod_of(changed)))
        if len(self.found.pages) + len(self.found.sitemaps) > MAX_SITEMAP_ENTRIES:
            raise StopReading


def lastmod_of(text: str) -> float | None:
    """UTC seconds of a W3C date (a year, month or day begins at midnight UTC) or a feed's RFC 822 date; else None."""
    text = text.strip()
    short = _YEAR_MONTH.fullmatch(text)
    try:
        if short:
            when = datetime(int(short[1]), int(short[2] or 1), 1, tzinfo=UTC)
        elif text[:1].isdigit() and text[4:5] == "-":
            when = datetime.fromisoformat(text)
        else:
            when = parsedate_to_datetime(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
