"""Rescue a damaged store: read its readable content as rows, and make a new store from them.

``check --repair`` uses this module for an embedded store with damaged files. RocksDB ends a scan at the first block
that it cannot read, and its own repair drops the whole table. This module resumes a scan after an unreadable block, so
one flipped bit loses only a few hundred entries. The damaged files are kept beside the store. Lost pages are found
again from the seeds, from the copies, and by new fetches of known pages (`report.wholeness`).
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import closing, contextmanager, suppress
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rocksdict import AccessType, Rdict, ReadOptions

from webfountain.errors import StoreError, StoreHeld
from webfountain.records import STATES, Change, PageRecord, SiteState
from webfountain.store import transfer_rows
from webfountain.store.codec import decode_page, decode_state
from webfountain.store.embedded import disk as layout
from webfountain.store.embedded import keys
from webfountain.store.embedded.counts import site_row
from webfountain.store.embedded.keys import Meta, after, arrival_of, is_record, place_of, waiting_record
from webfountain.store.embedded.transfer import load_folder
from webfountain.store.locations import is_in_use
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.store.transfer_rows import Row

__all__ = ["salvage", "trouble_of"]

_KEY_BYTES: Final = 17
"""Length in bytes of a page key: family, site, page."""
_TIME_BYTES: Final = 8
_change = msgspec.msgpack.Decoder(Change)


def salvage(folder: Path, card: Meta | None) -> transfer_rows.End:
    """Make a new store from the readable content of a folder; return the numbers of sites, pages and log entries.

    `card` is a copy of the store's description, for a store whose own description cannot be read. If the process is
    killed, a second call completes the work.

    Raises
    ------
    StoreHeld
        if another process writes to the store.
    StoreError
        if nothing in the store can be read.
    """
    if is_in_use(folder):
        raise StoreHeld(f"{folder}: a crawl has the store open; stop it first, then repair")
    work = folder / "salvage"
    try:
        if not (work / "whole").exists():
            shutil.rmtree(work, ignore_errors=True)
            _copy(folder / "db", work / "source")
            tally = transfer_rows.Tally()
            with _opened(work / "source") as db:
                load_folder(work / "new", tally.over(_rows(db, _meta(db, folder, card))))
            (work / "whole").write_bytes(msgspec.json.encode(tally.end()))
        if (folder / "db").exists():
            (folder / "db").rename(_free_name(folder))
        (work / "new" / "db").rename(folder / "db")
        (folder / "log-end").unlink(missing_ok=True)
        end = msgspec.json.decode((work / "whole").read_bytes(), type=transfer_rows.End)
        shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be repaired ({error.strerror or error})") from None
    return end


def trouble_of(folder: Path) -> str | None:
    """Return why the store in a folder cannot be opened for writing, or None if it can be. The store is not changed.

    Opening the store for reading would not show damage: if a table is missing, RocksDB silently shows an older state.
    """
    options = layout.options()
    options.create_if_missing(False)
    try:
        Rdict(
            str(folder / "db"),
            options,
            column_families={"default": options},
            access_type=AccessType.read_only(),
        ).close()
    except Exception as error:
        return str(error).partition("\n")[0]
    return None


def _free_name(folder: Path) -> Path:
    return next(path for number in count(1) if not (path := folder / f"db.damaged-{number}").exists())


def _copy(database: Path, to: Path) -> None:
    """Copy a database for the repair, if possible by hard links, because tables never change."""
    to.mkdir(mode=0o700, parents=True)
    for file in database.iterdir():
        if file.is_file() and file.name != "LOCK":
            if file.suffix == ".sst":
                with suppress(OSError):
                    os.link(file, to / file.name)
                    continue
            shutil.copyfile(file, to / file.name)


@contextmanager
def _opened(database: Path) -> Iterator[Rdict]:
    """Open a copy of the database; if that fails, let RocksDB rebuild the list of tables, and try again."""
    try:
        db = _open(database)
    except Exception:
        try:
            Rdict.repair(str(database), layout.options())
            db = _open(database)
        except Exception as error:
            line = str(error).partition("\n")[0]
            raise StoreError(f"{database.parent.parent}: nothing of the store can be read ({line})") from None
    with closing(db):
        yield db


def _open(database: Path) -> Rdict:
    options = layout.options()
    options.create_if_missing(False)
    options.set_paranoid_checks(False)  # a damaged end of the log is cut off and is not an error
    return Rdict(str(database), options, column_families={"default": options}, access_type=AccessType.read_write())


# ------------------------------------------------------------------- scans that continue after damage


def _readable(db: Rdict, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    options = ReadOptions()
    options.set_iterate_upper_bound(end)
    at = start
    while True:
        found = db.iter(options)
        found.seek(at)
        while found.valid():
            key = found.key()
            yield key, found.value()
            at = key + b"\x00"
            found.next()
        try:
            found.status()
        except Exception:
            behind = _behind(db, at, end)
            if behind is None:
                return
            at = behind
        else:
            return


def _behind(db: Rdict, at: bytes, end: bytes) -> bytes | None:
    """Return a readable key shortly after an unreadable block, or None if there is none."""
    # The search doubles its distance from the block, then bisects.
    begin = int.from_bytes(at[:_KEY_BYTES].ljust(_KEY_BYTES, b"\x00"), "big")
    last = int.from_bytes(end[:_KEY_BYTES].ljust(_KEY_BYTES, b"\x00"), "big")
    far = 1
    while not _is_readable(db, begin + far, end):
        far *= 2
        if begin + far >= last:
            return None
    near = far // 2
    while far - near > max(1, far >> 16):
        middle = (near + far) // 2
        if _is_readable(db, begin + middle, end):
            far = middle
        else:
            near = middle
    return _key_of(begin + far)


def _key_of(number: int) -> bytes:
    return number.to_bytes(_KEY_BYTES + 1, "big")[-_KEY_BYTES:]


def _is_readable(db: Rdict, number: int, end: bytes) -> bool:
    options = ReadOptions()
    options.set_iterate_upper_bound(end)
    found = db.iter(options)
    found.seek(_key_of(number))
    try:
        found.status()
    except Exception:
        return False
    return True


def _family(db: Rdict, family: bytes) -> Iterator[tuple[bytes, bytes]]:
    return _readable(db, family, after(family))


# ------------------------------------------------------------------------------------ rows


def _meta(db: Rdict, folder: Path, card: Meta | None) -> Meta:
    for _, value in _family(db, keys.META):
        with suppress(msgspec.MsgspecError):
            return msgspec.msgpack.decode(value, type=Meta)
    if card is None:
        raise StoreError(f"{folder}: the store's description is lost; restore a backup of the folder")
    return card


def _rows(db: Rdict, meta: Meta) -> Iterator[Row]:
    entries = _last_run(db)
    first = entries[0] if entries else 1
    # Entries may be missing, so the log gets a new name; then consumers read the whole list once.
    fastest_s = meta.unit or meta.fastest_s
    latest = next((keys.unpack_time(value) for _, value in _family(db, keys.CLOCK) if len(value) == _TIME_BYTES), 0.0)
    yield transfer_rows.Head(
        meta.collection, meta.period_s, fastest_s, secrets.token_hex(4), first - 1, latest=int(latest)
    )
    for key, value in _family(db, keys.VALUE):
        yield transfer_rows.Value(key[1:].decode(), value)
    for key, _ in _family(db, keys.BARRED):
        yield transfer_rows.ForgottenKey(key[1:].decode())
    names = {key[1:9]: value.decode() for key, value in _family(db, keys.NAME)}
    for key, value in _family(db, keys.PAGE):
        if value[:1] == keys.BAR and (name := value[1:].decode() or names.get(key[1:9])):
            yield transfer_rows.ForgottenKey(name, key[9:])
    yield from _sites(db, names)
    for sequence in entries:
        with suppress(msgspec.DecodeError):
            yield transfer_rows.ChangeEntry(_entry(db, sequence))


def _entry(db: Rdict, sequence: int) -> Change:
    change: Change = _change.decode(db.get(keys.CHANGE + keys.number(sequence)) or b"")
    return change


def _last_run(db: Rdict) -> range:
    """Return the numbers of the change log's newest readable entries, back to the first gap."""
    first = last = 0
    for key, value in _family(db, keys.CHANGE):
        number = place_of(key)
        try:
            _change.decode(value)
        except msgspec.DecodeError:
            continue
        first, last = (first, number) if number == last + 1 and last else (number, number)
    return range(first, last + 1) if last else range(0)


