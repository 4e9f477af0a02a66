"""A shared store as rows, and rows as a shared store: export, import, and the way into another format.

Reading pauses what is written to the server (``CLIENT PAUSE … WRITE``), so that all shards are read as they stood at
one moment; the ants wait, as for a slow server, and go on. Writing goes past the scripts: keys are filled as the
scripts would leave them, with full nodes in the sites' trees.
"""

from __future__ import annotations

import math
import struct
import time
from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgpack
import numpy as np

from webfountain.errors import InputError
from webfountain.records import STATES, SiteState
from webfountain.store import transfer
from webfountain.store.contract import AT_ONCE
from webfountain.store.rules import decode_state, encode_state, last_crawled_ms
from webfountain.store.shared.scripts import arrival_of, decode_value, encode_entry, encode_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webfountain.records import Change
    from webfountain.store.shared.opening import ServerConnection
    from webfountain.store.shared.scripts import Shards
    from webfountain.store.transfer import Row

__all__ = ["fill", "server_rows"]

_AT_ONCE: Final = 2000
"""Pages and sites that one script reads, and pages that are written in one round trip."""
_PAUSE_S: Final = 60.0
"""An exporter that is killed leaves the server paused for so long at most."""
_NODE_SIZE: Final = 96
"""As in `lua/prelude.lua`."""
_NODE: Final = struct.Struct(">II")
_CHILD: Final = struct.Struct(">I")
_PLACE: Final = struct.Struct(">Hd")
_STATE: Final = {state: number for number, state in enumerate(STATES)}


def server_rows(
    connection: ServerConnection,
    shards: Shards,
    head: transfer.Head,
    *,
    values: bytes,
    changes: Iterable[Change],
) -> Iterator[Row]:
    """See `Portable.rows`. A round trip for two thousand pages; `changes` is read last.

    Raises
    ------
    InputError
        when sites are being crawled and the server does not let this user pause it.
    """
    until = _paused(connection, shards, time.monotonic())
    try:
        for row in _rows(connection, shards, head, values, changes):
            if time.monotonic() > until:
                until = _paused(connection, shards, time.monotonic())
            yield row
    finally:
        connection.resume_writes()


def _paused(connection: ServerConnection, shards: Shards, at: float) -> float:
    """Pause writing; when that is to be said again."""
    if connection.pause_writes(_PAUSE_S):
        return at + _PAUSE_S / 4
    active = sum(int(each or 0) for each in shards.read("HGET", "counts", "active"))
    if active:
        raise InputError(
            f"{connection.shown}: {active} sites are being crawled, and the server does not let this user pause it "
            "(CLIENT PAUSE); stop the crawl first"
        )
    return math.inf


def _rows(
    connection: ServerConnection, shards: Shards, head: transfer.Head, values: bytes, changes: Iterable[Change]
) -> Iterator[Row]:
    dropped = sum(int(each or 0) for each in shards.read("HGET", "counts", "log_dropped"))
    yield transfer.Head(head.collection, head.period_s, head.fastest_s, head.log, dropped)
    for name, value in sorted(_pairs(connection.ask(values, "HGETALL", values))):
        yield transfer.Value(name.decode(), value)
    yield from _counted(shards)
    for members in shards.read("SMEMBERS", "barred"):
        for member in sorted(members):
            site, is_page, key = member.partition(b"\0")
            yield transfer.Barred(site.decode(), key if is_page else None)
    for shard in range(shards.count):
        yield from _sites(shards, shard)
    yield from map(transfer.Logged, changes)


def _counted(shards: Shards) -> Iterator[Row]:
    sums: dict[tuple[int, int], list[float]] = {}
    for fields in shards.read("HGETALL", "rows"):
        for name, value in _pairs(fields):
            period, of, column = name.decode().rsplit(":", 2)
            row = sums.setdefault((int(period), -1 if of == "-" else int(of)), [0.0] * 6)
            row[int(column)] += float(value)
    for (number, bucket), counts in sorted(sums.items()):
        yield transfer.Counted(number, None if bucket < 0 else bucket, tuple(counts))


