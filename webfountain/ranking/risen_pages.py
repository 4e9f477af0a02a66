"""Waiting pages whose importance has grown beyond their lane; they are stored until their site's hand is refilled."""

from __future__ import annotations

from heapq import heappop, heappush

from webfountain.ranking.waiting_sites import KEPT

__all__ = ["RisenPages"]


class RisenPages:
    """Waiting pages whose importance has grown, per site, ordered by their importance when they were last added.

    If there are more than `most` pages, all are dropped: they stay in their lanes until their importance grows again.
    """

    def __init__(self, *, most: int = KEPT) -> None:
        self._most = most
        self._count = 0
        self._worth: dict[str, dict[bytes, float]] = {}
        self._heaps: dict[
            str, list[tuple[float, bytes]]
        ] = {}  # an entry is stale if its importance is not the present one of the page

    def add(self, site: str, key: bytes, worth: float) -> None:
        """Store a page's present importance."""
        self._count += 1
        if self._count > self._most:
            self.clear()
        self._worth.setdefault(site, {})[key] = worth
        heappush(self._heaps.setdefault(site, []), (-worth, key))

    def drop(self, site: str, key: bytes) -> None:
        """Drop a page, because it no longer waits."""
        self._worth.get(site, {}).pop(key, None)

    def take(self, site: str, most: int) -> list[bytes]:
        """Remove and return the most important pages of a site, at most `most`."""
        worth, heap = self._worth.get(site, {}), self._heaps.get(site, [])
        taken: list[bytes] = []
        while heap and len(taken) < most:
            value, key = heappop(heap)
            self._count -= 1
            if worth.get(key) == -value:
                del worth[key]
                taken.append(key)
        if not heap:
            self._worth.pop(site, None)
            self._heaps.pop(site, None)
        return taken

    def clear(self) -> None:
        """Drop all pages."""
        self._worth, self._heaps, self._count = {}, {}, 0
