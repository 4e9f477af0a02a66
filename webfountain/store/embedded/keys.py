"""The layout of keys and values of the embedded store: every byte of the format is defined here.

A key starts with one letter for its family. Keys of pages continue with eight bytes that stand for the site, so a
site's pages are adjacent. The queue entry of a never-crawled page contains its record, and its page key only points to
the entry. Never-crawled records are stored in the order in which they are leased, and page keys stay small. Any change
of this layout needs a new `FORMAT`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import msgspec
import xxhash

from webfountain.records import PageRecord
from webfountain.store.codec import source_of, to_sortable
from webfountain.store.lanes import CLASSES, class_of

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    "IMPORTING",
    "LEARNED",
    "META",
    "NAME",
    "NEVER",
    "PAGE",
    "PART",
    "RANK",
    "RANKED",
    "RECRAWL",
    "REGRADE",
    "ROW",
    "SITE",
    "STATE",
    "VALUE",
    "Meta",
    "NeverEntry",
    "after",
    "arrival_of",
    "due_key",
    "is_record",
    "lane_of",
    "never_suffix",
    "number",
    "pack_links",
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
IMPORTING: Final = 0
"""Format number of a store while its import is not complete."""

PAGE: Final = b"P"  # site id, key -> page record, or a pointer to its NEVER entry, or BAR
NEVER: Final = b"N"  # site id, lane (class of importance, or IMMEDIATE_NEVER), arrival -> NeverEntry
RECRAWL: Final = b"R"  # site id, lane, order, key -> nothing
SITE: Final = b"S"  # name -> row of counts and times
BARRED: Final = b"F"  # name -> nothing: the whole site was forgotten
STATE: Final = b"T"  # site id -> SiteState
LEARNED: Final = b"L"  # site id -> what was learned about the site
PART: Final = b"Q"  # site id, number -> a part of what was learned about the site
REGRADE: Final = b"E"  # site id -> epoch of the ranking that is partly applied, suffix of the last entry done
NAME: Final = b"H"  # site id -> name
DUE: Final = b"D"  # due, name -> nothing: the inactive sites
ACTIVE: Final = b"A"  # name -> owner: the active sites
BUCKET: Final = b"B"  # bucket -> crawled pages, sum of last_crawled
ROW: Final = b"K"  # period, bucket -> a census row
COPY: Final = b"W"  # repository, WARC file number -> page records that name it
CHANGE: Final = b"G"  # sequence -> an entry of the change log
CLOCK: Final = b"O"  # -> the time of the last step that had one
COUNTS: Final = b"C"  # -> pages by state, sites, arrivals, immediate URLs, entries written and dropped
META: Final = b"M"  # -> format, collection, period, fastest, generation, name of the change log
RANK: Final = b"I"  # order, rank (`store.site_orders`), name -> nothing: the index of sites
RANKED: Final = b"J"  # name -> pages, failed pages and last change of the site, as in the index
VALUE: Final = b"V"  # name -> a published value

IMMEDIATE_NEVER: Final = CLASSES
"""Lane of the immediate URLs that are never-crawled."""
BAR: Final = b"\x00"
"""First byte of the value under the page key of a forgotten URL; the name of the site follows."""
_POINTER: Final = b"\x01"
_word = struct.Struct(">Q")
_time = struct.Struct(">d")
_lane = struct.Struct(">H")
_turn = struct.Struct(">BQ")
_LANE_AT: Final = 9

_encode = msgspec.msgpack.Encoder().encode


class Meta(msgspec.Struct, frozen=True, array_like=True):
    """The description of an embedded store.

    `generation` counts the openings of the store, so that no lease token is given twice. `log` is the name of the
    change log. `unit` is the old unit during a conversion of bucket bytes. While a correction of times runs,
    `correction` contains its `at` and `ahead`. `come_to` is the position of a running conversion or correction: a site,
    a zero byte, a page key. `is_ranked` is True if the index of sites exists. An older version of webfountain drops
    `is_ranked` when it writes the description, because it does not update the index.
    """

    format: int
    collection: str
    period_s: float
    fastest_s: float
    generation: int = 0
    log: str = ""
    unit: float | None = None
    come_to: bytes = PAGE
    correction: tuple[float, float] | None = None
    is_ranked: bool = False


class NeverEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The queue entry of a never-crawled page, which contains its record.

    `shared` is the length of the site's name if the URL starts with this name, and 0 if not. `rest` is the remaining
    part of the URL.
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
    source: bytes = b""
    scores: tuple[float, ...] = ()
    provenance: bytes = b""
    hops: int = 0


_waiting = msgspec.msgpack.Decoder(NeverEntry)


def site_id(site: str) -> bytes:
    """Return the eight bytes that stand for a site in keys. The probability of a collision is 3e-8 among 10^6 sites."""
    return xxhash.xxh3_64_digest(site.encode())


def pack_time(at: float) -> bytes:
    """Return a time encoded as the value of the key CLOCK."""
    return _time.pack(at)


def unpack_time(value: bytes) -> float:
    """Return the time that `pack_time` encoded."""
    at: float = _time.unpack(value)[0]
    return at


def number(value: int) -> bytes:
    """Return eight bytes that sort like a number, which must not be negative."""
    return _word.pack(value)


def place_of(text: bytes) -> int:
    """Return the number that `number` encoded as the last eight bytes of a key."""
    value: int = _word.unpack(text[-8:])[0]
    return value


def arrival_of(entry: bytes) -> int:
    """Return the arrival number in the key of a never-crawled queue entry."""
    return place_of(entry)


def lane_of(entry: bytes) -> int:
    """Return the lane in the key of a never-crawled queue entry."""
    return entry[_LANE_AT]


def never_suffix(lane: int, arrival: int) -> bytes:
    """Return the bytes of a position in a site's never-crawled queue: lane, then arrival number."""
    return _turn.pack(lane, arrival)


