"""Importance between rankings, and by the URL alone."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.importance import PRIOR, OnlineImportance, location
from webfountain.core.order_blend import OrderBlend


def test_a_home_page_counts_more_than_what_lies_deep_or_answers_a_query() -> None:
    urls = [f"http://a.example{path}" for path in ("/", "/index.html", "/x", "/x?q=1", "/a/", "/a/b/c.html")]
    assert location(urls).tolist() == [2.0, 2.0, 1.0, 0.5, 1.0, 0.25]


def credit(online: OnlineImportance[int], page: int, targets: list[int], score: float = PRIOR) -> None:
    online.credit(page, targets, score=score, linked=False)


def test_fetching_a_page_again_credits_only_what_it_gained_since() -> None:
    online: OnlineImportance[int] = OnlineImportance()
    credit(online, 0, [1, 2], 2.0)
    once = online.gains([0, 1, 2]).tolist()
    assert once == [0.0, 0.9, 0.9]
    for _ in range(5):
        credit(online, 0, [1, 2], 2.0)
    assert online.gains([0, 1, 2]).tolist() == once
    credit(online, 1, [0], 1.0)
    credit(online, 0, [1, 2], 2.0)
    assert online.gains([2])[0] > once[2]


def test_links_that_the_last_ranking_contains_are_not_credited_again() -> None:
    online: OnlineImportance[int] = OnlineImportance(damping=0.5)
    online.credit(0, [1, 2], score=2.0, linked=True)
    assert online.gains([1, 2]).tolist() == [0.0, 0.0]
    online.credit(1, [2], score=1.0, linked=False)
    assert online.gains([2]).tolist() == [0.5]
    online.credit(2, [3], score=3.0, linked=True)  # only what it gained since
    assert online.gains([3]).tolist() == [0.25]
    online.rank()
    assert online.gains([2]).tolist() == [0.0]


def test_each_linking_page_is_one_backlink_and_links_in_the_last_ranking_are_not_counted() -> None:
    online: OnlineImportance[int] = OnlineImportance()
    for page, targets in ((0, [1, 2]), (1, [2]), (0, [1, 2]), (3, [])):
        credit(online, page, targets)
    online.credit(4, [2], score=1.0, linked=True)
    assert (online.backlinks([0, 1, 2, 9]).tolist(), online.links) == ([0.0, 1.0, 2.0, 0.0], 3)
    online.rank()
    assert (online.backlinks([2]).tolist(), online.links) == ([0.0], 0)


def test_the_number_of_kept_pages_is_bounded_and_the_least_important_are_dropped() -> None:
    online: OnlineImportance[int] = OnlineImportance(most=100)
    for page in range(1000, 3000):
        credit(online, page, [7, page % 400 + 10])
        assert len(online) <= 100
    assert online.gains([7])[0] == pytest.approx(2000 * 0.9 * PRIOR / 2)


def test_a_waiting_page_is_returned_once_its_importance_has_grown_by_half_and_then_when_it_has_doubled() -> None:
    """By rank alone; pages that were never weighed, fetched pages, and all pages after a ranking are not returned."""
    online: OnlineImportance[int] = OnlineImportance(damping=0.5)
    importance = online.weigh([1, 2], ranks=np.array([1.0, 2.0]), backlinks=np.zeros(2))
    assert importance.tolist() == [1.0, 2.0]
    assert online.credit(5, [3, 2, 1, 9], score=3.9, linked=False) == {}
    assert online.credit(6, [3, 2, 1, 9], score=0.2, linked=False) == {2: pytest.approx(1.5125)}
    assert online.credit(7, [1], score=3.0, linked=False) == {}
    assert online.credit(8, [1], score=0.1, linked=False) == {0: pytest.approx(3.0625)}
    credit(online, 2, [])
    assert online.credit(9, [2], score=100.0, linked=False) == {}
    online.rank()
    assert online.credit(4, [1], score=100.0, linked=False) == {}


def test_waiting_pages_have_the_importance_of_the_blended_orders() -> None:
    blend = OrderBlend()
    online: OnlineImportance[int] = OnlineImportance(blend=blend)
    found = online.weigh([1, 2], ranks=np.array([1.0, 2.0]), backlinks=np.array([3.0, 0.0]))
    assert found.tolist() == [1.0, 1.0]  # before the first ranking: as they were found
    blend.rank([9.0, 0.0, 9.0], waiting=2, backlinks=np.array([3.0, 0.0]), ranks=np.array([1.0, 2.0]))
    first, second = online.weigh([1, 2], ranks=np.array([1.0, 2.0]), backlinks=np.array([3.0, 0.0])).tolist()
    assert first > 1.0 > second
    risen = [online.credit(page, [2], score=1.0, linked=False) for page in range(10, 13)]
    assert risen[0] == {}
    assert any(risen)  # as many pages link to it now as to the other


def test_pages_keep_their_values_when_more_pages_become_known() -> None:
    """More pages than there is room for at first, in one step and in many."""
    online: OnlineImportance[int] = OnlineImportance()
    credit(online, 0, list(range(1, 5001)), 5000.0)
    assert online.gains([1, 5000]).tolist() == [0.9, 0.9]
    for page in range(6000, 12000):
        credit(online, page, [page + 1], 2.0)
    assert online.gains([1, 12000, 99999]).tolist() == pytest.approx([0.9, online.gains([12000])[0], 0.0])
    assert online.backlinks([1, 12000]).tolist() == [1.0, 1.0]