def _sites(shards: Shards, shard: int) -> Iterator[Row]:
    come_to: list[Any] = [b"", False, 0, -math.inf, b""]
    while True:
        found = shards.run("rows", {shard: [*come_to, _AT_ONCE]})[shard]
        for name, raw, state, learned, numbers, *pages in found:
            if name != come_to[0]:
                yield _site(name.decode(), msgpack.unpackb(raw, strict_map_key=False), state, learned)
                come_to = [name, True, 0, -math.inf, b""]
                for of in sorted(map(int, msgpack.unpackb(numbers))) if numbers else ():
                    part = shards.run("read", {shard: ["part", name, str(of)]})[shard]
                    yield transfer.Part(name.decode(), of, part)
            for lane, order, key, value in pages:
                yield transfer.Page(name.decode(), key, decode_value(name.decode(), value), arrival_of(value))
                come_to = [name, True, lane, float(order), key]
        if sum(len(each) - 4 for each in found) < _AT_ONCE:
            return


def _site(name: str, row: dict[str, Any], state: bytes | None, learned: bytes | None) -> transfer.Site:
    due = AT_ONCE if row.get("owner") and row["imm"] else float(row["due"])
    reg = row.get("reg")
    return transfer.Site(
        name,
        float(row["first"]),
        due,
        decode_state(state) if state else SiteState(),
        epoch=int(row["epoch"]),
        learned=learned or b"",
        regrading=None if reg is None else (int(reg[0]), int(reg[1]) - 1, int(reg[2])),
    )


# ------------------------------------------------------------------------- filling


def fill(connection: ServerConnection, shards: Shards, rows: Iterator[Row], *, values: bytes, dropped: int) -> None:
    """Fill the empty keys of a new store; `dropped` entries of its change log went before it came here."""
    filling = _Filling(connection, shards, values, dropped)
    while some := list(islice(rows, _AT_ONCE)):
        filling.take(some)
    filling.end()


