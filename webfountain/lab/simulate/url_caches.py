"""URL caches for the study of miss rates: CLOCK, RANDOM, STATIC and the clairvoyant MIN.

Source: Broder, Najork, Wiener, *Efficient URL caching for World Wide Web crawling*, 2003, section 5; MIN after Belady
1966.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    Times = npt.NDArray[np.int64]

__all__ = ["ClockCache", "MinCache", "RandomCache", "StaticCache", "Times", "UrlCache", "next_requests"]


class UrlCache(Protocol):
    """A bounded set of fingerprints, queried and filled in batches."""

    def missing(self, urls: Sequence[int]) -> list[int]:
        """Return the URLs of the batch that were not in the cache, in order, and add them."""

    def drop(self, urls: Iterable[int]) -> None:
        """Remove URLs."""

    def clear(self) -> None:
        """Remove all URLs."""

    def __len__(self) -> int:
        """Return the number of URLs in the cache."""


class ClockCache:
    """A cheap approximation of LRU: a hit marks the slot of its URL. To evict a URL, a pointer moves round the slots,
    clears marks, and takes the first slot without a mark.
    """

    def __init__(self, size: int) -> None:
        self._size = positive(size)
        self._place: dict[int, int] = {}
        self._urls: list[int] = []
        self._marks = bytearray()
        self._hand = 0

    def missing(self, urls: Sequence[int]) -> list[int]:
        place, marks, held, size, hand = self._place, self._marks, self._urls, self._size, self._hand
        absent: list[int] = []
        for url in urls:
            at = place.get(url)
            if at is not None:
                marks[at] = 1
                continue
            absent.append(url)
            if len(held) < size:
                place[url] = len(held)
                held.append(url)
                marks.append(1)
                continue
            # A new URL is marked too, as in the paper; one round clears all marks, so the search ends.
            at = marks.find(0, hand)
            if at < 0:
                marks[hand:] = bytes(size - hand)
                at = marks.find(0, 0, hand)
                if at < 0:
                    marks[:hand] = bytes(hand)
                    at = hand
                else:
                    marks[:at] = bytes(at)
            else:
                marks[hand:at] = bytes(at - hand)
            place.pop(held[at], None)  # the URL may have been dropped
            held[at] = url
            place[url] = at
            marks[at] = 1
            hand = at + 1 if at + 1 < size else 0
        self._hand = hand
        return absent

    def drop(self, urls: Iterable[int]) -> None:
        for url in urls:
            at = self._place.pop(url, None)
            if at is not None:
                self._marks[at] = 0  # the next one to evict

    def clear(self) -> None:
        self._place.clear()
        self._urls.clear()
        self._marks.clear()
        self._hand = 0

    def __len__(self) -> int:
        return len(self._place)


class RandomCache:
    """Evicts a random URL."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self._size = positive(size)
        self._rng = rng
        self._held: set[int] = set()
        self._urls: list[int] = []

    def missing(self, urls: Sequence[int]) -> list[int]:
        held, places, size, draw = self._held, self._urls, self._size, self._rng.random
        absent: list[int] = []
        for url in urls:
            if url in held:
                continue
            absent.append(url)
            if len(places) < size:
                places.append(url)
            else:
                at = int(draw() * size)
                held.discard(places[at])
                places[at] = url
            held.add(url)
        return absent

    def drop(self, urls: Iterable[int]) -> None:
        self._held.difference_update(urls)

    def clear(self) -> None:
        self._held.clear()
        self._urls.clear()

    def __len__(self) -> int:
        return len(self._held)


class MinCache:
    """A clairvoyant cache, which evicts the URL that will not be requested for the longest time (Belady). No cache that
    must add every URL has fewer misses.

    All batches together must be the sequence of URLs that was given to `next_requests`.
    """

    def __init__(self, size: int, following: Times) -> None:
        """`following` (n,) is the result of `next_requests`."""
        self._size = positive(size)
        self._following = following.tolist()
        self._at = 0
        self._next: dict[int, int] = {}
        self._last: list[tuple[int, int]] = []

    def missing(self, urls: Sequence[int]) -> list[int]:
        held, heap, size = self._next, self._last, self._size
        absent: list[int] = []
        for url, following in zip(urls, self._following[self._at : self._at + len(urls)], strict=True):
            if url not in held:
                absent.append(url)
                if len(held) == size:
                    # Entries whose URL was requested since are out of date; the newest entry is always in the heap.
                    while True:
                        negative, last = heapq.heappop(heap)
                        if held.get(last) == -negative:
                            break
                    del held[last]
            held[url] = following
            heapq.heappush(heap, (-following, url))
        self._at += len(urls)
        return absent

    def drop(self, urls: Iterable[int]) -> None:
        for url in urls:
            self._next.pop(url, None)

    def clear(self) -> None:
        self._next.clear()
        self._last.clear()

    def __len__(self) -> int:
        return len(self._next)


def next_requests(urls: npt.NDArray[np.int64] | npt.NDArray[np.uint64]) -> Times:
    """Return, for each of n requests, the position of the next request for the same URL, or n."""
    order = np.argsort(urls, kind="stable")
    following = np.full(len(urls), len(urls), dtype=np.int64)
    same = urls[order[1:]] == urls[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    return following


class StaticCache:
    """A fixed set of URLs: the most frequent URLs of an earlier crawl."""

    def __init__(self, urls: Iterable[int]) -> None:
        self._held = frozenset(urls)

    def missing(self, urls: Sequence[int]) -> list[int]:
        held = self._held
        return [url for url in urls if url not in held]

    def drop(self, urls: Iterable[int]) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Do nothing."""

    def __len__(self) -> int:
        return len(self._held)


def positive(size: int) -> int:
    if size < 1:
        raise ValueError(f"a cache must have room for at least 1 URL, got {size}")
    return size
