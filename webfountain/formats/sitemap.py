"""What stands in a sitemap: URLs with the time of their last change, or further sitemaps. No I/O, no judgement.

Read are sitemaps and indexes (sitemaps.org 0.9), their text form, RSS and Atom feeds; plain or gzip. A sitemap is
somebody else's file: its size, entries and time are bounded, entities are never expanded, and whatever is wrong
with it becomes a word in `error` beside the entries that could be read.
"""

from __future__ import annotations

import io
import re
import zlib
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element

__all__ = ["MAX_SITEMAP_BYTES", "MAX_SITEMAP_ENTRIES", "SitemapError", "SitemapFile", "lastmod_of", "read_sitemap"]

MAX_SITEMAP_BYTES: Final = 50 * 1024 * 1024
"""sitemaps.org: 50 MB uncompressed; Google's reading of it is MiB."""
MAX_SITEMAP_ENTRIES: Final = 50_000

SitemapError = Literal["bad_gzip", "broken", "entities", "no_sitemap", "too_large", "too_many"]

_ENTRIES: Final = ("{*}url", "{*}sitemap", "{*}item", "{*}entry")
_TIMES: Final = ("lastmod", "updated", "pubdate", "date", "published")
_GZIP: Final = b"\x1f\x8b"
_BARE_AMPERSAND: Final = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_BLANK: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*")
_YEAR_MONTH: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")
_ENTITY: Final = re.compile(rb"<\0?!\0?E\0?N\0?T\0?I\0?T\0?Y", re.IGNORECASE)


class SitemapFile(NamedTuple):
    """`pages`: (URL as written, UTC seconds of the last change or None); `sitemaps`: those that an index names."""

    pages: list[tuple[str, float | None]]
    sitemaps: list[str]
    error: SitemapError | None = None


def read_sitemap(body: bytes) -> SitemapFile:
    """Read any bytes as a sitemap; at most MAX_SITEMAP_ENTRIES entries of MAX_SITEMAP_BYTES."""
    text, error = _unpacked(body)
    if _ENTITY.search(text):
        return SitemapFile([], [], "entities")
    blank = _BLANK.match(text)
    start = blank.end() if blank else 0
    read = _read_xml if text.startswith((b"<", b"\xff\xfe", b"\xfe\xff", b"\0<"), start) else _read_lines
    found = read(text)
    return found if error is None else found._replace(error=error)


def _unpacked(body: bytes) -> tuple[bytes, SitemapError | None]:
    """The body without gzip (all members), as far as it is sound and within the bound."""
    if not body.startswith(_GZIP):
        return body[:MAX_SITEMAP_BYTES], "too_large" if len(body) > MAX_SITEMAP_BYTES else None
    parts: list[bytes] = []
    room = MAX_SITEMAP_BYTES
    while body.startswith(_GZIP):
        member = zlib.decompressobj(wbits=31)
        try:
            parts.append(member.decompress(body, room))
        except zlib.error:
            return b"".join(parts), "bad_gzip"
        room -= len(parts[-1])
        if not member.eof:
            return b"".join(parts), "bad_gzip" if room else "too_large"
        if not room:
            break  # decompress would take 0 as no bound
        body = member.unused_data
    # A single part is joined without a copy.
    return b"".join(parts), None


def _read_lines(text: bytes) -> SitemapFile:
    """The text form: one URL a line. Anything else that is no XML has no URL in it."""
    lines = (line.strip() for line in text.decode("utf-8-sig", errors="replace").splitlines())
    pages: list[tuple[str, float | None]] = [(line, None) for line in lines if line.startswith(("http://", "https://"))]
    if not pages:
        return SitemapFile([], [], "no_sitemap")
    return _bounded(SitemapFile(pages[: MAX_SITEMAP_ENTRIES + 1], []))


def _bounded(found: SitemapFile) -> SitemapFile:
    if len(found.pages) + len(found.sitemaps) <= MAX_SITEMAP_ENTRIES:
        return found
    return SitemapFile(found.pages[:MAX_SITEMAP_ENTRIES], found.sitemaps[:MAX_SITEMAP_ENTRIES], "too_many")


def _read_xml(text: bytes) -> SitemapFile:
    from lxml import etree  # noqa: PLC0415  Scrapy's own, but no crawl without sitemaps should pay for it

    found = SitemapFile([], [])
    # The commonest flaw of sitemaps is a bare & in a URL; the parser would forgive it and drop the name after it.
    if b"<![CDATA[" not in text and b"\0" not in text[:4]:
        text = _BARE_AMPERSAND.sub(b"&amp;", text) if _BARE_AMPERSAND.search(text) else text
    events = etree.iterparse(
        io.BytesIO(text),
        events=("end",),
        tag=_ENTRIES,
        recover=True,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
    )
    try:
        for _, element in events:
            _take(element, found)
            _drop(element)
            if len(found.pages) + len(found.sitemaps) > MAX_SITEMAP_ENTRIES:
                return _bounded(found)
    except etree.LxmlError:
        return found._replace(error="broken")
    if found.pages or found.sitemaps:
        return found
    return found._replace(error=_emptiness(events.root))


def _emptiness(root: _Element | None) -> SitemapError | None:
    """Why there are no entries: none yet is in order, a page of HTML is not."""
    if root is None:
        return "broken"
    return None if _name(root) in ("urlset", "sitemapindex", "rss", "feed", "rdf") else "no_sitemap"


def _name(element: _Element) -> str:
    return str(element.tag).rpartition("}")[2].lower()


def _drop(element: _Element) -> None:
    """Forget what was read, or the tree of a 50 MB file stays in memory."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _take(element: _Element, found: SitemapFile) -> None:
    """Add one entry's URL and time."""
    fields = dict(_fields(element))
    url = fields.get("loc") or fields.get("link")
    if not url:
        return
    if _name(element) == "sitemap":
        found.sitemaps.append(url)
        return
    # Last words of sitemaps, Atom, RSS 2.0, RSS 1.0 (Dublin Core); an Atom entry may have been published only.
    changed = next((fields[key] for key in _TIMES if key in fields), None)
    found.pages.append((url, None if changed is None else lastmod_of(changed)))


def _fields(element: _Element) -> Iterator[tuple[str, str]]:
    """Name and text of an entry's own children; of Atom's links the one that leads to the page."""
    for child in element:
        if not isinstance(child.tag, str):
            continue
        name, text = _name(child), (child.text or "").strip()
        if name == "link" and not text and child.get("rel", "alternate") == "alternate":
            text = (child.get("href") or "").strip()
        if text:
            yield name, text


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
