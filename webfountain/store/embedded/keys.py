"""How the embedded store lays its keys and values: every byte of the format is decided here.

Keys start with one letter for the family, then, wherever a page is meant, eight bytes of the site: a site's
pages lie together, so a batch of one page's links touches few blocks. A never-crawled page lives in its queue
entry and its page key only points there: the entries lie in the order in which they are leased, and the keys
that every link is looked up in stay small. Changing anything here means another `FORMAT`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import msgspec
import xxhash

from webfountain.records import PageRecord
from webfountain.store.codec import to_sortable
from webfountain.store.contract import CLASSES

if TYPE_CHECKING:
    from webfountain.records import Link

__all__ = [
    "ACTIVE",
    "BAR",
    "BARRED",
    "BUCKET",
    "CHANGE",
    "CLOCK",
    "COPY",
    "COUNTS",
    "DUE",
    "FORMAT",
    "IMMEDIATE_NEVER",
    "LEARNED",
    "META",
    "NAME",
    "NEVER",
    "PAGE",
    "RECRAWL",
    "REGRADE",
    "ROW",
    "SITE",
    "STATE",
    "VALUE",
    "Waiting",
    "after",
    "arrival_of",
    "due_key",
    "is_record",
    "never_suffix",
    "number",
    "pack_time",
    "pack_waiting",
    "place_of",
    "pointer",
    "pointer_suffix",
    "recrawl_key",
    "site_id",
    "unpack_time",
    "waiting_record",
]

FORMAT: Final = 2

PAGE: Final = b"P"  # site id, key -> page record, or a pointer to its NEVER entry, or BAR
NEVER: Final = b"N"  # site id, lane (class of importance, or IMMEDIATE_NEVER), arrival -> Waiting
RECRAWL: Final = b"R"  # site id, lane, order, key -> nothing
SITE: Final = b"S"  # name -> row of counts and times
BARRED: Final = b"F"  # name -> nothing: the whole site was forgotten
STATE: Final = b"T"  # site id -> SiteState
LEARNED: Final = b"L"  # site id -> what was learned of the site
REGRADE: Final = b"E"  # site id -> epoch that is being brought in, suffix of the last entry that was looked up
NAME: Final = b"H"  # site id -> name
DUE: Final = b"D"  # due, name -> nothing: the inactive sites
ACTIVE: Final = b"A"  # name -> owner: the active sites
BUCKET: Final = b"B"  # bucket -> crawled pages, sum of last_crawled
ROW: Final = b"K"  # period, bucket -> a census row
COPY: Final = b"W"  # repository, WARC file number -> page records that name it
CHANGE: Final = b"G"  # sequence -> an entry of the change log
CLOCK: Final = b"O"  # -> the time of the last step that told one
COUNTS: Final = b"C"  # -> pages by state, sites, arrivals, immediate URLs, entries made and dropped
META: Final = b"M"  # -> format, collection, period, fastest, generation, name of the change log
VALUE: Final = b"V"  # name -> a published value

IMMEDIATE_NEVER: Final = CLASSES
"""Lane of the never-crawled URLs that go before all others of their site."""
BAR: Final = b"\x00"
"""Value of the page key of a forgotten URL: known, and no page."""
_POINTER: Final = b"\x01"
_word = struct.Struct(">Q")
_time = struct.Struct(">d")
_lane = struct.Struct(">H")
_turn = struct.Struct(">BQ")
_LANE_AT: Final = 9


class Waiting(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A never-crawled page in its queue entry.

    `shared` counts the leading characters of the URL that are the site's name and left out of `rest`.
    """

    key: bytes
    shared: int
    rest: str
    first_seen: float
    importance: float
    depth: int
    policy: str
    request: bytes | None
    trust: float = 0.0


_encode = msgspec.msgpack.Encoder().encode
_waiting = msgspec.msgpack.Decoder(Waiting)


def site_id(site: str) -> bytes:
    """Eight bytes for a site: among 10^6 sites two collide with a chance of 3e-8."""
    return xxhash.xxh3_64_digest(site.encode())


def pack_time(at: float) -> bytes:
    """The value under CLOCK."""
    return _time.pack(at)


def unpack_time(value: bytes) -> float:
    """The time that `pack_time` packed."""
    at: float = _time.unpack(value)[0]
    return at


def number(value: int) -> bytes:
    """Eight bytes that sort as the number, which is not negative."""
    return _word.pack(value)


def place_of(text: bytes) -> int:
    """The number that `number` made into the last eight bytes of a key."""
    value: int = _word.unpack(text[-8:])[0]
    return value


def arrival_of(entry: bytes) -> int:
    """The number of arrival in the key of a never-crawled queue entry."""
    return place_of(entry)


def never_suffix(lane: int, arrival: int) -> bytes:
    """Order within a site's never-crawled queue: by lane, then first come."""
    return _turn.pack(lane, arrival)


def pointer(suffix: bytes) -> bytes:
    """Value of the page key of a never-crawled page: where in its site's queue the entry stands."""
    return _POINTER + suffix


def pointer_suffix(value: bytes | None) -> bytes | None:
    """The suffix of a pointer; None for a value that is none."""
    return value[1:] if value is not None and value[:1] == _POINTER else None


def is_record(value: bytes | None) -> bool:
    """Whether a page key's value is the record itself: a msgpack array starts with 0x90 or more."""
    return value is not None and value[0] >= 0x90


def pack_waiting(site: str, key: bytes, page: Link | PageRecord, first_seen: float) -> bytes:
    """The queue entry's value of a never-crawled page."""
    url, importance = page.url, page.importance
    shared = len(site) if url.startswith(site) else 0
    # An importance of nothing takes one byte as a whole number, nine as a fraction.
    told = (key, shared, url[shared:], first_seen, importance or 0, page.depth, page.policy, page.request)
    return _encode((*told, page.trust) if page.trust else told)


def waiting_record(site: str, entry: bytes, value: bytes) -> tuple[bytes, PageRecord]:
    """Page key and record of a never-crawled page, from its queue entry's key and value."""
    one = _waiting.decode(value)
    record = PageRecord(
        url=site[: one.shared] + one.rest,
        policy=one.policy,
        importance=one.importance,
        first_seen=one.first_seen,
        depth=one.depth,
        request=one.request,
        trust=one.trust,
        immediate=arrival_of(entry) if entry[_LANE_AT] == IMMEDIATE_NEVER else None,
    )
    return one.key, record


def recrawl_key(sid: bytes, lane: int, order: float, key: bytes) -> bytes:
    """A page's entry in a recrawl lane; adding 0.0 turns both zeros into the same one."""
    return RECRAWL + sid + _lane.pack(lane) + to_sortable(order + 0.0) + key


def due_key(due: float, site: str) -> bytes:
    """An inactive site's entry among the sites by due time."""
    return DUE + to_sortable(due + 0.0) + site.encode()


def after(prefix: bytes) -> bytes:
    """The first key that is past all keys with this prefix."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
