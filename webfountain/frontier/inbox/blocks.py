"""Keep the list of blocked URL prefixes. The crawl fetches no page below a blocked prefix until the block ends.

The list is a published value, so blocks apply to every process of the crawl and survive restarts. A blocked page and
its copy are kept. The active list checks blocks when a site becomes active and when a page is leased.
"""

from __future__ import annotations

import secrets
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.urls import site_of

if TYPE_CHECKING:
    from webfountain.store.contract import Board, FrontierStore

__all__ = [
    "BLOCKED",
    "BLOCKS",
    "MAX_BLOCKS",
    "RECHECK_S",
    "BlockedUrls",
    "UrlBlock",
    "blocks_of",
    "change_blocks",
    "ends",
]

BLOCKS: Final = "blocks"
"""Name of the published value with the blocks."""
MAX_BLOCKS: Final = 1000
"""Maximum number of blocks."""
_LOCK: Final = "role/blocks"
_LOCK_S: Final = 10.0
BLOCKED: Final = "blocked"
"""Error word of a page that was leased while it was blocked."""
RECHECK_S: Final = 3600.0
"""Longest time between two checks of a blocked URL or site, in seconds."""


class UrlBlock(msgspec.Struct, frozen=True, array_like=True):
    """A prefix of canonical URLs that must not be fetched: a site (`http://a.example/`) or a part of one."""

    prefix: str
    until: float | None = None
    """End of the block, UTC seconds, or None if only an `UnblockNote` ends it."""


def blocks_of(board: Board) -> tuple[UrlBlock, ...]:
    """Return the blocks of a store, including ended blocks, in order of prefix."""
    value = board.value(BLOCKS)
    try:
        return () if value is None else msgspec.msgpack.decode(value, type=tuple[UrlBlock, ...])
    except msgspec.DecodeError:
        return ()  # a later version wrote it


def change_blocks(store: FrontierStore, block: UrlBlock, *, blocked: bool, at: float) -> bool:
    """Add, replace or remove the block of a canonical prefix, and remove ended blocks.

    If another process is changing the list, do nothing and return False.
    """
    claims = store.claims
    if claims is None:
        _change(store.board, block, blocked=blocked, at=at)
        return True
    owner = secrets.token_hex(8)
    [held] = claims.claim([_LOCK], owner=owner, until=at + _LOCK_S, at=at)
    if held.owner != owner:
        return False
    _change(store.board, block, blocked=blocked, at=at)
    claims.drop({_LOCK: at}, owner=owner, at=at)
    return True


def ends(block: UrlBlock) -> float:
    """Return the end of a block, or inf if only an `UnblockNote` ends it."""
    return inf if block.until is None else block.until


class BlockedUrls:
    """The current blocks, by site."""

    __slots__ = ("_blocks", "by_site")

    def __init__(self, blocks: tuple[UrlBlock, ...] = ()) -> None:
        self._blocks: tuple[UrlBlock, ...] = ()
        self.by_site: dict[str, list[tuple[str, float]]] = {}
        """The (prefix, end) pairs of the blocks, by site."""
        self.adopt(blocks)

    def adopt(self, blocks: tuple[UrlBlock, ...]) -> bool:
        """Adopt the blocks that the store has. Return whether any block has changed."""
        if blocks == self._blocks:
            return False
        self._blocks, self.by_site = blocks, {}
        for block in blocks:
            self.by_site.setdefault(site_of(block.prefix), []).append((block.prefix, ends(block)))
        return True

    def until(self, url: str, at: float, *, site: str | None = None) -> float | None:
        """Return the time until which a canonical URL is blocked (see `ends`), or None if it is not blocked."""
        if not self.by_site:
            return None
        found = self.by_site.get(site_of(url) if site is None else site, ())
        until = max((end for prefix, end in found if url.startswith(prefix)), default=-inf)
        return until if until > at else None


def _change(board: Board, block: UrlBlock, *, blocked: bool, at: float) -> None:
    kept = [each for each in blocks_of(board) if each.prefix != block.prefix and ends(each) > at]
    more = [block] if blocked and len(kept) < MAX_BLOCKS else []
    board.put_value(BLOCKS, msgspec.msgpack.encode(tuple(sorted([*kept, *more], key=lambda each: each.prefix))))
