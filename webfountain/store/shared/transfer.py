"""Convert a shared store to rows and back: for export, import and a change of format.

Reading pauses all writing on the server (`write_pause`), so that all shards are read as of one moment. If the server
does not allow that, each site is read as of a different moment. Importing does not use the scripts: it fills the keys
as the scripts would, with full nodes in the trees of sites.
"""

from __future__ import annotations

import math
import struct
from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgpack
import msgspec
import numpy as np

from webfountain.errors import InputError, StoreError
from webfountain.records import STATES, SiteState
from webfountain.store import transfer_rows
from webfountain.store.census_counting import last_crawled_ms
from webfountain.store.codec import decode_state, encode_state
from webfountain.store.lanes import AT_ONCE
from webfountain.store.shared.change_log import encode_entry
from webfountain.store.shared.codec import arrival_of, decode_value, encode_value
from webfountain.store.shared.layout import NODE_SIZE
from webfountain.store.shared.maintenance import latest
from webfountain.store.shared.scripts import pairs
from webfountain.store.shared.write_pause import WritePause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webfountain.records import Change
    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared.scripts import Shards
    from webfountain.store.transfer_rows import Row

__all__ = ["fill", "server_rows"]

_AT_ONCE: Final = 2000
"""Number of pages and sites that one script reads, and of pages that are written in one round trip."""
_NODE: Final = struct.Struct(">II")
_CHILD: Final = struct.Struct(">I")
_PLACE: Final = struct.Struct(">Hd")
_STATE: Final = {state: number for number, state in enumerate(STATES)}


def server_rows(
    connection: ServerConnection,
    shards: Shards,
    head: transfer_rows.Head,
    *,
    values: bytes,
    changes: Iterable[Change],
) -> Iterator[Row]:
    """Return the whole content of the store. One round trip per two thousand pages; `changes` is read last.

    Raises
    ------
    StoreError
        if the pause was lost or is not allowed, and a site or the change log changed while it was read, or the server
        was replaced meanwhile.
    """
    with WritePause(connection) as pause:
        for row in _rows(connection, shards, head, values, changes):
            pause.prolong()
            yield row


def _rows(
    connection: ServerConnection, shards: Shards, head: transfer_rows.Head, values: bytes, changes: Iterable[Change]
) -> Iterator[Row]:
    servers, dropped = shards.servers(), _dropped(shards)
    yield msgspec.structs.replace(head, dropped=dropped, latest=int(latest(shards) or 0))
    for name, value in sorted(pairs(connection.ask(values, "HGETALL", values))):
        yield transfer_rows.Value(name.decode(), value)
    yield from _counted(shards)
    for members in shards.read("SMEMBERS", "barred"):
        for member in sorted(members):
            site, is_page, key = member.partition(b"\0")
            yield transfer_rows.ForgottenKey(site.decode(), key if is_page else None)
    for shard in range(shards.count):
        yield from _sites(connection, shards, shard)
    yield from map(transfer_rows.ChangeEntry, changes)
    if dropped != _dropped(shards):
        raise _changed(connection, "the change log")
    if servers != shards.servers():
        raise StoreError(f"{connection.shown}: its server was replaced while it was read; export again")


def _dropped(shards: Shards) -> int:
    """Return the number of dropped entries of the change log."""
    return sum(int(each or 0) for each in shards.read("HGET", "counts", "log_dropped"))


def _changed(connection: ServerConnection, what: str) -> StoreError:
    return StoreError(
        f"{connection.shown}: {what} changed while it was read, because writing is not paused (the user needs CLIENT "
        "PAUSE, CLIENT SETNAME and CLIENT LIST); stop the crawl, or export again"
    )


