"""Opening an embedded store: whose it is, in which format and unit, and what a killed crawl left on its active list.

The unit of the bucket byte (`cycle.fastest`) is kept with the store. Opened for writing with another, the bytes are
made anew before the store is handed out, in batches that are each atomic with how far the pass has come: a pass that
was killed goes on at the next opening, whatever unit that asks for. About 20 µs a page that was crawled.
"""

from __future__ import annotations

import logging
import secrets
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import InputError, StoreBound, StoreVersion
from webfountain.records import STATES, SiteState
from webfountain.store.codec import decode_page, decode_state, encode_page
from webfountain.store.contract import PLAN, lane_of, order_of
from webfountain.store.embedded.counts import Counts
from webfountain.store.embedded.disk import WriteBatch, open_reading, open_writing
from webfountain.store.embedded.keys import FORMAT, META, PAGE, ROW, STATE, VALUE, after, is_record, recrawl_key
from webfountain.store.embedded.mending import set_back
from webfountain.store.embedded.store import EmbeddedStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webfountain.records import PageRecord
    from webfountain.store.embedded.disk import Disk

__all__ = ["open_embedded"]

_FASTEST: Final = 96
"""Without a word of the caller bucket 0 changes so often in a period."""
_AT_ONCE: Final = 2000
_logger = logging.getLogger(__name__)


class _Meta(msgspec.Struct, frozen=True, array_like=True):
    """What a store says of itself. `generation` counts its openings: no lease token is ever given out twice.

    `log` names its change log.

    `unit` is what the bytes of the pages from `come_to` on are still counted in, while they are made anew.
    """

    format: int
    collection: str
    period_s: float
    fastest_s: float
    generation: int = 0
    log: str = ""
    unit: float | None = None
    come_to: bytes = PAGE


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
    with _closing_on_error(disk):
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
                _logger.warning(
                    "%s: the clock was %.0f s ahead when the store was last written; times after now are taken for now",
                    folder,
                    ahead,
                )
                return _store(disk, meta)  # what the first has read is another now
        return store


def _store(disk: Disk, meta: _Meta) -> EmbeddedStore:
    return EmbeddedStore(
        disk, period_s=meta.period_s, fastest_s=meta.fastest_s, generation=meta.generation, log=meta.log
    )


class _closing_on_error:  # noqa: N801  reads as the statement that it is
    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._disk.close()


def _empty(disk: Disk) -> None:
    """Delete all that a store holds, in one step."""
    batch = WriteBatch(raw_mode=True)
    batch.delete_range(b"", b"\xff")
    disk.write(batch)


def _agreed(disk: Disk, collection: str | None, period_s: float | None, fastest_s: float | None) -> _Meta:
    """What the store says of itself, which is what the caller expects of it, or a new store's first word."""
    value = disk.get(META)
    if value is None:
        if collection is None or period_s is None:
            raise InputError(f"{disk.folder}: there is no store here; a crawl of a collection makes one")
        return _Meta(FORMAT, collection, period_s, fastest_s or period_s / _FASTEST, log=secrets.token_hex(4))
    meta = _read_meta(disk, value)
    if collection is not None and meta.collection != collection:
        raise StoreBound(
            f"{disk.folder}: the store holds the collection {meta.collection!r}, not {collection!r}; "
            "give another --store for this one"
        )
    return meta


def _read_meta(disk: Disk, value: bytes) -> _Meta:
    try:
        written = msgspec.msgpack.decode(value)[0]
    except (msgspec.DecodeError, TypeError, LookupError):
        written = "unknown"
    if written != FORMAT:
        raise StoreVersion(
            f"{disk.folder}: the store has format {written}, this version reads format {FORMAT}; "
            "give another --store, or use the version that wrote it"
        )
    return msgspec.msgpack.decode(value, type=_Meta)


def _write_meta(disk: Disk, meta: _Meta, batch: WriteBatch) -> None:
    batch.put(META, msgspec.msgpack.encode(meta))
    disk.write(batch)


def _in_units_of(disk: Disk, meta: _Meta, period_s: float, fastest_s: float) -> _Meta:
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


def _rebucket(disk: Disk, meta: _Meta) -> _Meta:
    """Make the bucket bytes from `meta.come_to` on anew, from the pages' histories."""
    assert meta.unit is not None
    _logger.info("bucket bytes are made anew: bucket 0 is %g s now and was %g s", meta.fastest_s, meta.unit)
    bucket_of = _rule(disk, meta.unit, meta.fastest_s)
    counts = Counts(disk)
    ignored = [0.0] * (len(STATES) + 4)  # the site's counts do not change
    while found := list(islice(disk.scan(meta.come_to, after(PAGE)), _AT_ONCE)):
        batch = WriteBatch(raw_mode=True)
        for key, value in found:
            if is_record(value):
                record = decode_page(value)
                moved = msgspec.structs.replace(record, bucket=bucket_of(key[1:9], record))
                counts.remove(ignored, record)
                counts.add(ignored, moved)
                if moved != record:
                    batch.delete(recrawl_key(key[1:9], lane_of(record), order_of(record), key[9:]))
                    batch.put(recrawl_key(key[1:9], lane_of(moved), order_of(moved), key[9:]), b"")
                    batch.put(key, encode_page(moved))
        counts.stage(batch)
        meta = msgspec.structs.replace(meta, come_to=found[-1][0] + b"\x00")
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
