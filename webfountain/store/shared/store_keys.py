"""The keys of a shared store on its server that belong to no shard."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["StoreKeys", "store_keys"]


class StoreKeys(NamedTuple):
    """`prefix` begins each key of the store."""

    prefix: str
    meta: bytes
    """The store's description."""
    values: bytes
    """Its published values."""
    inbox: bytes
    """Notes to the crawl."""
    bell: bytes
    """Channel of signals between processes, which name the shards with something new."""


def store_keys(prefix: str) -> StoreKeys:
    """Return the keys of the store whose keys begin with `prefix`."""
    return StoreKeys(prefix, *(f"{{{prefix}}}{name}".encode() for name in ("meta", "values", "inbox", "bell")))
