"""Opening an embedded store: whose it is, in which format, and what a killed crawl left on its active list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.errors import InputError, StoreBound, StoreVersion
from webfountain.store.embedded.disk import WriteBatch, open_reading, open_writing
from webfountain.store.embedded.keys import FORMAT, META, ROW, after
from webfountain.store.embedded.store import EmbeddedStore

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.embedded.disk import Disk

__all__ = ["open_embedded"]


class _Meta(msgspec.Struct, frozen=True, array_like=True):
    """What a store says of itself. `generation` counts its openings: no lease token is ever given out twice."""

    format: int
    collection: str
    period_s: float
    generation: int = 0


def open_embedded(
    folder: Path, *, collection: str | None, period_s: float | None, read_only: bool, fresh: bool = False
) -> EmbeddedStore:
    """Open the store in a folder; see `open_store` for what it raises."""
    if read_only:
        disk = open_reading(folder)
        with _closing_on_error(disk):
            meta = _agreed(disk, collection, period_s)
            return EmbeddedStore(disk, period_s=meta.period_s, generation=meta.generation)
    disk = open_writing(folder)
    with _closing_on_error(disk):
        if fresh:
            _empty(disk)
        meta = _agreed(disk, collection, period_s)
        meta = msgspec.structs.replace(meta, period_s=period_s or meta.period_s, generation=meta.generation + 1)
        _write_meta(disk, meta)
        store = EmbeddedStore(disk, period_s=meta.period_s, generation=meta.generation)
        store.recover()
        return store


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
    for first in range(256):
        batch.delete_range(bytes([first]), after(bytes([first])))
    disk.write(batch)


def _agreed(disk: Disk, collection: str | None, period_s: float | None) -> _Meta:
    """What the store says of itself, which is what the caller expects of it, or a new store's first word."""
    value = disk.get(META)
    if value is None:
        if collection is None or period_s is None:
            raise InputError(f"{disk.folder}: there is no store here; a crawl of a collection makes one")
        return _Meta(FORMAT, collection, period_s)
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


def _write_meta(disk: Disk, meta: _Meta) -> None:
    """Write what the store says of itself; census rows of periods of another length mean nothing and go."""
    batch = WriteBatch(raw_mode=True)
    before = disk.get(META)
    if before is not None and _read_meta(disk, before).period_s != meta.period_s:
        batch.delete_range(ROW, after(ROW))
    batch.put(META, msgspec.msgpack.encode(meta))
    disk.write(batch)
