"""A page as the bytes of one hash field: first the fields that scripts read, then the rest as msgpack.

The scripts use the same layout (`lua/parts/pages.lua`). To save memory, a URL is stored without its site, a digest
takes 20 bytes, and default values at the end are left out.
"""

from __future__ import annotations

import math
import struct
from operator import attrgetter
from typing import Any, Final

import msgspec

from webfountain.records import STATES, Copy, PageRecord
from webfountain.store.census_counting import last_crawled_ms
from webfountain.store.lanes import class_of, recrawl_place
from webfountain.store.shared.layout import FIRST_LANE, HAS_COPY, HAS_DUE

__all__ = ["arrival_of", "decode_value", "encode_body", "encode_copy", "encode_page", "encode_value", "never_lane"]

_IN_FRONT: Final = frozenset({"state", "due", "copy", "immediate", "provenance"})
"""Fields that are not stored as items of the msgpack part."""
_ORDER: Final = ("url", "depth", "importance", "policy", "request", "scores", "first_seen", "trust", "source")
"""First fields of the msgpack part, in order: the fields of a never-crawled page."""
_FIELDS: Final = (*_ORDER, *(f for f in PageRecord.__struct_fields__ if f not in _IN_FRONT and f not in _ORDER))
_RECORD: Final = PageRecord.__struct_fields__
_DEFAULTS: Final = PageRecord(url="")
_HEAD: Final = struct.Struct(">BHd")
_CRAWLED: Final = struct.Struct(">Bd")
_DOUBLE: Final = struct.Struct(">d")
_COPY: Final = struct.Struct(">IQIH")
_EXACT: Final = 2**53
_CRAWLED_STATE: Final = STATES.index("crawled")
_DIGEST: Final = _FIELDS.index("digest")
_SOURCE: Final = _FIELDS.index("source")
_BUCKET: Final = _FIELDS.index("bucket")
_FIRST_SEEN: Final = _FIELDS.index("first_seen")
_fields_of = attrgetter(*_FIELDS)
_WITHOUT: Final = _fields_of(_DEFAULTS)
_NEVER_LAST: Final = len(_ORDER) - 1
_NEVER_WITHOUT: Final = list(_WITHOUT[_NEVER_LAST + 1 :])
_FLOATS: Final = {each.name for each in msgspec.structs.fields(PageRecord) if "float" in str(each.type)} - {"scores"}
_NUMBERS: Final = [at for at, name in enumerate(_FIELDS) if name in _FLOATS]
_AT: Final = [_RECORD.index(name) for name in _FIELDS]
"""Index in a `PageRecord` of each field of the msgpack part."""
_RECORD_WITHOUT: Final = list(msgspec.structs.astuple(_DEFAULTS))
_STATE_AT, _DUE_AT, _COPY_AT, _IMMEDIATE_AT, _SEEN_AT, _BUCKET_AT, _DIGEST_AT, _SOURCE_AT, _PROVENANCE_AT = map(
    _RECORD.index, ("state", "due", "copy", "immediate", "first_seen", "bucket", "digest", "source", "provenance")
)

_pack_rest = msgspec.msgpack.Encoder().encode
_unpack_rest = msgspec.msgpack.Decoder(list[Any]).decode


def never_lane(importance: float) -> int:
    """Return the lane of a never-crawled page."""
    return 1 + class_of(importance)


def encode_copy(copy: Copy | None) -> bytes | None:
    """Encode the location of a copy as bytes that scripts can compare."""
    return None if copy is None else _COPY.pack(copy.file, copy.offset, copy.length, copy.repository)


