"""Markup that would hold a parser for minutes, made harmless before it is parsed.

lexbor, as other HTML parsers, takes quadratic time in the depth of nesting and in the attributes of one element:
100,000 nested elements 16 s, a million attributes minutes. Depth beyond `MAX_DEPTH` is flattened, as browsers do
(Blink: 512), and the attributes of a tag beyond `MAX_TAG_BYTES` are dropped. Text stays. Small bodies cannot
do harm and are not looked at. Place in the walk: just before `text.tree_of`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_DEPTH", "MAX_TAG_BYTES", "tame"]

MAX_DEPTH: Final = 512
MAX_TAG_BYTES: Final = 8_192
_HARMLESS_BYTES: Final = 65_536
_LONG_TAG: Final = re.compile(rb"<([A-Za-z][^\s/<>]{0,40})[^<>]{%d,}>?" % MAX_TAG_BYTES)
# Elements that never nest by their own tags: void ones, and those whose end tag may be left out.
_FLAT: Final = (
    b"area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr"
    b"|p|li|dd|dt|option|optgroup|td|th|tr|tbody|thead|tfoot"
)
_TAG: Final = re.compile(rb"<(/?)(?!(?:%s)[\s/>])[A-Za-z][^<>]*>?" % _FLAT, re.IGNORECASE)


def tame(body: bytes) -> bytes:
    """The body with nothing in it that a parser would choke on; the same object where there is nothing."""
    if len(body) <= _HARMLESS_BYTES:
        return body
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
