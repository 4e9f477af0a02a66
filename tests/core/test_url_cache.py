"""URL caches against brute-force versions, each written as its definition reads."""

from __future__ import annotations

import random
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.url_cache import BYTES_PER_URL, LruCache, entries_within
from webfountain.lab.simulate.url_caches import ClockCache, MinCache, RandomCache, StaticCache, next_requests

if TYPE_CHECKING:
    from webfountain.lab.simulate.url_caches import UrlCache

traces = st.lists(st.integers(0, 12), max_size=80)
sizes = st.integers(1, 8)


def lru_misses(urls: list[int], size: int) -> list[int]:
    held: list[int] = []
    absent = []
    for url in urls:
        if url in held:
            held.remove(url)
        else:
            absent.append(url)
            held = held[-(size - 1) :] if size > 1 else []
        held.append(url)
    return absent


def min_misses(urls: list[int], size: int) -> int:
    held: set[int] = set()
    missed = 0
    for place, url in enumerate(urls):
        if url not in held:
            missed += 1
            if len(held) == size:
                rest = urls[place:]
                held.remove(max(held, key=lambda one: rest.index(one) if one in rest else len(urls)))
            held.add(url)
    return missed


def clock_misses(urls: list[int], size: int) -> list[int]:
    places: list[list[int]] = []
    hand, absent = 0, []
    for url in urls:
        for place in places:
            if place[0] == url:
                place[1] = 1
                break
        else:
            absent.append(url)
            if len(places) < size:
                places.append([url, 1])
                continue
            while places[hand][1]:
                places[hand][1] = 0
                hand = (hand + 1) % size
            places[hand] = [url, 1]
            hand = (hand + 1) % size
    return absent


def in_batches(cache: UrlCache, urls: list[int], batch: int) -> list[int]:
    return [url for begin in range(0, len(urls), batch) for url in cache.missing(urls[begin : begin + batch])]


@given(traces, sizes, st.integers(1, 9))
def test_lru_clock_and_min_are_what_their_definitions_say(urls: list[int], size: int, batch: int) -> None:
    assert in_batches(LruCache(size), urls, batch) == lru_misses(urls, size)
    assert in_batches(ClockCache(size), urls, batch) == clock_misses(urls, size)
    following = next_requests(np.array(urls, dtype=np.int64))
    assert len(in_batches(MinCache(size, following), urls, batch)) == min_misses(urls, size)


@given(traces, sizes, st.integers(1, 9))
def test_no_cache_holds_more_than_its_size_and_min_misses_least(urls: list[int], size: int, batch: int) -> None:
    least = min_misses(urls, size)
    for cache in (LruCache(size), ClockCache(size), RandomCache(size, random.Random(1))):
        assert len(in_batches(cache, urls, batch)) >= least
        assert len(cache) == min(size, len(set(urls)))


@given(traces)
def test_static_misses_the_urls_that_it_was_not_given(urls: list[int]) -> None:
    assert StaticCache([1, 2]).missing(urls) == [url for url in urls if url not in {1, 2}]


@given(traces)
def test_the_next_request_of_each_is_found(urls: list[int]) -> None:
    expected = [urls.index(url, at + 1) if url in urls[at + 1 :] else len(urls) for at, url in enumerate(urls)]
    assert next_requests(np.array(urls, dtype=np.int64)).tolist() == expected


@pytest.mark.parametrize("make", [LruCache, ClockCache, lambda size: RandomCache(size, random.Random(1))])
def test_memory_is_bounded_by_bytes(make: type[LruCache]) -> None:
    """Twenty times as many URLs as a cache holds, fingerprints of 8 bytes."""
    bound = 500_000
    rng = np.random.default_rng(1)
    tracemalloc.start()
    try:
        cache = make(entries_within(bound))
        for _ in range(20):
            cache.missing(rng.integers(0, 2**64 - 1, entries_within(bound), dtype=np.uint64).tolist())
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(cache) == bound // BYTES_PER_URL
    assert held <= bound


def test_a_cache_without_room_misses_every_url() -> None:
    cache = LruCache(0)
    assert [cache.missing([1, 1, 2]), cache.missing([2])] == [[1, 1, 2], [2]]
    assert not len(cache)
