"""Which markup a parser takes in its stride, and what is done to the rest so that most of it can still be read.

An HTML parser does more than linear work, all of it as the standard says: each paragraph opens again the formatting
elements that were left open (20 kB of ``<b 1><b 2>…<p>x<p>x`` are a gigabyte), every tag walks up the open elements,
every attribute is compared with those before it. `is_ordinary` is a linear look that bounds all three, whatever the
body is; what it does not vouch for is parsed by a process that can be ended (`webfountain.sandbox`), where `tame`
comes first: depth beyond `MAX_DEPTH` is flattened, as browsers do (Blink: 512), and the attributes of a tag beyond
`MAX_TAG_BYTES` are dropped, so that what is only odd keeps its text.

Both work on bytes in which a ``<`` is one: UTF-8, or any encoding but UTF-16 and those that shift.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_DEPTH", "MAX_ORDINARY_BYTES", "MAX_TAG_BYTES", "is_ordinary", "tame"]

MAX_ORDINARY_BYTES: Final = 65_536
"""Of a body that may be parsed where everything else waits for it."""
_MOST_TAGS: Final = 2_000
"""Each may walk up all the others: at 2,000 that is 10 ms."""
_MOST_REOPENED: Final = 30_000
"""Tags times formatting elements with attributes: about as many elements the parser makes, at 0.5 µs each. Without
attributes no more than three of each of the thirteen are ever opened again (the standard's Noah's Ark clause)."""
_FEW_TAGS: Final = 300
"""Whatever these are, half of them times the other half is less than `_MOST_REOPENED`."""
_SHORT_TAG_BYTES: Final = 2_048
"""Attributes are compared pairwise: 64 kB of tags of this size take 20 ms."""
_HARMLESS_TAG_BYTES: Final = 12_288
"""A single tag of this size takes 20 ms."""
_FORMATTING: Final = re.compile(
    rb"<[bcefinstuBCEFINSTU](?:(?<=[bB])[iI][gG]|[oO](?:[dD][eE]|[nN][tT]|[bB][rR])|[mM](?:[aA][lL][lL])?"
    rb"|[tT](?:[rR][iI][kK][eE]|[rR][oO][nN][gG])?)?[\s/][^>]*+"
)
"""A start tag of b, big, code, em, font, i, nobr, s, small, strike, strong, tt or u that has attributes. An ``a`` is
none: the parser never keeps two of them open."""
_TAG_START: Final = re.compile(rb"<[A-Za-z]")
_GREATER_IN_QUOTES: Final = re.compile(rb"=\s*+(?:\"[^\">]*+>|'[^'>]*+>)")

MAX_DEPTH: Final = 512
MAX_TAG_BYTES: Final = 8_192
_LONG_TAG: Final = re.compile(rb"<([A-Za-z][^\s/<>]{0,40})[^<>]{%d,}>?" % MAX_TAG_BYTES)
# Elements that never nest by their own tags: void ones, and those whose end tag may be left out.
_FLAT: Final = (
    b"area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|p|li|dd|dt|option|td|th|tr|tbody|thead|tfoot"
)
_TAG: Final = re.compile(rb"<(/?)(?!(?:%s)[\s/>])[A-Za-z][^<>]*>?" % _FLAT, re.IGNORECASE)


def is_ordinary(body: bytes) -> bool:
    """Whether parsing a body takes at most about 20 ms and 20 MB, whatever it holds.

    Sound, not complete: what it refuses is mostly harmless. It costs some 20 µs for a page of 20 kB.
    """
    if len(body) > MAX_ORDINARY_BYTES:
        return False
    tags = body.count(b"<")
    if tags > _MOST_TAGS or (len(body) > _HARMLESS_TAG_BYTES and not _has_short_tags(body)):
        return False
    if tags <= _FEW_TAGS:
        return True
    formatting = _FORMATTING.findall(body)
    if tags * len(formatting) <= _MOST_REOPENED:
        return True
    # Of equal ones three are kept open; what looks equal up to the first ">" is, unless that stands in quotes.
    return tags * 3 * len(set(formatting)) <= _MOST_REOPENED and _GREATER_IN_QUOTES.search(body) is None


def _has_short_tags(body: bytes) -> bool:
    """Whether no tag can be longer than `_SHORT_TAG_BYTES`: between two ``>``, none of them part of a value."""
    at = 0
    while at + _SHORT_TAG_BYTES < len(body):
        end = body.rfind(b">", at, at + _SHORT_TAG_BYTES)
        if end < 0:  # a long text, script or tag
            end = body.find(b">", at)
            end = len(body) if end < 0 else end
            tag = _TAG_START.search(body, at, end)
            if tag is not None and end - tag.start() > _SHORT_TAG_BYTES:
                return False
        at = end + 1
    return _GREATER_IN_QUOTES.search(body) is None


def tame(body: bytes) -> bytes:
    """The body with nothing in it that a parser would choke on; the same object where there is nothing."""
    if max(map(len, body.split(b"<"))) > MAX_TAG_BYTES:
        body = _LONG_TAG.sub(rb"<\1>", body)
    if body.count(b"<") <= MAX_DEPTH:
        return body
    return _flattened(body)


def _flattened(body: bytes) -> bytes:
    spans = list(_too_deep(body))
    if not spans:
        return body
    kept, at = [], 0
    for start, end in spans:
        kept.append(body[at:start])
        at = end
    return b"".join([*kept, body[at:]])


def _too_deep(body: bytes) -> Iterator[tuple[int, int]]:
    """Where the tags are that open, or close, an element deeper than `MAX_DEPTH`."""
    depth = 0
    for tag in _TAG.finditer(body):
        if tag[1]:
            deep = depth > MAX_DEPTH
            depth = max(0, depth - 1)
        else:
            depth += 1
            deep = depth > MAX_DEPTH
        if deep:
            yield tag.span()
