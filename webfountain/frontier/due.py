"""The duplicate URL eliminator: of the links on their way to the store, which does it know?

After the host splitter and before the never-crawled queue (DESIGN.md section 3). A cache of recently seen
fingerprints spares the store most look-ups, since links repeat (eight of ten within 50,000 entries); the
store decides the rest. Only what the store has answered for is cached. It judges no policy and keeps no link.

Source: Broder, Najork, Wiener, "Efficient URL caching for World Wide Web crawling", 2003: LRU, section 5.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import Discovered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.records import Link
    from webfountain.store.base import FrontierStore

__all__ = ["CACHE_SIZE", "DuplicateEliminator", "Eliminated"]

CACHE_SIZE: Final = 50_000


class Eliminated(msgspec.Struct, frozen=True, gc=False):
    """A frozen snapshot: URLs that were new, links that the cache knew, links that only the store knew."""

    new: int
    duplicates_by_cache: int
    duplicates_by_store: int


class DuplicateEliminator:
    """An LRU of `size` recent (site, key) pairs in front of `store.discover`."""

    def __init__(self, store: FrontierStore, *, size: int = CACHE_SIZE) -> None:
        self._store = store
        self._size = size
        self._recent: OrderedDict[tuple[str, bytes], None] = OrderedDict()
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
        if key is not None:
            self._recent.pop((site, key), None)
            return
        for name in [name for name in self._recent if name[0] == site]:
            del self._recent[name]

    def statistics(self) -> Eliminated:
        """The counts so far."""
        return Eliminated(self._new, self._by_cache, self._by_store)

    def _unseen(self, links: Sequence[Link]) -> list[Link]:
        """The links that the cache does not know, each once; those it knows become its most recent."""
        recent = self._recent
        unseen: dict[tuple[str, bytes], Link] = {}
        for link in links:
            name = (link.site, link.key)
            if name in recent:
                recent.move_to_end(name)
            else:
                unseen.setdefault(name, link)
        return list(unseen.values())

    def _remember(self, links: Sequence[Link]) -> None:
        """Cache what the store has taken; only now, for a step that failed is asked again."""
        recent = self._recent
        for link in links:
            recent[link.site, link.key] = None
        while len(recent) > self._size:
            recent.popitem(last=False)
