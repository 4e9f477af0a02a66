"""Keys of a shared store on its server, with the numbers that its Lua scripts share with the Python code.

They are defined only here. `scripts` writes them in front of each script.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from webfountain.records import STATES
from webfountain.store.lanes import ADVANCED, CLASSES, LANES, RETRY, RETRY_SHARE

__all__ = ["CONSTANTS", "FIRST_LANE", "HAS_COPY", "HAS_DUE", "KEYS", "LEASED", "NODE_SIZE", "StoreKeys", "store_keys"]

KEYS: Final = (
    "pages",
    "nodes",
    "sites",
    "due",
    "names",
    "counts",
    "buckets",
    "rows",
    "copies",
    "barred",
    "hurry",
    "log",
    "life",
    "ranks",
)
"""The keys of a shard, in the order in which each script receives them."""
FIRST_LANE: Final = CLASSES + 1
"""Number of the first lane of the recrawl queue. Lane 0 is the immediate lane, then come the classes of the
never-crawled queue.
"""
LEASED: Final = 65535
"""The lane of leased URLs."""
NODE_SIZE: Final = 96
"""Number of items in a full node of a site's tree of places."""
HAS_DUE: Final = 8
HAS_COPY: Final = 16
"""Flags in the first byte of a page's value, next to its state."""

CONSTANTS: Final[dict[str, int]] = {
    "IMMEDIATE": 0,
    "FIRST_CLASS": 1,
    "LAST_CLASS": CLASSES,
    "FIRST_LANE": FIRST_LANE,
    "ADVANCED": FIRST_LANE + ADVANCED,
    "RETRY": FIRST_LANE + RETRY,
    "LAST_LANE": FIRST_LANE + LANES - 1,
    "LEASED": LEASED,
    "RETRY_SHARE": RETRY_SHARE,
    "NEVER_CRAWLED": STATES.index("never-crawled"),
    "CRAWLED": STATES.index("crawled"),
    "HAS_DUE": HAS_DUE,
    "HAS_COPY": HAS_COPY,
    "NODE_SIZE": NODE_SIZE,
    "COPY_BYTES": 18,
}
"""Constants of the scripts."""


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