def _counted(shards: Shards) -> Iterator[Row]:
    sums: dict[tuple[int, int], list[float]] = {}
    for fields in shards.read("HGETALL", "rows"):
        for name, value in pairs(fields):
            period, of, column = name.decode().rsplit(":", 2)
            row = sums.setdefault((int(period), -1 if of == "-" else int(of)), [0.0] * 6)
            row[int(column)] += float(value)
    for (number, bucket), counts in sorted(sums.items()):
        yield transfer_rows.CensusEntry(number, None if bucket < 0 else bucket, tuple(counts))


def _sites(connection: ServerConnection, shards: Shards, shard: int) -> Iterator[Row]:
    come_to: list[Any] = [b"", False, 0, -math.inf, b""]
    begun = b""  # the row of the present site, which each step that moves a page of the site changes
    while True:
        found = shards.run("rows", {shard: [*come_to, _AT_ONCE]})[shard]
        for name, raw, state, learned, numbers, *pages in found:
            if name == come_to[0] and raw != begun:
                raise _changed(connection, name.decode())
            if name != come_to[0]:
                begun = raw
                yield _site(name.decode(), raw, state, learned)
                come_to = [name, True, 0, -math.inf, b""]
                for of in sorted(map(int, msgpack.unpackb(numbers))) if numbers else ():
                    part = shards.run("read", {shard: ["part", name, str(of)]})[shard]
                    yield transfer_rows.Part(name.decode(), of, part)
            for lane, order, key, value in pages:
                yield transfer_rows.Page(name.decode(), key, decode_value(name.decode(), value), arrival_of(value))
                come_to = [name, True, lane, float(order), key]
        if sum(len(each) - 4 for each in found) < _AT_ONCE:
            return


def _site(name: str, raw: bytes, state: bytes | None, learned: bytes | None) -> transfer_rows.Site:
    # Kept as bytes, because the row of a held site contains the keys of leased pages.
    row: dict[bytes, Any] = msgpack.unpackb(raw, raw=True)
    due = AT_ONCE if row.get(b"owner") and row[b"imm"] else float(row[b"due"])
    reg = row.get(b"reg")
    return transfer_rows.Site(
        name,
        float(row[b"first"]),
        due,
        decode_state(state) if state else SiteState(),
        epoch=int(row[b"epoch"]),
        learned=learned or b"",
        regrading=None if reg is None else (int(reg[0]), int(reg[1]) - 1, int(reg[2])),
        changed=float(row.get(b"chg", 0.0)),
    )


# ------------------------------------------------------------------------- filling


def fill(
    connection: ServerConnection, shards: Shards, rows: Iterator[Row], *, values: bytes, head: transfer_rows.Head
) -> dict[str, float]:
    """Fill the empty keys of a new store with the rows that follow the first, `head`, but not its orders of sites.

    Return the time of each site's last change. Raise StoreError if the server was replaced meanwhile, and so may have
    lost some of the rows.
    """
    servers = shards.servers()
    filling = _ShardLoader(connection, shards, values, head)
    while some := list(islice(rows, _AT_ONCE)):
        filling.take(some)
    filling.end()
    if servers != shards.servers():
        raise StoreError(f"{connection.shown}: its server was replaced during the import; import again")
    return filling.newest


