"""Numbers and names that the Lua scripts of a shared store share with the Python code.

They are defined only here. `step_text` writes them in front of each script.
"""

from __future__ import annotations

from typing import Final

from webfountain.records import STATES
from webfountain.store.lanes import ADVANCED, CLASSES, LANES, RETRY, RETRY_SHARE

__all__ = ["CONSTANTS", "FIRST_LANE", "HAS_COPY", "HAS_DUE", "KEYS", "LEASED", "NODE_SIZE"]

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
