"""The duplicate URL eliminator answers as the store would, mostly without asking it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.stores import SITE, link, links
from webfountain.duplicates.url_dedup import DuplicateEliminator
from webfountain.errors import StoreError
from webfountain.store.memory.queues import MemoryQueues
from webfountain.store.memory.store import MemoryStore

if TYPE_CHECKING:
    from webfountain.records import DiscoverResult, Link


def eliminator(*, size: int = 100) -> tuple[DuplicateEliminator, MemoryStore]:
    store = MemoryStore(period_s=10.0)
    return DuplicateEliminator(store, size=size), store


def test_a_link_seen_lately_does_not_reach_the_store() -> None:
    dedupe, store = eliminator()
    assert dedupe.discover(links(1, 2, 1), at=1.0) == links(1, 2)
    store.pages.forget(SITE, at=1.0)  # the store would say known as well, but for another reason
    assert dedupe.discover(links(1, 2), at=2.0) == []
    assert list(dedupe.counts.values()) == [2, 3, 0]


def test_a_link_that_left_the_cache_is_recognised_by_the_store() -> None:
    dedupe, _ = eliminator(size=2)
    for number in (1, 2, 3):
        dedupe.discover(links(number), at=1.0)
    assert dedupe.discover(links(1, 4), at=2.0) == links(4)
    assert list(dedupe.counts.values()) == [4, 0, 1]


def test_the_least_recently_seen_leaves_first() -> None:
    dedupe = DuplicateEliminator(MemoryStore(period_s=10.0), size=2)
    for number in (1, 2, 1, 3, 1):
        dedupe.discover(links(number), at=1.0)
    assert dedupe.counts["duplicates/by_cache"] == 2


def test_a_key_of_another_site_is_another_page() -> None:
    dedupe, _ = eliminator()
    dedupe.discover(links(1), at=1.0)
    there = link(1, site="https://b.example")
    assert dedupe.discover([there], at=1.0) == [there]


def test_a_key_that_two_sites_share_is_cached_for_both() -> None:
    dedupe, _ = eliminator()
    both = [link(1), link(1, site="https://b.example")]
    assert dedupe.discover(both, at=1.0) == both
    assert dedupe.discover(both, at=2.0) == []
    assert list(dedupe.counts.values()) == [2, 2, 0]


def test_a_forgotten_page_or_site_is_asked_of_the_store_again() -> None:
    dedupe, _ = eliminator()
    dedupe.discover([*links(1, 2), link(3, site="https://b.example")], at=1.0)
    dedupe.forget(SITE, link(1).key)
    dedupe.discover(links(1, 2), at=2.0)
    assert dedupe.counts["duplicates/by_store"] == 1
    dedupe.forget(SITE)
    dedupe.discover([*links(1, 2), link(3, site="https://b.example")], at=3.0)
    assert dedupe.counts["duplicates/by_store"] == 4


def test_of_what_is_offered_the_known_are_named_whoever_knew_them() -> None:
    store = MemoryStore(period_s=1.0)
    store.queues.discover(links(1), at=1.0)
    dedupe = DuplicateEliminator(store)
    dedupe.discover(links(2), at=2.0)
    assert dedupe.offer(links(1, 2, 3, 4, 3), at=3.0) == links(1, 2, 3)
    assert dedupe.counts["duplicates/new"] == 3


def test_links_of_a_step_that_failed_are_not_cached() -> None:
    class FullDisk(MemoryQueues):
        def discover(self, links: object, *, at: float) -> DiscoverResult:
            raise StoreError("no space left")

    class FullStore(MemoryStore):
        def __init__(self) -> None:
            super().__init__(period_s=1.0)
            self.queues = FullDisk(self.table, self.census, self.changes)

    dedupe = DuplicateEliminator(FullStore())
    for _ in range(2):
        try:
            dedupe.discover(links(1), at=1.0)
        except StoreError:
            continue
        raise AssertionError("the cache answered for a link that the store never took")


batches = st.lists(
    st.lists(st.builds(link, st.integers(0, 6), site=st.sampled_from((SITE, "https://b.example"))), max_size=8)
)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(batches=batches, size=st.integers(0, 5))
def test_with_any_cache_the_store_ends_as_without(batches: list[list[Link]], size: int) -> None:
    dedupe, store = eliminator(size=size)
    plain = MemoryStore(period_s=10.0)
    for batch in batches:
        assert len(dedupe.discover(batch, at=1.0)) == plain.queues.discover(batch, at=1.0).new
    assert list(store.pages.records()) == list(plain.pages.records())
    assert dedupe.counts.total() == sum(map(len, batches))
