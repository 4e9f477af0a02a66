"""Importance between rankings, and by the URL alone."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.importance import PRIOR, OnlineImportance, location
from webfountain.core.order_blend import OrderBlend


def test_a_home_page_counts_more_than_what_lies_deep_or_answers_a_query() -> None:
    urls = [f"http://a.example{path}" for path in ("/", "/index.html", "/x", "/x?q=1", "/a/", "/a/b/c.html")]
    assert location(urls).tolist() == [2.0, 2.0, 1.0, 0.5, 1.0, 0.25]


def credit(
    online: OnlineImportance, page: int, targets: list[int], score: float = PRIOR, *, linked: bool = False
) -> dict[int, float]:
    return online.credit(
        [page], targets, degrees=[len(targets)], scores=np.array([score]), linked=np.array([linked], dtype=np.bool_)
    )


def test_pages_that_are_credited_at_once_count_like_pages_credited_one_after_the_other() -> None:
    """Three pages link to each other. A page hands on later what it got from another page of the batch."""
    links = {1: [2, 3, 8], 2: [], 3: [8, 2]}
    alone: OnlineImportance = OnlineImportance()
    batch: OnlineImportance = OnlineImportance()
    for online in (alone, batch):
        online.weigh([2, 8], ranks=np.array([0.1, 0.2]), backlinks=np.zeros(2))
    scores, linked = np.array([3.0, 1.0, 2.0]), np.array([False, False, True])
    degrees, targets = list(map(len, links.values())), [each for found in links.values() for each in found]
    for _ in range(3):
        for page, score, was_linked in zip(links, scores.tolist(), linked.tolist(), strict=True):
            credit(alone, page, links[page], score, linked=was_linked)
    risen = [batch.credit(list(links), targets, degrees=degrees, scores=scores, linked=linked) for _ in range(3)]
    assert batch.gains([1, 2, 3, 8]).tolist() == pytest.approx(alone.gains([1, 2, 3, 8]).tolist())
    assert (batch.backlinks([2, 3, 8]).tolist(), batch.links) == (alone.backlinks([2, 3, 8]).tolist(), alone.links)
    [(place, importance)] = risen[0].items()
    assert targets[place] == 8  # not 2, which was fetched itself
    assert importance == pytest.approx(1.1)


def test_a_target_of_many_pages_of_a_batch_is_returned_once() -> None:
    online: OnlineImportance = OnlineImportance(damping=0.5)
    online.weigh([7], ranks=np.array([1.0]), backlinks=np.zeros(1))
    risen = online.credit(
        [1, 2, 3], [7, 7, 4, 7], degrees=[1, 2, 1], scores=np.full(3, 0.5), linked=np.zeros(3, dtype=np.bool_)
    )
    assert list(risen.values()) == [pytest.approx(1.625)]


def test_fetching_a_page_again_credits_only_what_it_gained_since() -> None:
    online: OnlineImportance = OnlineImportance()
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
    online: OnlineImportance = OnlineImportance(damping=0.5)
    credit(online, 0, [1, 2], 2.0, linked=True)
    assert online.gains([1, 2]).tolist() == [0.0, 0.0]
    credit(online, 1, [2], 1.0)
    assert online.gains([2]).tolist() == [0.5]
    credit(online, 2, [3], 3.0, linked=True)  # only what it gained since
    assert online.gains([3]).tolist() == [0.25]
    online.rank()
    assert online.gains([2]).tolist() == [0.0]


def test_each_linking_page_is_one_backlink_and_links_in_the_last_ranking_are_not_counted() -> None:
    online: OnlineImportance = OnlineImportance()
    for page, targets in ((0, [1, 2]), (1, [2]), (0, [1, 2]), (3, [])):
        credit(online, page, targets)
    credit(online, 4, [2], 1.0, linked=True)
    assert (online.backlinks([0, 1, 2, 9]).tolist(), online.links) == ([0.0, 1.0, 2.0, 0.0], 3)
    online.rank()
    assert (online.backlinks([2]).tolist(), online.links) == ([0.0], 0)


def test_the_number_of_kept_pages_is_bounded_and_the_least_important_are_dropped() -> None:
    online: OnlineImportance = OnlineImportance(most=100)
    for page in range(1000, 3000):
        credit(online, page, [7, page % 400 + 10])
        assert len(online) <= 100
    assert online.gains([7])[0] == pytest.approx(2000 * 0.9 * PRIOR / 2)


def test_a_waiting_page_is_returned_once_its_importance_has_grown_by_half_and_then_when_it_has_doubled() -> None:
    """By rank alone; pages that were never weighed, fetched pages, and all pages after a ranking are not returned."""
    online: OnlineImportance = OnlineImportance(damping=0.5)
    importance = online.weigh([1, 2], ranks=np.array([1.0, 2.0]), backlinks=np.zeros(2))
    assert importance.tolist() == [1.0, 2.0]
    assert credit(online, 5, [3, 2, 1, 9], 3.9) == {}
    assert credit(online, 6, [3, 2, 1, 9], 0.2) == {2: pytest.approx(1.5125)}
    assert credit(online, 7, [1], 3.0) == {}
    assert credit(online, 8, [1], 0.1) == {0: pytest.approx(3.0625)}
    credit(online, 2, [])
    assert credit(online, 9, [2], 100.0) == {}
    online.rank()
    assert credit(online, 4, [1], 100.0) == {}


def test_waiting_pages_have_the_importance_of_the_blended_orders() -> None:
    blend = OrderBlend()
    online: OnlineImportance = OnlineImportance(blend=blend)
    found = online.weigh([1, 2], ranks=np.array([1.0, 2.0]), backlinks=np.array([3.0, 0.0]))
    assert found.tolist() == [1.0, 1.0]  # before the first ranking: as they were found
    blend.rank([9.0, 0.0, 9.0], waiting=2, backlinks=np.array([3.0, 0.0]), ranks=np.array([1.0, 2.0]))
    first, second = online.weigh([1, 2], ranks=np.array([1.0, 2.0]), backlinks=np.array([3.0, 0.0])).tolist()
    assert first > 1.0 > second
    risen = [credit(online, page, [2], 1.0) for page in range(10, 13)]
    assert risen[0] == {}
    assert any(risen)  # as many pages link to it now as to the other


def test_pages_keep_their_values_when_more_pages_become_known() -> None:
    """More pages than there is room for at first, in one step and in many."""
    online: OnlineImportance = OnlineImportance()
    credit(online, 0, list(range(1, 5001)), 5000.0)
    assert online.gains([1, 5000]).tolist() == [0.9, 0.9]
    for page in range(6000, 12000):
        credit(online, page, [page + 1], 2.0)
    assert online.gains([1, 12000, 99999]).tolist() == pytest.approx([0.9, online.gains([12000])[0], 0.0])
    assert online.backlinks([1, 12000]).tolist() == [1.0, 1.0]
