"""Caches of recently seen URLs. A cache answers for most links of a page without a query to the store.

A cache is a bounded set of 8-byte fingerprints. Given a batch of URLs, a cache returns the URLs that it does not
contain yet, and adds them. A crawl uses LRU.

Source: Broder, Najork, Wiener, *Efficient URL caching for World Wide Web crawling*, 2003, section 5.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["BYTES_PER_URL", "LruCache", "entries_within", "hit_rate"]

BYTES_PER_URL: Final = 224
"""Largest memory use of one cache entry, in bytes."""


def entries_within(size_bytes: int) -> int:
    """Return the number of URLs that a cache can store in `size_bytes`."""
    return size_bytes // BYTES_PER_URL


def hit_rate(hits: int, misses: int) -> float:
    """Return the share of links found in the cache; 0 before the first link."""
    return hits / (hits + misses) if hits else 0.0


class LruCache:
    """A cache of `size` URLs that evicts the least recently used URL. With size 0, the cache holds nothing."""

    def __init__(self, size: int) -> None:
        self._size = size
        # A plain dict is not used: the search for its first entry passes the places of all removed entries.
        self._held: OrderedDict[int, None] = OrderedDict()

    def missing(self, urls: Sequence[int]) -> list[int]:
        """Return the URLs of the batch that were not in the cache, in order, and add them."""
        held, room = self._held, self._size - len(self._held)
        used, let_go = held.move_to_end, held.popitem
        absent: list[int] = []
        for url in urls:
            if url in held:
                used(url)
                continue
            absent.append(url)
            held[url] = None
            if room:
                room -= 1
            else:
                let_go(last=False)
        return absent

    def drop(self, urls: Iterable[int]) -> None:
        for url in urls:
            self._held.pop(url, None)

    def clear(self) -> None:
        self._held.clear()

    def __len__(self) -> int:
        return len(self._held)
