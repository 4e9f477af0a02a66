"""The layout of a shared store on its server: its keys, its description, and the numbers that its scripts use.

Each Lua script begins with the constants of this module (`scripts`). The description is the value of one key:
collection, format, units and the name of the change log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec

from webfountain.errors import StoreError
from webfountain.records import STATES
from webfountain.store.lanes import ADVANCED, CLASSES, LANES, RETRY, RETRY_SHARE

if TYPE_CHECKING:
    from webfountain.store.shared.connection import ServerConnection

__all__ = [
    "CONSTANTS",
    "FIRST_LANE",
    "HAS_COPY",
    "HAS_DUE",
    "KEYS",
    "LEASED",
    "SUMS",
    "MetaEntry",
    "SharedMeta",
    "StoreKeys",
    "store_keys",
]

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
SUMS: Final = ("counts", "buckets", "copies")
"""Keys of a shard; ``check --repair`` computes their contents again. Until all new values are computed, they are stored
under keys with the suffix "/new".
"""
FIRST_LANE: Final = CLASSES + 1
"""Number of the first recrawl lane, after the immediate lane (0) and the never-crawled classes (1 to 64)."""
LEASED: Final = 65535
"""Number of the lane that scripts report for leased URLs."""
NODE_SIZE: Final = 96
"""Number of items in a full node of the tree in which scripts keep a site's queues."""
HAS_DUE: Final = 8
HAS_COPY: Final = 16
"""Flags in the first byte of a page's value, which also contains the page's state."""
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
"""Constants that the scripts use."""


class StoreKeys(NamedTuple):
    """The keys of a store that belong to no shard. Each key of the store begins with `prefix`."""

    prefix: str
    meta: bytes
    values: bytes
    inbox: bytes
    """The feed of notes to the crawl."""
    bell: bytes
    """Sorted set of the signals between processes (`due_times`)."""


def store_keys(prefix: str) -> StoreKeys:
    """Return the keys of the store with this prefix."""
    return StoreKeys(prefix, *(f"{{{prefix}}}{name}".encode() for name in ("meta", "values", "inbox", "bell")))


class SharedMeta(msgspec.Struct, frozen=True):
    """The description of a store: the value of the key `meta`."""

    format: int
    collection: str
    period_s: Annotated[float, msgspec.Meta(gt=0)]
    fastest_s: Annotated[float, msgspec.Meta(gt=0)]
    shards: Annotated[int, msgspec.Meta(ge=1, le=16_384)]
    log: str
    """Name of the change log, used in the log's cursors."""
    id: str = ""
    """Permanent name of the store."""
    change: str = ""
    """Name of the conversion or correction that is running; "" if there is none."""
    unit: float = 0.0
    """During a conversion, the unit of the bucket bytes that are not yet converted, in seconds."""
    correction: tuple[float, float] | None = None
    """Parameters `at` and `ahead` of a running `ClockCorrection`, or None."""


class MetaEntry:
    """Reads and writes the description of a store. Each method takes one round trip."""

    def __init__(self, connection: ServerConnection, key: bytes) -> None:
        self._connection = connection
        self.key = key

    def read(self) -> SharedMeta | None:
        """Return the description, or None if there is no store.

        Raises
        ------
        StoreError
            if the value is not a description.
        """
        found = self._connection.ask(self.key, "GET", self.key)
        try:
            return None if found is None else msgspec.json.decode(found, type=SharedMeta)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{self._connection.shown}: {self.key.decode(errors='replace')} does not describe a store ({error}): "
                "restore it from a backup, or give another ?prefix="
            ) from None

    def add(self, meta: SharedMeta) -> bool:
        """Write the description of a new store. Return False if the store already exists."""
        return self._connection.ask(self.key, "SET", self.key, msgspec.json.encode(meta), "NX") is not None

    def replace(self, meta: SharedMeta) -> None:
        self._connection.ask(self.key, "SET", self.key, msgspec.json.encode(meta))