class _ShardLoader:
    """The rows to write next, and the counts of each shard, which are written last."""

    def __init__(self, connection: ServerConnection, shards: Shards, values: bytes, head: transfer_rows.Head) -> None:
        self._connection = connection
        self._shards = shards
        self._values = values
        self._writes: defaultdict[tuple[str, bytes], list[Any]] = defaultdict(list)
        self._counts: list[Counter[str]] = [Counter() for _ in range(shards.count)]
        self._buckets: list[Counter[str]] = [Counter() for _ in range(shards.count)]
        self._copies: list[Counter[str]] = [Counter() for _ in range(shards.count)]
        # The numbers of all shards must add up to the entry's number, so the first shard counts all dropped entries.
        self._counts[0]["log_dropped"] = self._counts[0]["logged"] = head.dropped
        self._counts[0]["latest"] = head.latest
        self._site: transfer_rows.Site | None = None
        self._is_dated = False  # sites contain the times of their last changes, which only newer versions export
        self.newest: dict[str, float] = {}
        """Time of the last change of each site."""
        self._begin(None)

    def take(self, rows: Sequence[Row]) -> None:
        """Write some rows, in one round trip."""
        for row in rows:
            match row:
                case transfer_rows.Page():
                    self._put_page(row)
                case transfer_rows.Site():
                    self._begin(row)
                case transfer_rows.Part():
                    self._put_part(row)
                case transfer_rows.ChangeEntry(change):
                    self._log(change)
                case transfer_rows.ForgottenKey(site, key):
                    name = site.encode()
                    self._add("SADD", self._shards.of(site), "barred", name if key is None else name + b"\0" + key)
                case transfer_rows.CensusEntry(period, bucket, counts):
                    begin = f"{period}:{'-' if bucket is None else bucket}"
                    for column, many in enumerate(counts):
                        if many:
                            self._add("HSET", 0, "rows", f"{begin}:{column}", f"{many:.17g}")
                case transfer_rows.Value(name, value):
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

    def _begin(self, site: transfer_rows.Site | None) -> None:
        """End the present site, if there is one, and begin another."""
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

    def _put_part(self, part: transfer_rows.Part) -> None:
        self._parts.append(str(part.number))
        self._add("HSET", self._shards.of(part.site), "sites", f"{part.site}\0p{part.number}", part.part)

    def _put_page(self, page: transfer_rows.Page) -> None:
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

    def _put_site(self, site: transfer_rows.Site) -> None:
        """Write the site's tree and its row."""
        name, shard = site.site, self._shard
        root, height, last = 1, 0, 1
        if self._places:
            root, height, last = self._plant()
        due: float | str = "inf" if site.due == math.inf else site.due
        row: dict[str, Any] = {"id": self._id, "first": _whole(site.first_seen), "due": _whole(due), "n": self._pages}
        row |= {"imm": self._immediate, "epoch": site.epoch, "root": root, "h": height, "last": last}
        if self._places:
            row["w"] = self._width
        if site.changed:
            self._is_dated = True
            self.newest[site.site] = site.changed
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
        """Write the tree of the site's places with full nodes. Return its root, its height and the last node number."""
        kind = np.dtype([("lane", ">u2"), ("order", ">f8"), ("key", f"S{self._width}")])
        places = np.frombuffer(self._places, dtype=kind)
        items = places[np.lexsort((places["key"], places["order"], places["lane"]))].tobytes()
        width, height, last = kind.itemsize, 0, 0
        while True:
            above = []
            for at in range(0, len(items), NODE_SIZE * width):
                last += 1
                self._add("HSET", self._shard, "nodes", _NODE.pack(self._id, last), items[at : at + NODE_SIZE * width])
                above.append(items[at : at + kind.itemsize] + _CHILD.pack(last))
            if len(above) == 1:
                return last, height, last
            items, width, height = b"".join(above), kind.itemsize + _CHILD.size, height + 1

    def _log(self, change: Change) -> None:
        shard = self._shards.of(change.site)
        self._counts[shard]["logged"] += 1
        if not self._is_dated:
            self.newest[change.site] = max(change.at, self.newest.get(change.site, 0.0))
        self._add("HSET", shard, "log", self._counts[shard]["logged"], encode_entry(change))

    def _add(self, command: str, shard: int, key: str, *arguments: Any) -> None:
        self._writes[command, self._shards.key(shard, key)] += arguments

    def _send(self) -> None:
        sent = [(key, (command, key, *arguments)) for (command, key), arguments in self._writes.items()]
        self._connection.ask_all(sent)
        self._writes.clear()


def _whole(number: float | str) -> float | int | str:
    """Return a number without a fraction as an integer, which takes fewer bytes. The scripts do the same."""
    return int(number) if isinstance(number, float) and number.is_integer() else number
