"""A frontier in one folder: RocksDB, one writer, no server.

Life of a step
--------------
A call of the contract names sites and carries their leases (`store`). Tokens are looked up in memory (`leases`): a
step with a lost one stages nothing. What is left is staged into one write batch (`steps`): page records with their
queue entries, site rows, the counts that all of it moves (`rows`), the entries of the change log; then the batch is
written, whole or not at all (`disk`), and only then leases and fronts in memory follow. A process that dies between
two batches leaves a store that is whole: leases were never on disk, and what stood on the active list is made due
again when the store is opened next (`open_embedded`).

Each kind of key begins with one byte, and all keys of a site lie together (`disk`), so that a site's pages, its queues
and their order are read from one place on disk.

Opening a store says whose it is, in which format and unit, and mends what a killed crawl left on its active list. The
unit of the bucket byte (`cycle.fastest`) is kept with the store. Opened for writing with another, the bytes are
made anew before the store is handed out, in batches that are each atomic with how far the pass has come: a pass that
was killed goes on at the next opening, whatever unit that asks for. About 20 µs a page that was crawled.

What is made anew over a whole embedded store: its counts, and times that lie ahead because the clock was. Each is a
pass over all sites and pages in batches, for a store that nobody else writes; a pass that was killed is begun again
by the next call.
"""

from __future__ import annotations

import logging
import secrets
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import InputError, StoreBound, StoreError, StoreVersion
from webfountain.records import STATES, SiteState
from webfountain.store.contract import PLAN, recrawl_place
from webfountain.store.embedded.disk import (
    BUCKET,
    CLOCK,
    COPY,
    FORMAT,
    IMPORTING,
    META,
    PAGE,
    ROW,
    STATE,
    VALUE,
    Meta,
    WriteBatch,
    after,
    is_record,
    open_reading,
    open_writing,
    pack_time,
    recrawl_key,
    site_id,
    unpack_time,
)
from webfountain.store.embedded.rows import IMMEDIATE_AT, Counts, PageRows, SiteRows
from webfountain.store.embedded.store import EmbeddedStore
from webfountain.store.rules import decode_page, decode_state, encode_page, encode_state, period_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from webfountain.records import PageRecord
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.rows import SiteRow

__all__ = ["TOLERANCE_S", "latest", "open_embedded", "read_every_entry", "recount", "set_back"]

logger = logging.getLogger(__name__)

TOLERANCE_S: Final = 60.0
"""A clock may differ by so much between two runs without a word."""


def read_every_entry(disk: Disk) -> int:
    """Read all of a store; how many entries it has. StoreError at the first damaged block."""
    return sum(1 for _ in disk.scan(b"\x00", b"\xff"))


def latest(disk: Disk) -> float | None:
    """The time of the last step that told one; None before the first."""
    value = disk.get(CLOCK)
    return None if value is None else unpack_time(value)


def set_back(disk: Disk, at: float, *, period_s: float) -> float:
    """Let no time of the past lie after `at`: those of a run whose clock was ahead are taken for `at`.

    What such a run put off is put off from now on; the plan and the census of periods to come go. Returns how many
    seconds the clock was ahead; 0.0: it was not, and nothing was read.
    """
    was = latest(disk)
    ahead = 0.0 if was is None else was - at
    if ahead <= TOLERANCE_S:
        return 0.0
    _set_back_sites(disk, at, ahead)
    _set_back_pages(disk, at, ahead)
    batch = WriteBatch(raw_mode=True)
    Counts(disk).drop_rows(batch, since=period_of(at, period_s) + 1)
    batch.delete(VALUE + PLAN.encode())
    batch.put(CLOCK, pack_time(at))  # last: until then the next opening begins again
    disk.write(batch)
    return ahead


def recount(disk: Disk) -> None:
    """Count pages by state, site, bucket and WARC file anew."""
    sites, pages, counts = SiteRows(disk), PageRows(disk), Counts(disk)
    counts.clear()
    batch = WriteBatch(raw_mode=True)
    batch.delete_range(BUCKET, after(BUCKET))
    batch.delete_range(COPY, after(COPY))
    disk.write(batch)
    for found in _in_groups(sites):
        batch = WriteBatch(raw_mode=True)
        for name, row in found:
            row[: len(STATES)] = [0] * len(STATES)
            row[IMMEDIATE_AT] = 0
            counts.sites += 1
            for place in pages.listed(name, None):
                counts.add(row, place.record)
            sites.touch(name, row)
        sites.stage(batch)
        counts.stage(batch)
        disk.write(batch)


