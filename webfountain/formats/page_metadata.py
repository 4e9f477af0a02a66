"""Extract the metadata in a page: title, description, language, author, times, kind, canonical URL.

If sources differ, the first of these wins: JSON-LD, OpenGraph, meta elements, ``time`` elements, the document itself.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.formats.sitemap import lastmod_of
from webfountain.urls import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborHTMLParser

__all__ = ["PageMetadata", "kept_metadata", "metadata_of", "warc_fields"]

Source = str
_MAX_JSON_BYTES: Final = 200_000
_MAX_TEXT: Final = 1000
_ARTICLE_KINDS: Final = re.compile(
    r"(?:news)?article|blogposting|reportage.*|recipe|product|faqpage|howto|videoobject|event|jobposting|webpage|"
    r"techarticle|qapage|discussionforumposting|book|course|dataset",
    re.IGNORECASE,
)
_META: Final = {
    "title": ("og:title", "twitter:title", "dc.title"),
    "description": ("og:description", "description", "twitter:description", "dc.description"),
    "author": ("article:author", "author", "dc.creator", "parsely-author", "citation_author"),
    "published": ("article:published_time", "datepublished", "dc.date", "date", "pubdate", "citation_publication_date"),
    "modified": ("article:modified_time", "og:updated_time", "datemodified", "last-modified", "dcterms.modified"),
    "kind": ("og:type",),
    "language": ("og:locale", "content-language", "dc.language"),
}
_JSON: Final = {
    "title": ("headline", "name"),
    "description": ("description",),
    "author": ("author", "creator"),
    "published": ("datePublished", "uploadDate"),
    "modified": ("dateModified",),
    "language": ("inLanguage",),
}


class PageMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """Metadata that a page gives about itself. Times are UTC seconds."""

    title: str | None = None
    description: str | None = None
    language: str | None = None
    author: str | None = None
    published: float | None = None
    modified: float | None = None
    kind: str | None = None
    canonical: str | None = None
    sources: dict[str, Source] = {}


def kept_metadata(data: bytes) -> PageMetadata | None:
    """Decode the metadata in a page's record, or return None if they are missing or unreadable."""
    try:
        return msgspec.msgpack.decode(data, type=PageMetadata) if data else None
    except msgspec.DecodeError:
        return None


def warc_fields(data: bytes) -> list[tuple[str, str]]:
    """Return the metadata of a page's record as fields of a WARC metadata record."""
    found = kept_metadata(data)
    if found is None or not found.sources:
        return []
    values = {name: value for name in found.sources if (value := getattr(found, name, None)) is not None}
    fields = [(f"page-{name}", _spelled(value)) for name, value in values.items()]
    return [*fields, ("page-sources", ", ".join(f"{name} {source}" for name, source in found.sources.items()))]


def _spelled(value: str | float) -> str:
    """Return a value as text. Times are written in ISO 8601."""
    if isinstance(value, str):
        return value
    try:
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return str(value)


def metadata_of(tree: LexborHTMLParser, url: str) -> PageMetadata:
    """Return the metadata of a parsed page at `url`. Call this function before the text is extracted, because the
    extraction removes parts of the tree."""
    found: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for name, value, source in _claims(tree, url):
        cleaned = lastmod_of(value) if name in ("published", "modified") else _clean(value)
        if cleaned is not None and name not in found:
            found[name], sources[name] = cleaned, source
    return PageMetadata(**found, sources=sources)


def _claims(tree: LexborHTMLParser, url: str) -> Iterator[tuple[str, str, Source]]:
    """Yield metadata as (name, value, source), the most trusted source first."""
    for thing in _json_ld(tree):
        yield from _of_thing(thing)
    metas = _metas(tree)
    for name, keys in _META.items():
        for key in keys:
            if key in metas:
                yield name, metas[key], "opengraph" if ":" in key else "meta"
    for node in tree.css("time[datetime]")[:5]:
        is_change = "mod" in (node.attributes.get("itemprop") or node.attributes.get("class") or "").lower()
        yield "modified" if is_change else "published", node.attributes.get("datetime") or "", "time"
    if (title := tree.css_first("title")) is not None:
        yield "title", title.text(), "document"
    if tree.root is not None and (language := tree.root.attributes.get("lang")):
        yield "language", language, "document"
    link = tree.css_first("link[rel=canonical]")
    if link is not None and (target := join(url, link.attributes.get("href") or "")) is not None:
        yield "canonical", target, "document"


def _json_ld(tree: LexborHTMLParser) -> Iterator[dict[str, Any]]:
    """Yield the JSON-LD objects whose type describes the page itself."""
    for node in tree.css('script[type="application/ld+json"]')[:10]:
        text = node.text(deep=True).strip()
        if len(text) > _MAX_JSON_BYTES:
            continue
        try:
            data = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            continue
        things = data if isinstance(data, list) else [data]
        things = [
            each for thing in things if isinstance(thing, dict) for each in (thing, *_listed(thing.get("@graph")))
        ]
        yield from (thing for thing in things if _ARTICLE_KINDS.fullmatch(_kind(thing)))


def _listed(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _kind(thing: dict[str, Any]) -> str:
    kind = thing.get("@type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    return kind if isinstance(kind, str) else ""


def _of_thing(thing: dict[str, Any]) -> Iterator[tuple[str, str, Source]]:
    yield "kind", _kind(thing), "json-ld"
    for name, keys in _JSON.items():
        for key in keys:
            value = thing.get(key)
            value = value[0] if isinstance(value, list) and value else value
            value = value.get("name") if isinstance(value, dict) else value
            if isinstance(value, str):
                yield name, value, "json-ld"


def _metas(tree: LexborHTMLParser) -> dict[str, str]:
    """Return the content of the first meta element of each name, by lower-case name."""
    found: dict[str, str] = {}
    for node in tree.css("meta[content]"):
        attributes = node.attributes
        name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
        found.setdefault((name or attributes.get("http-equiv") or "").lower(), attributes.get("content") or "")
    return found


def _clean(value: str) -> str | None:
    return " ".join(value.split())[:_MAX_TEXT] or None
