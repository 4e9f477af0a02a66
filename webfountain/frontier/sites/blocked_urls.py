"""Compare URLs with the present blocks.

Place in the walk: the active list checks a site when it becomes active and its pages when they are leased. All sites
share one object, which the results of batches update.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.inbox.blocks import ends
from webfountain.urls import site_of

if TYPE_CHECKING:
    from webfountain.frontier.inbox.blocks import UrlBlock

__all__ = ["BLOCKED", "RECHECK_S", "BlockedUrls"]

BLOCKED: Final = "blocked"
"""Error of a page that was leased while it was blocked."""
RECHECK_S: Final = 3600.0
"""Longest time after which something blocked is checked again, s."""


class BlockedUrls:
    """The present blocks, by site. If there are none, a check costs one comparison."""

    __slots__ = ("_blocks", "_by_site")

    def __init__(self, blocks: tuple[UrlBlock, ...] = ()) -> None:
        self._blocks: tuple[UrlBlock, ...] = ()
        self._by_site: dict[str, list[tuple[str, float]]] = {}
        self.adopt(blocks)

    def adopt(self, blocks: tuple[UrlBlock, ...]) -> bool:
        """Use the blocks of a store. Return whether they differ from the previous ones."""
        if blocks == self._blocks:
            return False
        self._blocks, self._by_site = blocks, {}
        for block in blocks:
            self._by_site.setdefault(site_of(block.prefix), []).append((block.prefix, ends(block)))
        return True

    def until(self, url: str, at: float, *, site: str | None = None) -> float | None:
        """Return until when a canonical URL is blocked (inf: until it is unblocked), or None if it is not."""
        if not self._by_site:
            return None
        found = self._by_site.get(site_of(url) if site is None else site, ())
        until = max((end for prefix, end in found if url.startswith(prefix)), default=-inf)
        return until if until > at else None

    def site_until(self, site: str, at: float) -> float | None:
        """Return until when a whole site is blocked, or None if it is not."""
        return self.until(site + "/", at, site=site)
