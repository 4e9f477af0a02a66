"""The orders in which a store lists its sites, with ranks and cursors.

A rank has eight bytes, which sort in the same order as the sites. Sites with equal rank are in order of name. A cursor
is the rank and the name of a site, or "" before the first site. A list is read in parts; reading a part takes time
proportional to its number of sites. If the rank of a site changes while the list is read, the site may be listed twice
or not at all.
"""

from __future__ import annotations

import struct
from typing import Final, get_args

from webfountain.errors import InputError
from webfountain.store.answers import SiteOrder

__all__ = ["SITE_ORDERS", "UNRANKED", "SiteOrder", "cursor_of", "most_first", "place_of", "rank_of_due", "ranks_of"]

SITE_ORDERS: Final[tuple[SiteOrder, ...]] = get_args(SiteOrder)
UNRANKED: Final = "this store was last written by an older version: its sites are sorted once a crawl has opened it"
_MOST: Final = 2**53
_MILLISECONDS: Final = 1000
_FIRST: Final = bytes(8)
_time = struct.Struct(">d")


def most_first(number: float) -> bytes:
    """Return the rank of a number from 0 to 2^53; larger numbers come first."""
    return (_MOST - int(min(number, _MOST))).to_bytes(8, "big")


def rank_of_due(due: float) -> bytes:
    """Return the rank of a due time; earlier times come first."""
    return _time.pack(max(due, 0.0) + 0.0)


def ranks_of(*, pages: int, failed: int, due: float, changed: float, is_active: bool) -> dict[SiteOrder, bytes]:
    """Return the ranks of a site in all orders. `changed` is the time of the site's last change, UTC seconds, or 0.0 if
    unknown.
    """
    return {
        "name": _FIRST,
        "pages": most_first(pages),
        "due": _FIRST if is_active else rank_of_due(due),
        "failed": most_first(failed),
        "changed": most_first(max(changed, 0.0) * _MILLISECONDS),
    }


def cursor_of(rank: bytes, name: str) -> str:
    """Return the cursor after a site."""
    return rank.hex() + name


def place_of(cursor: str) -> tuple[bytes, str]:
    """Return the rank and the name in a cursor, or (b"", "") for the cursor "". Raise InputError for a text that is not
    a cursor.
    """
    if not cursor:
        return b"", ""
    try:
        rank = bytes.fromhex(cursor[:16])
        cursor[16:].encode()
    except ValueError:
        rank = b""
    if len(rank) != len(_FIRST) or cursor[:16] != rank.hex():
        raise InputError(f"{cursor!r} is not a cursor of a list of sites")
    return rank, cursor[16:]
