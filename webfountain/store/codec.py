"""Records as bytes: what a store keeps of a page and a site, and numbers whose bytes sort as they do.

Used by every store that keeps bytes. Page records are msgpack arrays that grow by version: a field added at the
end with a default reads old records. It knows nothing of keys, queues or files.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from webfountain.records import PageRecord, SiteState

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


def first_record(link: Link, at: float) -> PageRecord:
    """The record of a page that a link made known at the time `at`."""
    return PageRecord(
        url=link.url,
        policy=link.policy,
        importance=link.importance + 0.0,  # one zero: -0.0 stands with 0.0 in every queue
        first_seen=at,
        depth=link.depth,
        request=link.request,
        trust=link.trust,
    )


def evicted(record: PageRecord) -> PageRecord:
    """The record of a page that was taken out of the collection: what its link said of it, and no more."""
    return PageRecord(
        url=record.url,
        policy=record.policy,
        importance=record.importance,
        first_seen=record.first_seen,
        depth=record.depth,
        request=record.request,
        trust=record.trust,
    )


def to_sortable(number: float) -> bytes:
    """Eight bytes that sort as the number does, from -inf to inf (-0.0 just before 0.0; NaN has no order).

    Big-endian IEEE 754 doubles sort as unsigned integers once the sign bit of positive ones is set and
    negative ones are inverted.
    """
    bits: int = _word.unpack(_double.pack(number))[0]
    return _word.pack(bits ^ _ALL if bits & _SIGN else bits | _SIGN)


def from_sortable(text: bytes) -> float:
    """The number that `to_sortable` made into eight bytes."""
    bits: int = _word.unpack(text)[0]
    number: float = _double.unpack(_word.pack(bits ^ _SIGN if bits & _SIGN else bits ^ _ALL))[0]
    return number
