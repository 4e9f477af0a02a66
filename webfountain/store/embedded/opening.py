"""Open an embedded store: check owner, format and units, and make the active sites of a killed crawl due.

A store that is opened for writing is first converted to the caller's units and time (`maintenance`). If an older
version wrote the store, the index of its sites is created.
"""

from __future__ import annotations

import logging
import secrets
from contextlib import closing
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import InputError, StoreBound, StoreError, StoreVersion
from webfountain.records import Change
from webfountain.store.change_log import BEGIN_ANEW
from webfountain.store.embedded.counts import log_bounds
from webfountain.store.embedded.disk import WriteBatch, open_reading, open_writing
from webfountain.store.embedded.keys import CHANGE, FORMAT, IMPORTING, META, RANK, RANKED, Meta, after
from webfountain.store.embedded.maintenance import in_units_and_time, put_meta, recover
from webfountain.store.embedded.side_files import (
    LOG_END,
    LogEnd,
    NoLogEnd,
    damaged,
    is_damaged,
    keep_card,
    kept_card,
    remove_card,
)
from webfountain.store.embedded.site_rows import SiteRows
from webfountain.store.embedded.store import EmbeddedStore
from webfountain.store.locations import ANOTHER_STORE

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.embedded.disk import Disk

__all__ = ["open_embedded"]

logger = logging.getLogger(__name__)

_FASTEST: Final = 96
"""Default ratio of the census period to the mean change interval of bucket 0."""

_WITHOUT_EXPORT: Final = 1
"""Format of version 1.0, which has no export."""

_AT_ONCE: Final = 2000
_entry = msgspec.msgpack.Decoder(Change)


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
    """Open the store in a folder; see `open_store` for its errors."""
    if not (folder / "db" / "CURRENT").exists() and is_damaged(folder):
        raise damaged(folder, "db/CURRENT is missing")
    if not read_only and not (folder / "db").is_dir():
        remove_card(folder)  # the card may belong to a store that somebody deleted by hand
    disk = open_reading(folder) if read_only else open_writing(folder)
    try:
        if fresh:
            _empty(disk)
            remove_card(folder)
        meta = _agreed(disk, collection, period_s, fastest_s)
        if not read_only:
            recover(disk)
            period, fastest = period_s or meta.period_s, fastest_s or meta.fastest_s
            meta = in_units_and_time(disk, meta, period_s=period, fastest_s=fastest, at=at)
            meta = _begun(disk, _with_ranks(disk, meta))
        return EmbeddedStore(disk, meta, NoLogEnd() if read_only else LogEnd(folder))
    except BaseException:
        disk.close()
        raise


def _begun(disk: Disk, meta: Meta) -> Meta:
    """Increase the stored number of openings. If entries may be missing at the end of the change log, give the log
    another name.
    """
    _, last = log_bounds(disk)
    with closing(LogEnd(disk.folder)) as end:
        # The folder may have contained an older store, whose number is still in the file.
        missing = end.last - last if meta.generation else 0
        is_unsure = missing > 0 or (meta.generation > 0 and end.is_damaged)
        log = secrets.token_hex(4) if is_unsure else meta.log
        meta = msgspec.structs.replace(meta, generation=meta.generation + 1, log=log)
        put_meta(disk, meta, WriteBatch(raw_mode=True))
        keep_card(disk.folder, meta)
        end.note(last)
    if is_unsure:
        _warn_of_loss(disk, missing)
    return meta


def _warn_of_loss(disk: Disk, missing: int) -> None:
    if missing > 0:
        lost = f"the last {missing} entries of the change log and their steps are lost"
        what = f"{lost}; their pages are fetched again"
    else:
        what = f"{LOG_END} is damaged; entries of the change log may be lost"
    logger.warning("%s: %s. The log continues under another name. Its consumers must %s", disk.folder, what, BEGIN_ANEW)


def _empty(disk: Disk) -> None:
    """Delete the whole content of a store in one step."""
    batch = WriteBatch(raw_mode=True)
    batch.delete_range(b"", b"\xff")
    disk.write(batch)


def _agreed(disk: Disk, collection: str | None, period_s: float | None, fastest_s: float | None) -> Meta:
    """Return the description of the store, or a new description for a new store. Raise StoreBound if the store contains
    another collection than the caller expects.
    """
    value = disk.get(META)
    if value is None:
        if is_damaged(disk.folder) and (
            disk.read_only or kept_card(disk.folder) or next(disk.scan(b"\x00", b"\xff"), None)
        ):
            raise damaged(disk.folder, "its description is missing")
        if collection is None or period_s is None:
            raise InputError(f"{disk.folder}: there is no store here; a crawl of a collection creates one")
        return Meta(FORMAT, collection, period_s, fastest_s or period_s / _FASTEST, log=secrets.token_hex(4))
    meta = _read_meta(disk, value)
    if collection is not None and meta.collection != collection:
        raise StoreBound(
            f"{disk.folder}: the store holds the collection {meta.collection!r}, not {collection!r}; "
            f"{ANOTHER_STORE} for this one"
        )
    return meta


def _read_meta(disk: Disk, value: bytes) -> Meta:
    try:
        written = msgspec.msgpack.decode(value)[0]
    except (msgspec.DecodeError, TypeError, LookupError):
        written = "unknown"
    if written == IMPORTING:
        raise StoreError(f"{disk.folder}: an earlier import into it is incomplete; import again")
    if written != FORMAT:
        raise StoreVersion(
            f"{disk.folder}: the store has format {written}, this version reads format {FORMAT}; {_way_on(written)}"
        )
    return msgspec.msgpack.decode(value, type=Meta)


def _way_on(written: object) -> str:
    """Return advice for the user about a store of another format."""
    if not isinstance(written, int):
        return f"it is damaged or not a store of webfountain; {ANOTHER_STORE}"
    if written > FORMAT:
        return f"a later webfountain wrote it: use that version, or {ANOTHER_STORE}"
    if written == _WITHOUT_EXPORT:
        return (
            f"webfountain 1.0 wrote it, which has no export: {ANOTHER_STORE} and crawl anew, or use 1.0 "
            "(the WARC files of its copies can be read by any tool)"
        )
    return "export it with the version that wrote it, then import the file with this version"


def _with_ranks(disk: Disk, meta: Meta) -> Meta:
    """Create the index of sites if the store has none, by a scan of the sites and of the change log."""
    if meta.is_ranked:
        return meta
    batch = WriteBatch(raw_mode=True)
    for family in (RANK, RANKED):
        batch.delete_range(family, after(family))
    disk.write(batch)
    sites, changes, name = SiteRows(disk), _changes_by_site(disk), ""
    while found := sites.after(name, _AT_ONCE):
        name = found[-1].site
        batch = WriteBatch(raw_mode=True)
        for record in found:
            sites.touch(record.site, sites.row(record.site) or [])
            if record.site in changes:
                sites.ranks.note(record.site, changes[record.site])
        sites.stage(batch)
        disk.write(batch)
    meta = msgspec.structs.replace(meta, is_ranked=True)
    put_meta(disk, meta, WriteBatch(raw_mode=True))
    return meta


def _changes_by_site(disk: Disk) -> dict[str, float]:
    entries = (_entry.decode(value) for _, value in disk.scan(CHANGE, after(CHANGE)))
    return {entry.site: entry.at for entry in entries}
