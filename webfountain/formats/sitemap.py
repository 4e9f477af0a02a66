"""Read a sitemap: URLs with the times of their last changes, or further sitemaps.

Sitemaps and indexes (sitemaps.org 0.9), their text form, and RSS and Atom feeds are accepted, plain or gzip. Sitemaps
are untrusted, so size, entries and time are limited, and entities are never expanded. If an error occurs, the result
has the entries before the error, and `error` names the error.
"""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from webfountain.formats.xml_text import MAX_ELEMENTS, PIECE_BYTES, HasEntities, StopReading, pieces_of, read_feed_into

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = [
    "MAX_SITEMAP_BYTES",
    "MAX_SITEMAP_ENTRIES",
    "SMALL_SITEMAP_BYTES",
    "SitemapError",
    "SitemapFile",
    "is_small_sitemap",
    "lastmod_of",
    "read_sitemap",
]

MAX_SITEMAP_BYTES: Final = 50 * 1024 * 1024
"""Maximum size of an uncompressed sitemap, bytes."""
MAX_SITEMAP_ENTRIES: Final = 50_000
SMALL_SITEMAP_BYTES: Final = 8_192
"""Maximum size of an uncompressed sitemap that is sure to be read within milliseconds, bytes."""

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
"""Maximum number of gzip members in a file. Some programs write a new gzip member for every 64 kB."""
_BLANK: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*")
_YEAR_MONTH: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")


class SitemapFile(NamedTuple):
    """The content of a sitemap. `pages`: URLs as written, each with the time of its last change in UTC seconds, or
    None. `sitemaps`: the sitemap URLs that a sitemap index lists."""

    pages: list[tuple[str, float | None]]
    sitemaps: list[str]
    error: SitemapError | None = None


def read_sitemap(body: bytes, *, go_on: Callable[[], bool] | None = None) -> SitemapFile:
    """Read any bytes as a sitemap, at most `MAX_SITEMAP_ENTRIES` entries in `MAX_SITEMAP_BYTES`.

    The body is read in pieces, to save memory. `go_on` is called before each piece of the body is read. If `go_on`
    returns False, the result has the error "too_large".
    """
    unpacked = _DecompressedBody(body, go_on)
    pieces = iter(unpacked)
    first = next(pieces, b"")
    blank = _BLANK.match(first)
    is_xml = first.startswith((b"<", b"\xff\xfe", b"\xfe\xff", b"\0<"), blank.end() if blank else 0)
    found = (_read_xml if is_xml else _read_lines)(chain([first], pieces))
    if found.error == "entities":
        return SitemapFile([], [], "entities")
    return found if unpacked.error is None else found._replace(error=unpacked.error)


def is_small_sitemap(body: bytes) -> bool:
    """Return whether `read_sitemap` is sure to read a body, plain or compressed, within milliseconds."""
    if len(body) > SMALL_SITEMAP_BYTES or not body.startswith(_GZIP):
        return len(body) <= SMALL_SITEMAP_BYTES
    member = zlib.decompressobj(wbits=31)
    with suppress(zlib.error):
        member.decompress(body, SMALL_SITEMAP_BYTES)
    return member.eof and not member.unused_data


class _DecompressedBody:
    """Iterator over the pieces of a decompressed body, up to the size limit.

    `error` has its final value after the last piece.
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
        """Decompress the body in small slices, because zlib copies all data that follow a gzip member."""
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
    """Read a sitemap in text form, which has one URL per line."""
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
    """Yield the lines that may be URLs."""
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
    # A file without entries is an error only if it is HTML.
    return entries.found._replace(error=None if entries.root in _ROOTS else "no_sitemap")


class _Entries:
    """Parser target that collects the URL and the time of each entry."""

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
                self._keep("link", attributes.get("href", ""))  # the text of a field ends where its first child starts
        else:
            self._room = 0  # the text of a field ends where its first child starts

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
        """Do nothing: an entry without an end tag is ignored."""

    def _keep(self, name: str, text: str) -> None:
        text = text.strip()
        if text:
            self._fields[name] = text

    def _take(self) -> None:
        """Add the URL and time of one entry."""
        fields = self._fields
        url = fields.get("loc") or fields.get("link")
        if not url:
            return
        if self._entry == "sitemap":
            self.found.sitemaps.append(url)
        else:
            # Names of times in sitemaps, Atom, RSS 2.0 and RSS 1.0 (Dublin Core). An Atom entry may have only a
            # publication time.
            changed = next((fields[key] for key in _TIMES if key in fields), None)
            self.found.pages.append((url, None if changed is None else lastmod_of(changed)))
        if len(self.found.pages) + len(self.found.sitemaps) > MAX_SITEMAP_ENTRIES:
            raise StopReading


def lastmod_of(text: str) -> float | None:
    """Return the UTC seconds of a W3C date or a feed's RFC 822 date, or None for any other text."""
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
