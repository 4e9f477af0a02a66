"""Open or create a shared store, and warn of server settings that endanger the store.

The URL may contain parameters of the store. ``?prefix=NAME`` is the beginning of each key, by default webfountain, and
``?shards=N`` is the number of shards of a new store, by default 256.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import InputError, StoreBound, StoreError, StoreHeld, StoreVersion
from webfountain.store.locations import without_password
from webfountain.store.shared.change_log import ShardedChangeLog
from webfountain.store.shared.claims import SharedClaims
from webfountain.store.shared.connection import SHORTEST_S, TIMEOUT_S, connect, query_of
from webfountain.store.shared.layout import KEYS, SUMS, MetaEntry, SharedMeta, store_keys
from webfountain.store.shared.lives import ServerLives
from webfountain.store.shared.maintenance import SharedMaintenance, UnitUse
from webfountain.store.shared.private import CRAWL, PrivateServer, is_running, socket_of
from webfountain.store.shared.scripts import Shards
from webfountain.store.shared.sites import rank_sites
from webfountain.store.shared.store import SharedStore
from webfountain.store.shared.transfer import fill
from webfountain.store.transfer_rows import head_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from webfountain.store.shared.connection import ServerConnection
    from webfountain.store.shared.layout import StoreKeys
    from webfountain.store.transfer_rows import Row

__all__ = ["FORMAT", "load_private", "load_shared", "open_private", "open_shared"]

logger = logging.getLogger(__name__)

FORMAT: Final = 5
IMPORTING: Final = 0
"""Format number of a store while its import is not complete."""
DEFAULT_PREFIX: Final = "webfountain"
DEFAULT_SHARDS: Final = 256
_MOST_SHARDS: Final = 16_384
_PRIVATE_SHARDS: Final = 16
"""Number of shards of a store on a private server: few, so that commands to all shards cost less."""
_FASTEST: Final = 96
"""Default ratio of the census period to the mean change interval of bucket 0."""


def open_shared(
    url: str,
    *,
    collection: str | None,
    period_s: float | None,
    fastest_s: float | None = None,
    fresh: bool = False,
    at: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    server: PrivateServer | None = None,
    private_socket: Path | None = None,
) -> SharedStore:
    """Open or create the store at a URL. Raises the same errors as `open_store`.

    `server` is closed with the store. `private_socket` is the socket of a server that another crawl started. If `at` is
    given, times later than the server's clock are corrected.
    """
    shown = without_password(url)
    prefix, wanted = _own_parameters(url, shown)
    keys = store_keys(prefix)
    connection = connect(url, parameters=parameters, private_socket=private_socket)
    try:
        entry = MetaEntry(connection, keys.meta)
        if fresh:
            _delete(connection, keys, entry)
        meta, is_new = _made(connection, entry, collection, period_s=period_s, fastest_s=fastest_s, shards=wanted)
        _check(connection)
        claims = SharedClaims(connection, prefix=prefix, count=meta.shards)
        use = UnitUse(claims)
        if collection is not None and period_s is not None:
            shards = Shards(connection, prefix=prefix, count=meta.shards)
            if is_new or server is not None:  # a server started by this crawl lost nothing that others use
                shards.keep_era()
            maintenance = SharedMaintenance(connection, shards, entry, values=keys.values, claims=claims, use=use)
            meta = maintenance.agree(period_s=period_s, fastest_s=fastest_s, corrects=at is not None)
            log = ShardedChangeLog(shards, ServerLives(connection, meta, key=keys.meta))
            rank_sites(shards, lambda: {change.site: change.at for change in log.every()})
    except BaseException:
        connection.close()
        raise
    return SharedStore(connection, keys, meta, claims=claims, use=use, server=server)


def open_private(
    folder: Path,
    *,
    collection: str | None,
    period_s: float | None,
    fastest_s: float | None = None,
    fresh: bool = False,
    at: float | None = None,
) -> SharedStore:
    """Open or create the store on the server of a crawl's folder. If the server is not running, start it; it then ends
    when the store is closed.

    Raises
    ------
    InputError
        if there is no store and `collection` is None.
    """
    if collection is None and not (folder / "valkey").is_dir():
        raise InputError(f"--store valkey://{folder}: there is no store there (`webfountain crawl --ants` makes one)")
    server = _started(folder)
    try:
        return open_shared(
            _private_url(folder),
            collection=collection,
            period_s=period_s,
            fastest_s=fastest_s,
            fresh=fresh,
            at=at,
            parameters=None if collection is None else {"client_name": CRAWL},
            server=server,
            private_socket=socket_of(folder) if server is None else None,
        )
    except BaseException:
        if server is not None:
            server.close()
        raise


def load_private(folder: Path, rows: Iterator[Row]) -> None:
    """Create a store from rows on the server of a folder, as `load_shared` does. Start the server if it does not
    run.
    """
    with _started(folder) or contextlib.nullcontext():
        load_shared(_private_url(folder), rows)


def _private_url(folder: Path) -> str:
    return f"unix://{socket_of(folder)}?shards={_PRIVATE_SHARDS}"


def _started(folder: Path) -> PrivateServer | None:
    """Start and return the folder's server, or return None if it is already running."""
    until = time.monotonic() + TIMEOUT_S
    while not is_running(folder):
        try:
            return PrivateServer(folder)
        except StoreHeld:  # its owner is just starting it
            if time.monotonic() > until:
                raise
            time.sleep(SHORTEST_S)
    return None


