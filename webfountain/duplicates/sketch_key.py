"""The key of a store's sketches, which prevents authors of pages from predicting sketches.

An author who can compute sketches can choose words until a text has the sketch of another page. So the hashes of the
words use a random number as key. The number is drawn once and kept in the store, where all ants of a crawl find it,
because they read each other's indices of duplicates. An export of the store contains it, so an imported store can use
the existing index next to the copies. This is safe: whoever reads an export can read all data of the crawl anyway. If
the key becomes known, it only costs more comparisons, because across sites the texts decide.

Place in the walk: read once, when a crawl with ``duplicates.detect`` opens its index.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from webfountain.store.contract import SKETCH_KEY

if TYPE_CHECKING:
    from webfountain.store.contract import Board

__all__ = ["sketch_key"]

_BYTES: Final = 8


def sketch_key(board: Board) -> int:
    """Return the key of a store's sketches, a number of 64 bits. If there is none, draw it and store it."""
    return int.from_bytes(board.settle_value(SKETCH_KEY, secrets.token_bytes(_BYTES)), "little")
