"""Importance between rankings, and by the URL alone."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.importance import PRIOR, OnlineImportance, location


def test_a_home_page_counts_more_than_what_lies_deep_or_answers_a_query() -> None:
    urls = [f"http://a.example{path}" for path in ("/", "/index.html", "/x", "/x?q=1", "/a/", "/a/b/c.html")]
    assert location(urls).tolist() == [2.0, 2.0, 1.0, 0.5, 1.0, 0.25]


def credit(online: OnlineImportance[int], page: int, targets: list[int], score: float = PRIOR) -> None:
    online.credit(page, targets, score=score, linked=False)


def test_cash_flows_to_where_nobody_was_and_none_is_made() -> None:
    online: OnlineImportance[int] = OnlineImportance()
    online.seed(0, 1.0)
    credit(online, 0, [1, 2])
    credit(online, 1, [2, 0])
    assert [online.cash(page) for page in range(3)] == [0.25, 0.0, 0.75]


def test_a_page_that_is_fetched_often_inflates_nobody() -> None:
    """The second of two fetches hands on nothing, unless the page itself has gained."""
    online: OnlineImportance[int] = OnlineImportance()
    online.seed(0, 1.0)
    credit(online, 0, [1, 2], 2.0)
    once = [(online.gain(page), online.cash(page)) for page in range(3)]
    assert once[1] == (0.9, 0.5)
    for _ in range(5):
        credit(online, 0, [1, 2], 2.0)
    assert [(online.gain(page), online.cash(page)) for page in range(3)] == once
    credit(online, 1, [0], 1.0)
    credit(online, 0, [1, 2], 2.0)
    assert online.gain(2) > once[2][0]
    assert sum(online.cash(page) for page in range(3)) == pytest.approx(1.0)


def test_a_ranking_holds_the_links_of_what_was_crawled() -> None:
    """Fetching again what a ranking knows credits nobody; a page that it saw uncrawled does."""
    online: OnlineImportance[int] = OnlineImportance(damping=0.5)
    online.credit(0, [1, 2], score=2.0, linked=True)
    assert (online.gain(1), online.gain(2)) == (0.0, 0.0)
    online.credit(1, [2], score=1.0, linked=False)
    assert online.gain(2) == 0.5
    online.credit(2, [3], score=3.0, linked=True)  # only what it gained since
    assert online.gain(3) == 0.25
    online.rank()
    assert online.gain(2) == 0.0


def test_backlinks_are_counted_that_no_ranking_has_each_page_once() -> None:
    online: OnlineImportance[int] = OnlineImportance()
    for page, targets in ((0, [1, 2]), (1, [2]), (0, [1, 2]), (3, [])):
        credit(online, page, targets)
    online.credit(4, [2], score=1.0, linked=True)
    assert (online.backlinks([0, 1, 2, 9]).tolist(), online.links) == ([0.0, 1.0, 2.0, 0.0], 3)
    online.rank()
    assert (online.backlinks([2]).tolist(), online.links) == ([0.0], 0)


def test_what_is_kept_is_bounded_and_those_with_least_go() -> None:
    online: OnlineImportance[int] = OnlineImportance(most=100)
    for page in range(1000, 3000):
        credit(online, page, [7, page % 400 + 10])
        assert len(online) <= 100
    assert online.gain(7) == pytest.approx(2000 * 0.9 * PRIOR / 2)


def test_a_waiting_page_is_named_once_it_is_worth_what_was_not_expected_of_it() -> None:
    """The product of rank and cash counts, of pages that were weighed; a ranking begins anew."""
    online: OnlineImportance[int] = OnlineImportance(damping=0.5)
    online.seed(0, 3.0)
    credit(online, 0, [1, 2, 3], 6.0)
    gains, cash = online.gains_and_cash([1, 2, 9])
    assert gains.tolist() == [1.0, 1.0, 0.0]
    assert cash[:2].tolist() == [1.0, 1.0]
    assert np.isnan(cash[2])
    online.expect([1, 2], np.array([1.0, 1.0]), np.array([4.0, 5.0]))
    assert not online.credit(5, [3, 2, 1, 9], score=0.0, linked=False, scale=1.9)
    assert online.credit(5, [3, 2, 1, 9], score=0.0, linked=False, scale=2.0) == {2: pytest.approx(4.0)}
    assert online.credit(4, [2], score=2.0, linked=False, scale=2.0) == {0: pytest.approx(6.0)}
    assert online.credit(5, [2], score=0.0, linked=False, scale=7.9) == {}  # told again when it is worth twice as much
    assert online.credit(5, [2], score=0.0, linked=False, scale=8.0) == {0: pytest.approx(24.0)}
    online.rank()
    assert online.credit(5, [1, 2], score=0.0, linked=False, scale=100.0) == {}


def test_rows_grow_with_what_is_known() -> None:
    """More pages than there is room for at first, in one step and in many; what is known of the first stays."""
    online: OnlineImportance[int] = OnlineImportance()
    online.seed(0, 1.0)
    credit(online, 0, list(range(1, 5001)))
    assert online.cash(1) == online.cash(5000) == pytest.approx(1 / 5000)
    for page in range(6000, 12000):
        online.seed(page, 2.0)
    assert online.cash(1) == pytest.approx(1 / 5000)
    assert online.cash(11999) == 2.0
    assert online.cash(5001, absent=7.0) == 7.0