def _sites(db: Rdict, names: dict[bytes, str]) -> Iterator[Row]:
    rows = {key[1:]: value for key, value in _family(db, keys.SITE)}
    for sid in sorted({*names, *(sid for sid, _ in _grouped(db, keys.PAGE))}):
        tried = list(_tried(db, sid))
        name = names.get(sid) or next((site_of(record.url) for _, record in tried), None)
        if name is None:
            continue
        yield _site(db, sid, name, rows.get(name.encode()))
        for key, part in _readable(db, keys.PART + sid, after(keys.PART + sid)):
            yield transfer_rows.Part(name, place_of(key), part)
        known = set()
        for key, record in tried:
            known.add(key)
            yield transfer_rows.Page(name, key, record)
        for entry, value in _readable(db, keys.NEVER + sid, after(keys.NEVER + sid)):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, IndexError):
                key, record = waiting_record(name, entry, value)
                if key not in known:
                    known.add(key)
                    yield transfer_rows.Page(name, key, record, None if record.immediate else arrival_of(entry))


def _grouped(db: Rdict, family: bytes) -> Iterator[tuple[bytes, Any]]:
    return groupby(_family(db, family), key=lambda entry: entry[0][1:9])


def _tried(db: Rdict, sid: bytes) -> Iterator[tuple[bytes, PageRecord]]:
    for key, value in _readable(db, keys.PAGE + sid, after(keys.PAGE + sid)):
        if is_record(value):
            with suppress(msgspec.DecodeError, msgspec.ValidationError):
                yield key[9:], _asked_again(decode_page(value))


def _asked_again(record: PageRecord) -> PageRecord:
    """Return the record of a page without its digest; a crawled page becomes due at once."""
    # Without a digest, the crawl reads the links of the page even if the page is unchanged.
    due = record.last_crawled if record.state == "crawled" else record.due
    return msgspec.structs.replace(record, due=due, digest=None, etag=None, last_modified=None)


def _site(db: Rdict, sid: bytes, name: str, row: bytes | None) -> transfer_rows.Site:
    """Return the row of a site, without learned data and with a due time in the past."""
    state, epoch, first_seen = SiteState(), 0.0, 1.0
    with suppress(Exception):  # a damaged block, or bytes of another kind
        value = db.get(keys.STATE + sid)
        state = SiteState() if value is None else decode_state(value)
    if row is not None:
        _, first_seen, _, epoch = site_row(row)[len(STATES) :]
    return transfer_rows.Site(name, first_seen, first_seen, state, int(epoch))