def _in_groups(sites: SiteRows) -> Iterator[list[tuple[str, SiteRow]]]:
    """All sites with their rows, some at a time."""
    name = ""
    while found := sites.after(name, _AT_ONCE):
        name = found[-1].site
        yield [(record.site, row) for record in found if (row := sites.row(record.site))]


def _set_back_sites(disk: Disk, at: float, ahead: float) -> None:
    sites = SiteRows(disk)
    for found in _in_groups(sites):
        batch = WriteBatch(raw_mode=True)
        for name, row in found:
            sites.set_back(batch, name, row, at=at, ahead=ahead)
            value = disk.get(STATE + site_id(name))
            if value is not None:
                batch.put(STATE + site_id(name), encode_state(_earlier_state(decode_state(value), at, ahead)))
        sites.stage(batch)
        disk.write(batch)


def _set_back_pages(disk: Disk, at: float, ahead: float) -> None:
    for batch, _ in _revised_pages(disk, PAGE, lambda _, record: _earlier_record(record, at, ahead)):
        disk.write(batch)


def _revised_pages(
    disk: Disk, start: bytes, revised: Callable[[bytes, PageRecord], PageRecord]
) -> Iterator[tuple[WriteBatch, bytes]]:
    """Batches, to be written in turn, that replace the records from `start` on, and how far each comes.

    `revised`: site id and record to the record that it is from now on, in the same state.
    """
    counts = Counts(disk)
    ignored = [0.0] * (len(STATES) + 4)  # how many pages a site has does not change
    while found := list(islice(disk.scan(start, after(PAGE)), _AT_ONCE)):
        batch = WriteBatch(raw_mode=True)
        for key, value in found:
            if is_record(value) and (now := revised(key[1:9], before := decode_page(value))) != before:
                counts.remove(ignored, before)
                counts.add(ignored, now)
                batch.delete(recrawl_key(key[1:9], *recrawl_place(before), key[9:]))
                batch.put(recrawl_key(key[1:9], *recrawl_place(now), key[9:]), b"")
                batch.put(key, encode_page(now))
        counts.stage(batch)
        start = found[-1][0] + b"\x00"
        yield batch, start


def _earlier_record(record: PageRecord, at: float, ahead: float) -> PageRecord:
    """What happened after `at` happened then; a next try that was put off by then is due so much sooner."""
    put_off = record.due is not None and record.due > at
    return msgspec.structs.replace(
        record,
        first_seen=min(record.first_seen, at),
        last_crawled=_at_most(record.last_crawled, at),
        last_changed=_at_most(record.last_changed, at),
        copied=_at_most(record.copied, at),
        due=max(at, (record.due or 0.0) - ahead) if put_off else record.due,
    )


def _earlier_state(state: SiteState, at: float, ahead: float) -> SiteState:
    return msgspec.structs.replace(
        state,
        next_at=max(at, state.next_at - ahead) if state.next_at > at else state.next_at,
        robots_at=_at_most(state.robots_at, at),
        sitemaps=tuple((url, min(read, at)) for url, read in state.sitemaps),
    )


def _at_most(time: float | None, at: float) -> float | None:
    return None if time is None else min(time, at)


_FASTEST: Final = 96
"""Without a word of the caller bucket 0 changes so often in a period."""
_AT_ONCE: Final = 2000


def open_embedded(
    folder: Path,
    *,
    collection: str | None,
    period_s: float | None,
    fastest_s: float | None = None,
    read_only: bool,
    fresh: bool = False,
    at: float | None = None,
) -> EmbeddedStore:
    """Open the store in a folder; see `open_store` for what it raises."""
    disk = open_reading(folder) if read_only else open_writing(folder)
    try:
        if fresh:
            _empty(disk)
        meta = _agreed(disk, collection, period_s, fastest_s)
        if not read_only:
            if meta.unit is not None:
                meta = _rebucket(disk, meta)
            meta = _in_units_of(disk, meta, period_s or meta.period_s, fastest_s or meta.fastest_s)
            meta = msgspec.structs.replace(meta, generation=meta.generation + 1)
            _write_meta(disk, meta, WriteBatch(raw_mode=True))
        store = _store(disk, meta)
        if not read_only:
            store.recover()
            if at is not None and (ahead := set_back(disk, at, period_s=meta.period_s)):
                logger.warning(
                    "%s: the clock was %.0f s ahead when the store was last written; times after now are taken for now",
                    folder,
                    ahead,
                )
                return _store(disk, meta)  # what the first has read is another now
        return store
    except BaseException:
        disk.close()
        raise


def _store(disk: Disk, meta: Meta) -> EmbeddedStore:
    return EmbeddedStore(
        disk, period_s=meta.period_s, fastest_s=meta.fastest_s, generation=meta.generation, log=meta.log
    )