class _Filling:
    """What is to be written next, and the counts of each shard, which are written last."""

    def __init__(self, connection: ServerConnection, shards: Shards, values: bytes, dropped: int) -> None:
        self._connection = connection
        self._shards = shards
        self._values = values
        self._writes: defaultdict[tuple[str, bytes], list[Any]] = defaultdict(list)
        self._counts: list[Counter[str]] = [Counter() for _ in range(shards.count)]
        self._buckets: list[Counter[str]] = [Counter() for _ in range(shards.count)]
        self._copies: list[Counter[str]] = [Counter() for _ in range(shards.count)]
        # The numbers of all shards add up to the entry's: those that went are the first shard's.
        self._counts[0]["log_dropped"] = self._counts[0]["logged"] = dropped
        self._site: transfer.Site | None = None
        self._begin(None)

    def take(self, rows: Sequence[Row]) -> None:
        """Write some rows, in one round trip."""
        for row in rows:
            match row:
                case transfer.Page():
                    self._put_page(row)
                case transfer.Site():
                    self._begin(row)
                case transfer.Part():
                    self._put_part(row)
                case transfer.Logged(change):
                    self._log(change)
                case transfer.Barred(site, key):
                    name = site.encode()
                    self._add("SADD", self._shards.of(site), "barred", name if key is None else name + b"\0" + key)
                case transfer.Counted(period, bucket, counts):
                    begin = f"{period}:{'-' if bucket is None else bucket}"
                    for column, many in enumerate(counts):
                        if many:
                            self._add("HSET", 0, "rows", f"{begin}:{column}", f"{many:.17g}")
                case transfer.Value(name, value):
                    self._writes["HSET", self._values] += (name, value)
        self._send()

    def end(self) -> None:
        """Write the last site and the counts."""
        self._begin(None)
        for name, counters in (("counts", self._counts), ("buckets", self._buckets), ("copies", self._copies)):
            for shard, counter in enumerate(counters):
                for field, many in counter.items():
                    if many:
                        self._add("HSET", shard, name, field, many)
        self._send()

    def _begin(self, site: transfer.Site | None) -> None:
        """End the site whose pages came, if any, and go to another."""
        if self._site is not None:
            self._put_site(self._site)
        self._site = site
        self._places = bytearray()
        self._width = 0
        self._pages = [0] * len(STATES)
        self._immediate = 0
        self._turns = 0
        self._parts: list[str] = []
        if site is not None:
            self._shard = self._shards.of(site.site)
            self._counts[self._shard]["ids"] += 1
            self._id = self._counts[self._shard]["ids"]
            self._field = _CHILD.pack(self._id)
            self._to_pages = ("HSET", self._shards.key(self._shard, "pages"))

    def _put_part(self, part: transfer.Part) -> None:
        self._parts.append(str(part.number))
        self._add("HSET", self._shards.of(part.site), "sites", f"{part.site}\0p{part.number}", part.part)

    def _put_page(self, page: transfer.Page) -> None:
        record = page.record
        (lane, order), value = encode_value(page.site, record, page.arrival)
        self._width = self._width or len(page.key)
        if self._width != len(page.key):
            raise InputError(f"{page.site}: page keys of {self._width} and {len(page.key)} bytes")
        self._places += _PLACE.pack(lane, order) + page.key
        self._writes[self._to_pages] += (self._field + page.key, value)
        self._pages[_STATE[record.state]] += 1
        self._turns = max(self._turns, page.arrival or 0, record.immediate or 0)
        if record.immediate is not None:
            self._immediate += 1
        if record.state == "crawled":
            buckets = self._buckets[self._shard]
            buckets[f"{record.bucket}p"] += 1
            buckets[f"{record.bucket}s"] += last_crawled_ms(record)
        if record.copy is not None:
            self._copies[self._shard][f"{record.copy.repository}:{record.copy.file}"] += 1

    def _put_site(self, site: transfer.Site) -> None:
        """The site's tree and its row."""
        name, shard = site.site, self._shard
        root, height, last = 1, 0, 1
        if self._places:
            root, height, last = self._plant()
        due: float | str = "inf" if site.due == math.inf else site.due
        row: dict[str, Any] = {"id": self._id, "first": _whole(site.first_seen), "due": _whole(due), "n": self._pages}
        row |= {"imm": self._immediate, "epoch": site.epoch, "root": root, "h": height, "last": last}
        if self._places:
            row["w"] = self._width
        if site.regrading is not None:
            epoch, of, arrival = site.regrading
            row["reg"] = [epoch, of + 1, arrival]
        self._add("HSET", shard, "sites", name, msgpack.packb(row), name + "\0s", encode_state(site.state))
        if site.learned:
            self._add("HSET", shard, "sites", name + "\0l", site.learned)
        if self._parts:
            self._add("HSET", shard, "sites", name + "\0n", msgpack.packb(self._parts, use_bin_type=False))
        self._add("ZADD", shard, "names", 0, name)
        self._add("ZADD", shard, "due", due, name)
        counts = self._counts[shard]
        counts["sites"] += 1
        counts["immediate"] += self._immediate
        counts["arrivals"] = max(counts["arrivals"], self._turns)
        for state, many in enumerate(self._pages):
            counts[f"state{state}"] += many
        if self._immediate:
            self._add("SADD", shard, "hurry", name)

    def _plant(self) -> tuple[int, int, int]:
        """The tree of the site's places with full nodes: its root, its height, the last number given to a node."""
        kind = np.dtype([("lane", ">u2"), ("order", ">f8"), ("key", f"S{self._width}")])
        places = np.frombuffer(self._places, dtype=kind)
        items = places[np.lexsort((places["key"], places["order"], places["lane"]))].tobytes()
        width, height, last = kind.itemsize, 0, 0
        while True:
            above = []
            for at in range(0, len(items), _NODE_SIZE * width):
                last += 1
                self._add("HSET", self._shard, "nodes", _NODE.pack(self._id, last), items[at : at + _NODE_SIZE * width])
                above.append(items[at : at + kind.itemsize] + _CHILD.pack(last))
            if len(above) == 1:
                return last, height, last
            items, width, height = b"".join(above), kind.itemsize + _CHILD.size, height + 1

    def _log(self, change: Change) -> None:
        shard = self._shards.of(change.site)
        self._counts[shard]["logged"] += 1
        self._add("HSET", shard, "log", self._counts[shard]["logged"], encode_entry(change))

    def _add(self, command: str, shard: int, key: str, *arguments: Any) -> None:
        self._writes[command, self._shards.key(shard, key)] += arguments

    def _send(self) -> None:
        sent = [(key, (command, key, *arguments)) for (command, key), arguments in self._writes.items()]
        for answer in self._connection.send(sent):
            self._connection.checked(answer)
        self._writes.clear()


def _whole(number: float | str) -> float | int | str:
    """A whole number as an integer, which is shorter; as the scripts write it."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _pairs(fields: Any) -> Iterable[tuple[bytes, bytes]]:
    return fields.items() if isinstance(fields, dict) else zip(fields[::2], fields[1::2], strict=True)