def encode_body(site: str, record: PageRecord) -> bytes:
    """Encode the part of a record that scripts do not read."""
    fields = list(_fields_of(record))
    if record.url.startswith(site) and record.url[len(site) : len(site) + 1] == "/":
        fields[0] = record.url[len(site) :]
    if record.digest is not None and len(record.digest) == 40:
        fields[_DIGEST] = bytes.fromhex(record.digest)
    if record.provenance:
        fields[_SOURCE] = (record.source, record.provenance)
    # Fields of the first part are not written twice.
    if record.state == "crawled":
        fields[_BUCKET] = _DEFAULTS.bucket
    elif record.state == "never-crawled":
        fields[_FIRST_SEEN] = _DEFAULTS.first_seen
    last = _NEVER_LAST if fields[_NEVER_LAST + 1 :] == _NEVER_WITHOUT else len(fields) - 1
    while last and fields[last] == _WITHOUT[last]:
        last -= 1
    del fields[last + 1 :]
    # An integer takes one to five bytes, a double nine. Both read back as the same time or weight.
    for at in _NUMBERS:
        if at > last:
            break
        number = fields[at]
        if number is not None and number % 1.0 == 0.0 and -_EXACT < number < _EXACT:
            whole = int(number)
            if whole or math.copysign(1.0, number) > 0.0:  # -0.0 is no integer
                fields[at] = whole
    return _pack_rest(fields)


def encode_page(site: str, record: PageRecord) -> list[Any]:
    """Encode a fetched page for `lua/settle.lua`."""
    lane, order = recrawl_place(record)
    return [
        STATES.index(record.state),
        FIRST_LANE + lane,
        order,
        record.bucket,
        float(last_crawled_ms(record)),
        False if record.due is None else record.due,
        encode_copy(record.copy) or False,
        encode_body(site, record),
    ]


def encode_value(site: str, record: PageRecord, arrival: int | None) -> bytes:
    """Encode an unleased page as the scripts do."""
    flags, parts = STATES.index(record.state), []
    if record.immediate is not None:
        place = 0, float(record.immediate)
    elif record.state == "never-crawled":
        place = never_lane(record.importance), float(arrival or 0)
    else:
        lane, order = recrawl_place(record)
        place = FIRST_LANE + lane, order + 0.0
    if record.state == "never-crawled":
        parts.append(_DOUBLE.pack(record.first_seen))
    elif record.state == "crawled":
        parts.append(_CRAWLED.pack(record.bucket, float(last_crawled_ms(record))))
    if record.due is not None:
        flags |= HAS_DUE
        parts.append(_DOUBLE.pack(record.due))
    if record.copy is not None:
        flags |= HAS_COPY
        parts.append(encode_copy(record.copy) or b"")
    return b"".join((_HEAD.pack(flags, *place), *parts, encode_body(site, record)))


def arrival_of(value: bytes) -> int | None:
    """Return the arrival number of a page in the never-crawled queue, or None if the page is not in this queue."""
    first, lane, order = _HEAD.unpack_from(value)
    return int(order) if first % HAS_DUE == 0 and lane else None


def decode_value(site: str, value: bytes) -> PageRecord:
    """Return the record that a value encodes."""
    first, lane, order = _HEAD.unpack_from(value)
    at = _HEAD.size
    record: list[Any] = _RECORD_WITHOUT.copy()
    record[_STATE_AT] = STATES[first % HAS_DUE]
    begin = at
    if first % HAS_DUE == 0:
        at += _DOUBLE.size
    elif first % HAS_DUE == _CRAWLED_STATE:
        at += _CRAWLED.size
    if first & HAS_DUE:
        record[_DUE_AT] = _DOUBLE.unpack_from(value, at)[0]
        at += _DOUBLE.size
    if first & HAS_COPY:
        record[_COPY_AT] = _COPY.unpack_from(value, at)
        at += _COPY.size
    for where, field in zip(_AT, _unpack_rest(value[at:]), strict=False):
        record[where] = field
    # The values of these fields are in the first part; the msgpack part has only their defaults.
    if first % HAS_DUE == 0:
        record[_SEEN_AT] = _DOUBLE.unpack_from(value, begin)[0]
    elif first % HAS_DUE == _CRAWLED_STATE:
        record[_BUCKET_AT] = _CRAWLED.unpack_from(value, begin)[0]
    if lane == 0:
        record[_IMMEDIATE_AT] = int(order)
    if record[0].startswith("/"):
        record[0] = site + record[0]
    if isinstance(record[_SOURCE_AT], list):
        record[_SOURCE_AT], record[_PROVENANCE_AT] = record[_SOURCE_AT]
    if isinstance(record[_DIGEST_AT], bytes):
        record[_DIGEST_AT] = record[_DIGEST_AT].hex()
    return msgspec.convert(record, PageRecord)