def _empty(disk: Disk) -> None:
    """Delete all that a store holds, in one step."""
    batch = WriteBatch(raw_mode=True)
    batch.delete_range(b"", b"\xff")
    disk.write(batch)


def _agreed(disk: Disk, collection: str | None, period_s: float | None, fastest_s: float | None) -> Meta:
    """What the store says of itself, which is what the caller expects of it, or a new store's first word."""
    value = disk.get(META)
    if value is None:
        if collection is None or period_s is None:
            raise InputError(f"{disk.folder}: there is no store here; a crawl of a collection makes one")
        return Meta(FORMAT, collection, period_s, fastest_s or period_s / _FASTEST, log=secrets.token_hex(4))
    meta = _read_meta(disk, value)
    if collection is not None and meta.collection != collection:
        raise StoreBound(
            f"{disk.folder}: the store holds the collection {meta.collection!r}, not {collection!r}; "
            "give another --store for this one"
        )
    return meta


def _read_meta(disk: Disk, value: bytes) -> Meta:
    try:
        written = msgspec.msgpack.decode(value)[0]
    except (msgspec.DecodeError, TypeError, LookupError):
        written = "unknown"
    if written == IMPORTING:
        raise StoreError(f"{disk.folder}: an import into it did not come to its end; import again")
    if written != FORMAT:
        raise StoreVersion(
            f"{disk.folder}: the store has format {written}, this version reads format {FORMAT}; "
            "give another --store, or use the version that wrote it"
        )
    return msgspec.msgpack.decode(value, type=Meta)


def _write_meta(disk: Disk, meta: Meta, batch: WriteBatch) -> None:
    batch.put(META, msgspec.msgpack.encode(meta))
    disk.write(batch)


def _in_units_of(disk: Disk, meta: Meta, period_s: float, fastest_s: float) -> Meta:
    """The store with another period and another unit of the bucket byte, where they differ.

    Census rows and the plan are told in both and mean nothing in others: they go.
    """
    changed = msgspec.structs.replace(meta, period_s=period_s, fastest_s=fastest_s)
    if changed == meta:
        return meta
    batch = WriteBatch(raw_mode=True)
    batch.delete_range(ROW, after(ROW))
    batch.delete(VALUE + PLAN.encode())
    if meta.fastest_s != fastest_s:
        changed = msgspec.structs.replace(changed, unit=meta.fastest_s)
    _write_meta(disk, changed, batch)
    return changed if changed.unit is None else _rebucket(disk, changed)


def _rebucket(disk: Disk, meta: Meta) -> Meta:
    """Make the bucket bytes from `meta.come_to` on anew, from the pages' histories."""
    assert meta.unit is not None
    logger.info("bucket bytes are made anew: bucket 0 is %g s now and was %g s", meta.fastest_s, meta.unit)
    bucket_of = _rule(disk, meta.unit, meta.fastest_s)

    def rebucketed(sid: bytes, record: PageRecord) -> PageRecord:
        return msgspec.structs.replace(record, bucket=bucket_of(sid, record))

    for batch, come_to in _revised_pages(disk, meta.come_to, rebucketed):
        meta = msgspec.structs.replace(meta, come_to=come_to)
        _write_meta(disk, meta, batch)
    meta = msgspec.structs.replace(meta, unit=None, come_to=PAGE)
    _write_meta(disk, meta, WriteBatch(raw_mode=True))
    return meta


def _rule(disk: Disk, before_s: float, now_s: float) -> Callable[[bytes, PageRecord], int]:
    """From site id and record to the bucket byte in the new unit.

    The history and the site's mean change interval tell it as after a fetch; where there is no history, or the site
    has shown no change, the old byte tells what was believed.
    """
    from webfountain.core.buckets import bucket_of, interval_of  # noqa: PLC0415  numpy, 0.1 s, for this pass alone
    from webfountain.core.change_rate import Prior, Totals, estimate_interval  # noqa: PLC0415

    means: dict[bytes, float | None] = {}

    def rule(sid: bytes, record: PageRecord) -> int:
        believed = interval_of(record.bucket, before_s)
        if not record.history:
            return bucket_of(believed, now_s)
        if sid not in means:
            means.clear()
            value = disk.get(STATE + sid)
            state = SiteState() if value is None else decode_state(value)
            means[sid] = state.watched / state.changes if state.changes else None
        totals = Totals(record.checks, record.changes, (record.last_crawled or 0.0) - record.first_seen)
        prior = Prior(means[sid] or believed)
        return bucket_of(estimate_interval(record.history, totals=totals, prior=prior), now_s)

    return rule
