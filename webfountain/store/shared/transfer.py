"""Convert a shared store to rows and back: for export, import and a change of format.

Reading pauses all writes on the server (`write_pause`), so that all shards are read at one moment. If the server does
not allow the pause, sites are read at different moments.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgpack
import msgspec

from webfountain.errors import StoreError
from webfountain.records import SiteState
from webfountain.store import transfer_rows
from webfountain.store.census_counting import in_order
from webfountain.store.codec import decode_state, encode_state
from webfountain.store.lanes import AT_ONCE
from webfountain.store.shared.census import counted_rows
from webfountain.store.shared.change_log import encode_entry
from webfountain.store.shared.codec import arrival_of, decode_value, encode_value
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
"""Number of pages and sites that one script reads, and number of rows that one round trip writes."""


def server_rows(
    connection: ServerConnection,
    shards: Shards,
    head: transfer_rows.Head,
    *,
    values: bytes,
    changes: Iterable[Change],
) -> Iterator[Row]:
    """Yield the whole content of the store, in one round trip per two thousand pages.

    Raises
    ------
    StoreError
        if a site or the change log changed while it was read, because writes were not paused, or if the server was
        replaced meanwhile.
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
    for (period, bucket), counts in in_order(counted_rows(shards).items()):
        yield transfer_rows.CensusEntry(period, bucket, tuple(counts))
    for members in shards.ask("SMEMBERS", "barred"):
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
    return sum(int(each or 0) for each in shards.ask("HGET", "counts", "log_dropped"))


def _changed(connection: ServerConnection, what: str) -> StoreError:
    return StoreError(
        f"{connection.shown}: {what} changed while it was read, because writing is not paused (the user needs CLIENT "
        "PAUSE, CLIENT SETNAME and CLIENT LIST); stop the crawl, or export again"
    )


def _sites(connection: ServerConnection, shards: Shards, shard: int) -> Iterator[Row]:
    come_to: list[Any] = [b"", False, 0, -math.inf, b""]
    begun = b""  # the row of the current site; each step that moves a page of the site changes it
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
    # Strings stay bytes, because the row of a held site contains the keys of leased pages.
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


def fill(
    connection: ServerConnection, shards: Shards, rows: Iterator[Row], *, values: bytes, head: transfer_rows.Head
) -> None:
    """Fill a new store with rows, in one round trip per two thousand rows. `head` is the first row, and `rows` are the
    following rows.

    Raises StoreError if the server was replaced during the call, because rows may be lost.
    """
    servers = shards.servers()
    # An entry's number is the sum over all shards, so the first shard counts all entries dropped in the old store.
    key = shards.key(0, "counts")
    connection.ask(key, "HSET", key, "log_dropped", head.dropped, "logged", head.dropped, "latest", head.latest)
    loader = _Loader(connection, shards, values)
    try:
        while some := list(islice(rows, _AT_ONCE)):
            loader.take(some)
        shards.ask("HDEL", "counts", "loaded")
    finally:  # also after an error, which may itself come from a lost site
        if servers != shards.servers():
            raise StoreError(f"{connection.shown}: its server was replaced during the import; import again")


class _Loader:
    """A loader that sends rows to the shards of their sites (`lua/load.lua`)."""

    def __init__(self, connection: ServerConnection, shards: Shards, values: bytes) -> None:
        self._connection = connection
        self._shards = shards
        self._values = values
        self._calls = 0
        self._is_dated = False  # site rows contain the times of last changes (only newer versions export them)

    def take(self, rows: Sequence[Row]) -> None:
        sent: defaultdict[int, list[Sequence[Any]]] = defaultdict(list)
        for row in rows:
            match row:
                case transfer_rows.Page(site, key, record, arrival):
                    sent[self._shards.of(site)].append(("page", site, key, encode_value(site, record, arrival)))
                case transfer_rows.Site():
                    self._is_dated = self._is_dated or row.changed > 0.0
                    sent[self._shards.of(row.site)].append(_loaded_site(row))
                case transfer_rows.Part(site, number, part):
                    sent[self._shards.of(site)].append(("part", site, str(number), part))
                case transfer_rows.ChangeEntry(change):
                    entry = encode_entry(change)
                    sent[self._shards.of(change.site)].append(("change", change.site, entry, not self._is_dated))
                case transfer_rows.ForgottenKey(site, key):
                    member = site.encode() + (b"" if key is None else b"\0" + key)
                    sent[self._shards.of(site)].append(("forgotten", member))
                case transfer_rows.CensusEntry(period, bucket, counts):
                    name = f"{period}:{'-' if bucket is None else bucket}"
                    sent[0] += [("census", f"{name}:{n}", f"{many:.17g}") for n, many in enumerate(counts) if many]
                case transfer_rows.Value(name, value):
                    self._connection.ask(self._values, "HSET", self._values, name, value)
        self._calls += 1
        self._shards.run("load", {shard: [self._calls, *some] for shard, some in sent.items()})


def _loaded_site(site: transfer_rows.Site) -> Sequence[Any]:
    regrading = site.regrading and (site.regrading[0], site.regrading[1] + 1, site.regrading[2])
    times = site.first_seen, site.due
    return ("site", site.site, *times, encode_state(site.state), site.learned, site.epoch, site.changed, regrading)
