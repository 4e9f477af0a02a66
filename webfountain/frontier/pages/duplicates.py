"""The duplicate URL eliminator: of the links on their way to the store, which does it know?

After the host splitter and before the never-crawled queue (DESIGN.md section 3). A cache of recently seen
fingerprints spares the store most look-ups, since links repeat (eight of ten within 50,000 entries); the
store decides the rest. Only what the store has answered for is cached. It judges no policy and keeps no link.

Source: Broder, Najork, Wiener, "Efficient URL caching for World Wide Web crawling", 2003: LRU, section 5.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import Discovered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import Link
    from webfountain.store.contract import FrontierStore

__all__ = ["CACHE_SIZE", "DuplicateEliminator", "Eliminated"]

CACHE_SIZE: Final = 200_000


class Eliminated(msgspec.Struct, frozen=True, gc=False):
    """A frozen snapshot: URLs that were new, links that the cache knew, links that only the store knew."""

    new: int
    duplicates_by_cache: int
    duplicates_by_store: int


class DuplicateEliminator:
    """An LRU of `size` recent URLs in front of `store.discover`, about 150 bytes each.

    It holds the site under the key, for a pair of both as key costs 400 bytes; a key that two sites share is cached
    for the later one. The dictionary's order is the order of use: a hit is taken out and put in again.
    """

    def __init__(self, store: FrontierStore, *, size: int = CACHE_SIZE) -> None:
        self._store = store
        self._size = size
        self._recent: dict[bytes, str] = {}
        self._new = 0
        self._by_cache = 0
        self._by_store = 0

    def discover(self, links: Sequence[Link], *, at: float) -> Discovered:
        """Make the unknown of these links known to the store, in one batch; how many were new."""
        asked = self._unseen(links)
        found = self._store.discover(asked, at=at) if asked else Discovered(0, 0)
        self._remember(asked)
        by_cache = len(links) - len(asked)
        self._new += found.new
        self._by_cache += by_cache
        self._by_store += found.known
        return Discovered(found.new, found.known + by_cache)

    def forget(self, site: str, key: bytes | None = None) -> None:
        """Drop a page, or all of a site, so that the store alone answers for what was forgotten."""
        recent = self._recent
        keys = [one for one, name in recent.items() if name == site] if key is None else [key]
        for one in keys:
            recent.pop(one, None)

    def statistics(self) -> Eliminated:
        """The counts so far."""
        return Eliminated(self._new, self._by_cache, self._by_store)

    def _unseen(self, links: Sequence[Link]) -> list[Link]:
        """The links that the cache does not know, each once; those it knows become its most recent."""
        recent = self._recent
        unseen: dict[tuple[str, bytes], Link] = {}
        for link in links:
            key, site = link.key, link.site
            if recent.get(key) == site:
                recent[key] = recent.pop(key)
            else:
                unseen.setdefault((site, key), link)
        return list(unseen.values())

    def _remember(self, links: Sequence[Link]) -> None:
        """Cache what the store has taken; only now, for a step that failed is asked again."""
        recent = self._recent
        for link in links:
            recent[link.key] = sys.intern(link.site)
        # Once a batch: finding the first entry of a dictionary walks over the places of those taken out before it.
        for key in list(islice(recent, max(0, len(recent) - self._size))):
            del recent[key]
