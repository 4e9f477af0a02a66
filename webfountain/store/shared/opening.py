"""Opening a shared store: whose it is, how it was made, and whether its server is one to trust a frontier to.

The store's own parameters stand in the URL: ``?prefix=NAME`` begins each key [webfountain], ``?shards=N`` is how many
shards a new store gets [256]; a store that exists keeps its number.
"""

from __future__ import annotations

import logging
import random
import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import InputError, StoreBound, StoreVersion
from webfountain.store.opening import without_password
from webfountain.store.shared.connection import connect, query_of
from webfountain.store.shared.scripts import KEYS, Shards
from webfountain.store.shared.store import SharedStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.store.shared.connection import Connection

__all__ = ["FORMAT", "open_shared"]

FORMAT: Final = 2
DEFAULT_PREFIX: Final = "webfountain"
DEFAULT_SHARDS: Final = 256
_MOST_SHARDS: Final = 16_384
_FASTEST: Final = 96
"""Without a word of the caller bucket 0 changes so often in a period."""
logger = logging.getLogger(__name__)


class _Meta(msgspec.Struct, frozen=True):
    """What a store says of itself."""

    format: int
    collection: str
    period_s: float
    fastest_s: float
    shards: int
    log: str
    """Name of its change log, in the log's cursors."""


def open_shared(
    url: str,
    *,
    collection: str | None,
    period_s: float | None,
    fastest_s: float | None = None,
    fresh: bool = False,
    parameters: Mapping[str, Any] | None = None,
) -> SharedStore:
    """Open or make the store at a URL; see `open_store` for what it raises."""
    shown = without_password(url)
    prefix, wanted = _own_parameters(url, shown)
    connection = connect(url, parameters=parameters)
    try:
        key = f"{{{prefix}}}meta".encode()
        if fresh:
            _delete(connection, prefix, key)
        meta = _made(connection, key, collection=collection, period_s=period_s, fastest_s=fastest_s, shards=wanted)
        _check(connection)
    except BaseException:
        connection.close()
        raise
    return SharedStore(
        connection,
        Shards(connection, prefix=prefix, count=meta.shards),
        values=f"{{{prefix}}}values".encode(),
        period_s=meta.period_s,
        fastest_s=meta.fastest_s,
        rng=random.Random(),
        log=meta.log,
    )


def _own_parameters(url: str, shown: str) -> tuple[str, int]:
    given = query_of(url)
    prefix = given.pop("prefix", DEFAULT_PREFIX)
    shards = given.pop("shards", str(DEFAULT_SHARDS))
    if given:
        raise InputError(f"--store {shown!r}: {next(iter(given))} is no parameter (allowed: prefix, shards)")
    if not shards.isdigit() or not 1 <= int(shards) <= _MOST_SHARDS:
        raise InputError(f"--store {shown!r}: shards={shards} is not allowed (allowed: 1 to {_MOST_SHARDS})")
    if not prefix or any(each in prefix for each in "{}"):
        raise InputError(f"--store {shown!r}: prefix={prefix!r} is not allowed (allowed: a name without braces)")
    return prefix, int(shards)


def _made(
    connection: Connection,
    key: bytes,
    *,
    collection: str | None,
    period_s: float | None,
    fastest_s: float | None,
    shards: int,
) -> _Meta:
    """What the store says of itself; a new one is made. Two processes that make it at once get the same."""
    shown = connection.shown
    found = connection.ask(key, "GET", key)
    if found is None:
        if collection is None or period_s is None:
            raise InputError(f"--store {shown!r}: there is no store there (`webfountain crawl` makes one)")
        fastest = period_s / _FASTEST if fastest_s is None else fastest_s
        made = _Meta(FORMAT, collection, period_s, fastest, shards, secrets.token_hex(4))
        connection.ask(key, "SET", key, msgspec.json.encode(made), "NX")
        found = connection.ask(key, "GET", key)
    meta = msgspec.json.decode(found, type=_Meta)
    if meta.format != FORMAT:
        raise StoreVersion(f"{shown}: a store of format {meta.format}; this version reads {FORMAT}")
    if collection is not None and meta.collection != collection:
        raise StoreBound(f"{shown}: holds collection {meta.collection!r}, not {collection!r}")
    return meta


def _delete(connection: Connection, prefix: str, key: bytes) -> None:
    """Take away all of a store, what it says of itself last."""
    found = connection.ask(key, "GET", key)
    if found is not None:
        shards = Shards(connection, prefix=prefix, count=msgspec.json.decode(found, type=_Meta).shards)
        for name in KEYS:
            shards.delete(name)
        connection.ask(key, "UNLINK", key, f"{{{prefix}}}values")


def _check(connection: Connection) -> None:
    """Say what a frontier would suffer from: keys that may be evicted, writes that a crash may lose."""
    policy = connection.setting("maxmemory-policy")
    if policy not in (None, "noeviction"):
        logger.warning(
            "The server at %s has maxmemory-policy %s: it may drop parts of the frontier when memory is short; "
            "set it to noeviction",
            connection.shown,
            policy,
        )
    info = connection.info()
    if not info.get("aof_enabled", 1):
        logger.warning(
            "The server at %s keeps no append-only file: when it dies, what it was told since its last snapshot is "
            "lost; set appendonly yes",
            connection.shown,
        )
