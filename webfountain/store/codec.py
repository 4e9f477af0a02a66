"""The encoding of page and site records as bytes, and of numbers as bytes that sort in the same order.

Page records are msgpack arrays. A new field is added at the end with a default, so that old records can still be read.
"""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING

import msgspec

from webfountain.policy.provenance import Provenance
from webfountain.records import PageRecord, SiteState
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from webfountain.records import Link

__all__ = [
    "decode_page",
    "decode_state",
    "encode_page",
    "encode_state",
    "evicted",
    "first_record",
    "from_sortable",
    "source_of",
    "taken_over",
    "to_sortable",
]

_encoder = msgspec.msgpack.Encoder()
_page = msgspec.msgpack.Decoder(PageRecord)
_state = msgspec.msgpack.Decoder(SiteState)
_double = struct.Struct(">d")
_word = struct.Struct(">Q")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1

encode_page = _encoder.encode
decode_page = _page.decode
encode_state = _encoder.encode
decode_state = _state.decode


def source_of(link: Link) -> bytes:
    """Return the page that contains a link, encoded for `PageRecord.source`; b"" for seeds and sitemaps."""
    if not link.source:
        return b""
    home, key = _named(link.source)
    return key if home == link.site else key + home.encode()


@functools.lru_cache(maxsize=256)
def _named(url: str) -> tuple[str, bytes]:
    return site_of(url), fingerprint(url)


def first_record(link: Link, at: float) -> PageRecord:
    """Return the first record of a page, which was found through a link at the time `at`."""
    return PageRecord(
        url=link.url,
        policy=link.policy,
        importance=link.importance + 0.0,  # + 0.0 turns -0.0 into 0.0, so both have the same place in every queue
        first_seen=at,
        depth=link.depth,
        request=link.request,
        trust=link.trust,
        source=source_of(link),
        scores=link.scores,
        provenance=link.provenance,
        hops=link.hops,
    )


def taken_over(record: PageRecord, link: Link, *, at: float) -> PageRecord:
    """Return the record of a known page under the policy of a link; `at` is the current time."""
    provenance = Provenance.decode(link.provenance).because("conflict", at=at)
    return msgspec.structs.replace(
        record,
        policy=link.policy,
        trust=link.trust,
        importance=link.importance + 0.0 if record.state == "never-crawled" else record.importance,
        source=source_of(link),
        scores=link.scores if record.state == "never-crawled" else record.scores,
        provenance=provenance.encode(),
    )


def evicted(record: PageRecord) -> PageRecord:
    """Return the record of a page that was removed from the collection: it keeps only the values that came from
    links."""
    return PageRecord(
        url=record.url,
        policy=record.policy,
        importance=record.importance,
        first_seen=record.first_seen,
        depth=record.depth,
        request=record.request,
        trust=record.trust,
        source=record.source,
        scores=record.scores[:1],  # keeps the similarity to the topic, drops the distance in links
        provenance=record.provenance,
        hops=record.hops,
    )


def to_sortable(number: float) -> bytes:
    """Return eight bytes that sort like the number, from -inf to inf (-0.0 just before 0.0; NaN has no order).

    Big-endian IEEE 754 doubles sort like unsigned integers if the sign bit of positive numbers is set and all bits of
    negative numbers are inverted.
    """
    bits: int = _word.unpack(_double.pack(number))[0]
    return _word.pack(bits ^ _ALL if bits & _SIGN else bits | _SIGN)


def from_sortable(text: bytes) -> float:
    """Return the number that `to_sortable` encoded in eight bytes."""
    bits: int = _word.unpack(text)[0]
    number: float = _double.unpack(_word.pack(bits ^ _SIGN if bits & _SIGN else bits ^ _ALL))[0]
    return number
