"""A page as the bytes of one hash field: what the scripts must know of it in front, the rest as msgpack.

The layout is told in `lua/prelude.lua`, the only other place that knows it. Memory is what a shared store has least of,
so the site's name is left out of the URL, a digest is 20 bytes, and fields at the end that have their defaults are
not written. Fields that a later version adds to `PageRecord` stand last and read as their defaults in old values.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final, NamedTuple

import msgspec

from webfountain.records import STATES, Copy, PageRecord
from webfountain.store.contract import class_of, lane_of, order_of
from webfountain.store.counting import last_crawled_ms

__all__ = ["FIRST_LANE", "Place", "decode_value", "encode_body", "encode_copy", "encode_page", "never_lane"]

FIRST_LANE: Final = 65
"""Number of the recrawl queue's first lane: 0 is the immediate one, 1 to 64 are the classes of the never-crawled."""
_IN_FRONT: Final = frozenset({"state", "due", "copy", "immediate"})
_ORDER: Final = ("url", "depth", "importance", "policy", "request", "scores", "first_seen")
"""What a never-crawled page has, so that all that follows is left out."""
_FIELDS: Final = (*_ORDER, *(f for f in PageRecord.__struct_fields__ if f not in _IN_FRONT and f not in _ORDER))
_RECORD: Final = PageRecord.__struct_fields__
_DEFAULTS: Final = PageRecord(url="")
_HEAD: Final = struct.Struct(">BHd")
_CRAWLED: Final = struct.Struct(">Bd")
_DOUBLE: Final = struct.Struct(">d")
_COPY: Final = struct.Struct(">IQIH")
_EXACT: Final = 2**53
_HAS_DUE: Final = 8
_HAS_COPY: Final = 16
_CRAWLED_STATE: Final = STATES.index("crawled")
_DIGEST: Final = _FIELDS.index("digest")
_BUCKET: Final = _FIELDS.index("bucket")
_FIRST_SEEN: Final = _FIELDS.index("first_seen")

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Any]).decode


class Place(NamedTuple):
    """Where a page stands in its site's queues: number of the lane, order within it."""

    lane: int
    order: float


def never_lane(importance: float) -> int:
    """The lane of a never-crawled page."""
    return 1 + class_of(importance)


def encode_copy(copy: Copy | None) -> bytes | None:
    """The place of a body as the scripts compare it."""
    return None if copy is None else _COPY.pack(copy.file, copy.offset, copy.length, copy.repository)


def encode_body(site: str, record: PageRecord) -> bytes:
    """All of a record that the scripts need not know."""
    fields = [getattr(record, name) for name in _FIELDS]
    if record.url.startswith(site + "/"):
        fields[0] = record.url[len(site) :]
    if record.digest is not None and len(record.digest) == 40:
        fields[_DIGEST] = bytes.fromhex(record.digest)
    # What stands in front is not written twice.
    if record.state == "crawled":
        fields[_BUCKET] = _DEFAULTS.bucket
    elif record.state == "never-crawled":
        fields[_FIRST_SEEN] = _DEFAULTS.first_seen
    last = len(fields)
    while last > 1 and fields[last - 1] == getattr(_DEFAULTS, _FIELDS[last - 1]):
        last -= 1
    # A whole number is one to five bytes where a double is nine, and reads back as the same time or weight.
    return _encode([_shortest(each) for each in fields[:last]])


def _shortest(field: Any) -> Any:
    """A whole number as an integer, but for -0.0, which none is."""
    if not isinstance(field, float) or not field.is_integer() or abs(field) >= _EXACT:
        return field
    whole = int(field)
    return whole if whole or math.copysign(1.0, field) > 0 else field


def encode_page(site: str, record: PageRecord) -> list[Any]:
    """A tried page as `lua/settle.lua` takes it; its `immediate` place is over."""
    lane = FIRST_LANE + lane_of(record)
    return [
        STATES.index(record.state),
        lane,
        order_of(record),
        record.bucket,
        float(last_crawled_ms(record)),
        False if record.due is None else record.due,
        encode_copy(record.copy) or False,
        encode_body(site, record),
    ]


def decode_value(site: str, value: bytes) -> PageRecord:
    """The record that a value holds."""
    first, lane, order = _HEAD.unpack_from(value)
    at = _HEAD.size
    more: dict[str, Any] = {"state": STATES[first % _HAS_DUE]}
    if first % _HAS_DUE == 0:
        more["first_seen"] = _DOUBLE.unpack_from(value, at)[0]
        at += _DOUBLE.size
    elif first % _HAS_DUE == _CRAWLED_STATE:
        more["bucket"] = _CRAWLED.unpack_from(value, at)[0]
        at += _CRAWLED.size
    if first & _HAS_DUE:
        more["due"] = _DOUBLE.unpack_from(value, at)[0]
        at += _DOUBLE.size
    if first & _HAS_COPY:
        more["copy"] = list(_COPY.unpack_from(value, at))
        at += _COPY.size
    if lane == 0:
        more["immediate"] = int(order)
    fields = dict(zip(_FIELDS, _decode(value[at:]), strict=False))
    if fields["url"].startswith("/"):
        fields["url"] = site + fields["url"]
    if isinstance(fields.get("digest"), bytes):
        fields["digest"] = fields["digest"].hex()
    fields |= more
    return msgspec.convert([fields.get(name, getattr(_DEFAULTS, name)) for name in _RECORD], PageRecord)