def load_shared(url: str, rows: Iterator[Row]) -> None:
    """Create a store from rows at a URL without a store. A call that was interrupted can be repeated.

    Raises
    ------
    InputError
        if there is a store at the URL.
    StoreError
        if the server cannot be used.
    """
    shown = without_password(url)
    prefix, count = _own_parameters(url, shown)
    keys, head = store_keys(prefix), head_of(rows)
    with contextlib.closing(connect(url)) as connection:
        entry = MetaEntry(connection, keys.meta)
        meta = SharedMeta(
            IMPORTING, head.collection, head.period_s, head.fastest_s, count, head.log, id=secrets.token_hex(8)
        )
        if not entry.add(meta):
            found = entry.read()
            if found is None or found.format != IMPORTING:
                raise InputError(f"{shown}: there is a store already; an import needs a new one")
            _delete(connection, keys, entry)
            entry.replace(meta)
        shards = Shards(connection, prefix=prefix, count=count)
        fill(connection, shards, rows, values=keys.values, head=head)
        rank_sites(shards, dict)
        shards.keep_era()
        entry.replace(msgspec.structs.replace(meta, format=FORMAT))


def _own_parameters(url: str, shown: str) -> tuple[str, int]:
    given = query_of(url)
    prefix = given.pop("prefix", DEFAULT_PREFIX)
    shards = given.pop("shards", str(DEFAULT_SHARDS))
    if given:
        raise InputError(f"--store {shown!r}: {next(iter(given))} is not a parameter (allowed: prefix, shards)")
    if not shards.isdigit() or not 1 <= int(shards) <= _MOST_SHARDS:
        raise InputError(f"--store {shown!r}: shards={shards} is not allowed (allowed: 1 to {_MOST_SHARDS})")
    if not prefix or any(each in prefix for each in "{}"):
        raise InputError(f"--store {shown!r}: prefix={prefix!r} is not allowed (allowed: a name without braces)")
    return prefix, int(shards)


def _made(
    connection: ServerConnection,
    entry: MetaEntry,
    collection: str | None,
    *,
    period_s: float | None,
    fastest_s: float | None,
    shards: int,
) -> tuple[SharedMeta, bool]:
    """Create the store if needed. Return the description, and whether this call created the store."""
    shown, is_new = connection.shown, False
    meta = entry.read()
    if meta is None:
        if collection is None or period_s is None:
            raise InputError(f"--store {shown!r}: there is no store there (`webfountain crawl` makes one)")
        fastest = period_s / _FASTEST if fastest_s is None else fastest_s
        made = SharedMeta(
            FORMAT, collection, period_s, fastest, shards, log=secrets.token_hex(4), id=secrets.token_hex(8)
        )
        is_new = entry.add(made)
        meta = made if is_new else entry.read() or made
    if meta.format == IMPORTING:
        raise StoreError(f"{shown}: an earlier import into it is incomplete; import again")
    if meta.format != FORMAT:
        raise StoreVersion(
            f"{shown}: the store has format {meta.format}; this version reads {FORMAT}; "
            "export it with the version that made it, then import the file with this version"
        )
    if collection is not None and meta.collection != collection:
        raise StoreBound(f"{shown}: the store holds the collection {meta.collection!r}, not {collection!r}")
    return meta, is_new


def _delete(connection: ServerConnection, keys: StoreKeys, entry: MetaEntry) -> None:
    """Delete a whole store, its description last."""
    found = entry.read()
    if found is not None:
        for names, apart in ((KEYS, ()), (SUMS, SUMS)):
            shards = Shards(connection, prefix=keys.prefix, count=found.shards, apart=apart)
            for name in names:
                shards.ask("UNLINK", name)
        connection.ask(entry.key, "UNLINK", entry.key, keys.values, keys.bell)


def _check(connection: ServerConnection) -> None:
    """Warn if the settings of the server allow it to evict keys, or to lose writes in a crash."""
    policy = connection.setting("maxmemory-policy")
    if policy not in (None, "noeviction"):
        logger.warning(
            "The server at %s has maxmemory-policy %s: it may delete parts of the frontier when memory is "
            "short; set it to noeviction",
            connection.shown,
            policy,
        )
    info = connection.info()
    if not info.get("aof_enabled", 1):
        logger.warning(
            "The server at %s has no append-only file: if it dies, all writes since its last snapshot are lost; "
            "set appendonly yes",
            connection.shown,
        )
