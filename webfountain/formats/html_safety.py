"""Protect the HTML parser from markup that takes minutes or gigabytes.

Three kinds of markup can keep an HTML parser busy for minutes:

- Each paragraph reopens the formatting elements that were not closed. 20 kB of ``<b 1><b 2>…<p>x<p>x`` make a gigabyte.
- Each tag is compared with all open elements.
- Each attribute is compared with all earlier attributes of its tag.

`is_ordinary_markup` checks in linear time that a body cannot keep the parser busy for long. Bodies that fail the check
are parsed in a process that can be killed (`webfountain.sandbox`). Before parsing, `tame` removes the worst markup.
`tame` drops tags of elements that are nested deeper than `MAX_DEPTH`, and the attributes of tags longer than
`MAX_TAG_BYTES`.

`is_ordinary_markup` and `tame` work only for encodings such as UTF-8, in which the byte ``<`` always means ``<``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_DEPTH", "MAX_ORDINARY_BYTES", "MAX_TAG_BYTES", "is_ordinary_markup", "tame"]

MAX_ORDINARY_BYTES: Final = 65_536
"""Maximum size of a body that may be parsed in the calling thread, bytes."""
_MOST_TAGS: Final = 2_000
"""Maximum number of tags in a body that is parsed in the calling thread. At each tag, the parser may search all open
elements. For 2,000 tags this takes 10 ms."""
_MOST_REOPENED: Final = 30_000
"""Maximum product of the number of tags and the number of formatting tags with attributes, such as ``<b class=x>``. The
parser may create as many elements as this product, each in 0.5 µs. Formatting tags without attributes are harmless,
because the parser reopens at most three equal elements."""
_FEW_TAGS: Final = 300
"""A body with at most this number of tags cannot make the parser create `_MOST_REOPENED` elements."""
_SHORT_TAG_BYTES: Final = 2_048
"""Maximum length of a tag in a body larger than `_HARMLESS_TAG_BYTES`, bytes. Tags of this length in a body of 64 kB
take 20 ms, because the parser compares all attributes of a tag with each other.
"""
_HARMLESS_TAG_BYTES: Final = 12_288
"""Bodies up to this size, in bytes, are not searched for long tags, because even a tag of this size takes at most 20
ms."""
_FORMATTING: Final = re.compile(
    rb"<[bcefinstuBCEFINSTU](?:(?<=[bB])[iI][gG]|[oO](?:[dD][eE]|[nN][tT]|[bB][rR])|[mM](?:[aA][lL][lL])?"
    rb"|[tT](?:[rR][iI][kK][eE]|[rR][oO][nN][gG])?)?[\s/][^>]*+"
)
"""Pattern of start tags with attributes, for formatting elements such as b, code or font. The pattern omits ``a``,
because the parser never keeps two elements ``a`` open."""
_TAG_START: Final = re.compile(rb"<[A-Za-z]")
_GREATER_IN_QUOTES: Final = re.compile(rb"=\s*+(?:\"[^\">]*+>|'[^'>]*+>)")
_GREATER_IN_APOSTROPHES: Final = re.compile(rb"=\s*+'[^'>]*+>")
_BEFORE_VALUE: Final = frozenset(b"= \t\n\v\f\r")
"""Characters after which a quote opens the value of an attribute."""

MAX_DEPTH: Final = 512
MAX_TAG_BYTES: Final = 8_192
_LONG_TAG: Final = re.compile(rb"<([A-Za-z][^\s/<>]{0,40})[^<>]{%d,}>?" % MAX_TAG_BYTES)
# Elements that are never nested in themselves: void elements, and those whose end tag is optional.
_FLAT: Final = (
    b"area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|p|li|dd|dt|option|td|th|tr|tbody|thead|tfoot"
)
_TAG: Final = re.compile(rb"<(/?)(?!(?:%s)[\s/>])[A-Za-z][^<>]*>?" % _FLAT, re.IGNORECASE)


def is_ordinary_markup(body: bytes) -> bool:
    """Return whether the parser is sure to need at most about 20 ms and 20 MB for a body.

    If the result is False, the body may still be harmless.
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
    # The parser keeps at most three equal elements open. Tags count as equal if they are equal up to the first ">",
    # unless that ">" is quoted.
    return tags * 3 * len(set(formatting)) <= _MOST_REOPENED and _GREATER_IN_QUOTES.search(body) is None


def _has_short_tags(body: bytes) -> bool:
    """Return whether every tag is shorter than `_SHORT_TAG_BYTES`.

    The function searches for ``">``, the end of nearly every tag, which is fast. Long parts of the body without ``">``
    are examined tag by tag.
    """
    # `">` does not end a tag inside a value that an apostrophe opened, nor where the quote opens a value.
    if b"'" in body and _GREATER_IN_APOSTROPHES.search(body) is not None:
        return False
    at = 0
    while at + _SHORT_TAG_BYTES < len(body):
        end = body.rfind(b'">', at + 1, at + _SHORT_TAG_BYTES)
        if end < 0 or body[end - 1] in _BEFORE_VALUE:
            end = body.find(b'">', at + _SHORT_TAG_BYTES)
            while end >= 0 and body[end - 1] in _BEFORE_VALUE:
                end = body.find(b'">', end + 1)
            end = len(body) if end < 0 else end + 2
            if not _has_only_short_tags(body, at, end):
                return False
            end -= 1
        at = end + 1
    return True


def _has_only_short_tags(body: bytes, at: int, last: int) -> bool:
    """Return whether every tag between two positions is shorter than `_SHORT_TAG_BYTES`."""
    if _GREATER_IN_QUOTES.search(body, at, last) is not None:
        return False
    while at + _SHORT_TAG_BYTES < last:
        end = body.rfind(b">", at, at + _SHORT_TAG_BYTES)
        if end < 0:  # a long text, script or tag
            end = body.find(b">", at, last)
            end = last if end < 0 else end
            tag = _TAG_START.search(body, at, end)
            if tag is not None and end - tag.start() > _SHORT_TAG_BYTES:
                return False
        at = end + 1
    return True


def tame(body: bytes) -> bytes:
    """Return the body without markup that would overload a parser. A harmless body is returned unchanged."""
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
    """Return the positions of tags that open or close an element deeper than `MAX_DEPTH`."""
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