def pointer(suffix: bytes) -> bytes:
    """Return the value under the key of a never-crawled page: a pointer to the page's queue entry."""
    return _POINTER + suffix


def pointer_suffix(value: bytes | None) -> bytes | None:
    """Return the queue position that a pointer contains, or None for any other value."""
    return value[1:] if value is not None and value[:1] == _POINTER else None


def is_record(value: bytes | None) -> bool:
    """Return whether a page key's value is a record. The first byte of a record, a msgpack array, is at least 0x90."""
    return value is not None and value[0] >= 0x90


def pack_links(
    links: Mapping[bytes, Link], *, arrival: int, first_seen: float
) -> tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]]]:
    """Return the key-value pairs of new pages: page keys with pointers, and queue entries, both in the order of the
    links.

    `arrival` is the arrival number of the first link.
    """
    # One loop, because most of the cost of a link is here.
    pointers: list[tuple[bytes, bytes]] = []
    entries: list[tuple[bytes, bytes]] = []
    for nth, (page_key, link) in enumerate(links.items(), arrival):
        suffix = _turn.pack(class_of(link.importance), nth)
        pointers.append((page_key, _POINTER + suffix))
        url, site = link.url, link.site
        shared = len(site) if url.startswith(site) else 0
        value = _encode(
            (
                link.key,
                shared,
                url[shared:],
                first_seen,
                # Zero takes one byte as an integer and nine as a float.
                link.importance or 0,
                link.depth,
                link.policy,
                link.request,
                link.trust or 0,
                source_of(link),
                link.scores,
                link.provenance,
                link.hops,
            )
        )
        entries.append((NEVER + page_key[1:9] + suffix, value))
    return pointers, entries


def pack_waiting(site: str, key: bytes, record: PageRecord) -> bytes:
    """Return the value of the queue entry of a never-crawled page."""
    url = record.url
    shared = len(site) if url.startswith(site) else 0
    reported = (key, shared, url[shared:], record.first_seen, record.importance or 0, record.depth, record.policy)
    more = (record.request, record.trust or 0, record.source, record.scores, record.provenance, record.hops)
    return _encode((*reported, *more))


def waiting_record(site: str, entry: bytes, value: bytes) -> tuple[bytes, PageRecord]:
    """Decode the queue entry of a never-crawled page; return the key and the record of the page."""
    one = _waiting.decode(value)
    record = PageRecord(
        url=site[: one.shared] + one.rest,
        policy=one.policy,
        importance=one.importance,
        first_seen=one.first_seen,
        depth=one.depth,
        request=one.request,
        trust=one.trust,
        source=one.source,
        scores=one.scores,
        provenance=one.provenance,
        hops=one.hops,
        immediate=arrival_of(entry) if entry[_LANE_AT] == IMMEDIATE_NEVER else None,
    )
    return one.key, record


def recrawl_key(sid: bytes, lane: int, order: float, key: bytes) -> bytes:
    """Return the key of a page's entry in a recrawl lane."""
    return RECRAWL + sid + _lane.pack(lane) + to_sortable(order + 0.0) + key  # + 0.0 turns -0.0 into 0.0


def due_key(due: float, site: str) -> bytes:
    """Return the key of an inactive site's entry in the list by due time."""
    return DUE + to_sortable(due + 0.0) + site.encode()


def after(prefix: bytes) -> bytes:
    """Return the first key after all keys with this prefix."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
