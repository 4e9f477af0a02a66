"""Caches of URLs seen lately, which spare the store and the network most of the links of a page.

A cache holds a bounded set of 8-byte fingerprints. Asked for a batch it says which it has not: these are new to it, it
takes them in and lets others go. LRU is a crawl's, CLOCK, RANDOM and STATIC are to compare with; MIN, which knows the
future, and INFINITE are the lower bounds and serve simulation only.

Source: Broder, Najork, Wiener, *Efficient URL caching for World Wide Web crawling*, 2003, section 5; MIN after Belady.
"""

from __future__ import annotations

__all__ = [
    "BYTES_PER_URL",
    "ClockCache",
    "LruCache",
    "MinCache",
    "RandomCache",
    "StaticCache",
    "UrlCache",
    "entries_within",
    "hit_rate",
    "next_requests",
]

import heapq
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    Times = npt.NDArray[np.int64]

BYTES_PER_URL: Final = 224
"""Memory of one entry at worst: a fingerprint (an int of 36 bytes) and its place in an ordered dict that has just
grown; CLOCK takes a fifth less."""


def entries_within(size_bytes: int) -> int:
    """How many URLs a cache may hold in so many bytes."""
    return size_bytes // BYTES_PER_URL


def hit_rate(hits: int, misses: int) -> float:
    """Share of the links that a cache answered; 0 before the first."""
    return hits / (hits + misses) if hits else 0.0


class UrlCache(Protocol):
    """A bounded set of fingerprints, asked and filled in batches."""

    def missing(self, urls: Sequence[int]) -> list[int]:
        """Those of the batch that were not in the cache when their turn came, in order; they are taken in at once.

        A URL that stands in the batch twice is missing once, unless it was let go in between.
        """

    def drop(self, urls: Iterable[int]) -> None:
        """Let go of these; those that it has not have no effect."""

    def clear(self) -> None:
        """Let go of all."""

    def __len__(self) -> int:
        """URLs held now."""


class LruCache:
    """Lets go what was asked for longest ago."""

    def __init__(self, size: int) -> None:
        self._size = _positive(size)
        # Not a dict: finding its first entry walks over the places of all that were taken out before.
        self._held: OrderedDict[int, None] = OrderedDict()

    def missing(self, urls: Sequence[int]) -> list[int]:
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


class ClockCache:
    """LRU's cheap likeness: a hit sets a mark; a hand goes round, clears marks, takes the first place without one."""

    def __init__(self, size: int) -> None:
        self._size = _positive(size)
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
            # A new URL is marked too (the paper's way); one round clears all, so the search ends.
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
            place.pop(held[at], None)  # it may have been dropped
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
                self._marks[at] = 0  # the next to go

    def clear(self) -> None:
        self._place.clear()
        self._urls.clear()
        self._marks.clear()
        self._hand = 0

    def __len__(self) -> int:
        return len(self._place)


class RandomCache:
    """Lets any of its URLs go."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self._size = _positive(size)
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


class StaticCache:
    """Holds the same URLs for ever: the most frequent of an earlier crawl. What it has not it never takes in."""

    def __init__(self, urls: Iterable[int]) -> None:
        self._held = frozenset(urls)

    def missing(self, urls: Sequence[int]) -> list[int]:
        held = self._held
        return [url for url in urls if url not in held]

    def drop(self, urls: Iterable[int]) -> None:
        """Nothing: what is held was told."""

    def clear(self) -> None:
        """Nothing, likewise."""

    def __len__(self) -> int:
        return len(self._held)


class MinCache:
    """Clairvoyant: lets go what will be asked for last (Belady); the least possible misses of a cache that must take in
    what it was asked for.

    The batches must be the sequence for which `next_requests` was made, from its beginning.
    """

    def __init__(self, size: int, following: Times) -> None:
        """`following` (n,): for each request of the sequence the place of the next request of the same URL."""
        self._size = _positive(size)
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
                    # Entries whose URL was asked for since are out of date; the newest is always in the heap.
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
    """(n,) place of the next request of the same URL in a sequence (n,); n where there is none."""
    order = np.argsort(urls, kind="stable")
    following = np.full(len(urls), len(urls), dtype=np.int64)
    same = urls[order[1:]] == urls[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    return following


def _positive(size: int) -> int:
    if size < 1:
        raise ValueError(f"a cache of {size} URLs; it must hold at least 1")
    return size
