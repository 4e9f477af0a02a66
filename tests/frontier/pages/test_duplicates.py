"""The duplicate URL eliminator answers as the store would, mostly without asking it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.stores import SITE, link, links
from webfountain.errors import StoreError
from webfountain.frontier.pages.duplicates import DuplicateEliminator, Eliminated
from webfountain.records import Discovered, Link
from webfountain.store.memory.store import MemoryStore


def eliminator(*, size: int = 100) -> tuple[DuplicateEliminator, MemoryStore]:
    store = MemoryStore(period_s=10.0)
    return DuplicateEliminator(store, size=size), store


def test_a_link_seen_lately_does_not_reach_the_store() -> None:
    due, store = eliminator()
    assert due.discover(links(1, 2, 1), at=1.0) == Discovered(new=2, known=1)
    store.forget(SITE, at=1.0)  # the store would say known as well, but for another reason
    assert due.discover(links(1, 2), at=2.0) == Discovered(new=0, known=2)
    assert due.statistics() == Eliminated(new=2, duplicates_by_cache=3, duplicates_by_store=0)


def test_what_left_the_cache_is_a_duplicate_by_the_store() -> None:
    due, _ = eliminator(size=2)
    for number in (1, 2, 3):
        due.discover(links(number), at=1.0)
    assert due.discover(links(1), at=2.0) == Discovered(new=0, known=1)
    assert due.statistics() == Eliminated(new=3, duplicates_by_cache=0, duplicates_by_store=1)


def test_the_least_recently_seen_leaves_first() -> None:
    due, _ = eliminator(size=2)
    for number in (1, 2, 1, 3, 1):
        due.discover(links(number), at=1.0)
    assert due.statistics().duplicates_by_cache == 2


def test_a_key_of_another_site_is_another_page() -> None:
    due, _ = eliminator()
    due.discover(links(1), at=1.0)
    assert due.discover([link(1, site="https://b.example")], at=1.0).new == 1


def test_a_key_that_two_sites_share_is_cached_for_the_later_one() -> None:
    due, _ = eliminator()
    both = [link(1), link(1, site="https://b.example")]
    assert due.discover(both, at=1.0) == Discovered(new=2, known=0)
    assert due.discover(both, at=2.0) == Discovered(new=0, known=2)
    assert due.statistics() == Eliminated(new=2, duplicates_by_cache=1, duplicates_by_store=1)


def test_a_forgotten_page_or_site_is_asked_of_the_store_again() -> None:
    due, _ = eliminator()
    due.discover([*links(1, 2), link(3, site="https://b.example")], at=1.0)
    due.forget(SITE, link(1).key)
    due.discover(links(1, 2), at=2.0)
    assert due.statistics().duplicates_by_store == 1
    due.forget(SITE)
    due.discover([*links(1, 2), link(3, site="https://b.example")], at=3.0)
    assert due.statistics().duplicates_by_store == 3


def test_links_of_a_step_that_failed_are_not_cached() -> None:
    class FullDisk(MemoryStore):
        def discover(self, links: object, *, at: float) -> Discovered:
            raise StoreError("no space left")

    due = DuplicateEliminator(FullDisk(period_s=1.0))
    for _ in range(2):
        try:
            due.discover(links(1), at=1.0)
        except StoreError:
            continue
        raise AssertionError("the cache answered for a link that the store never took")


batches = st.lists(
    st.lists(st.builds(link, st.integers(0, 6), site=st.sampled_from((SITE, "https://b.example"))), max_size=8)
)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(batches=batches, size=st.integers(0, 5))
def test_with_any_cache_the_store_ends_as_without(batches: list[list[Link]], size: int) -> None:
    due, store = eliminator(size=size)
    plain = MemoryStore(period_s=10.0)
    for batch in batches:
        assert due.discover(batch, at=1.0) == plain.discover(batch, at=1.0)
    assert list(store.pages()) == list(plain.pages())
    counts = due.statistics()
    assert counts.new + counts.duplicates_by_cache + counts.duplicates_by_store == sum(map(len, batches))
