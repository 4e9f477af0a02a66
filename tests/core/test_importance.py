"""Importance between rankings, combined, and as classes."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.importance import OnlineImportance, combined, importance_class


def test_classes_are_half_octaves_around_the_mean() -> None:
    scores = np.array([0.0, 1e-9, 1.0, 1.41, 1.42, 2.0, 4.0, 2.0**23.5, 1e30])
    assert importance_class(scores).tolist() == [0, 0, 16, 16, 17, 18, 20, 63, 63]


def test_scores_are_combined_by_a_policys_weights() -> None:
    scores = {"pagerank": np.array([1.0, 2.0]), "trust": np.array([4.0, 0.0]), "location": np.array([9.0, 9.0])}
    assert combined(scores, {"pagerank": 3.0, "trust": 1.0}).tolist() == [1.75, 1.5]
    for wrong in ({"depth": 1.0}, {"trust": -1.0}, {"trust": 0.0}, {}):
        with pytest.raises(ValueError, match="weights"):
            combined(scores, wrong)


def test_cash_flows_to_where_nobody_was_and_none_is_made() -> None:
    online = OnlineImportance()
    online.seed(0, 1.0)
    online.credit(0, [1, 2])
    online.credit(1, [2, 0])
    assert [online.cash(page) for page in range(3)] == [0.25, 0.0, 0.75]


def test_a_page_that_is_fetched_often_inflates_nobody() -> None:
    """The second of two fetches hands on nothing, unless the page itself has gained."""
    online = OnlineImportance()
    online.publish([0, 1, 2], [2.0, 1.0, 1.0], crawled=[])
    online.seed(0, 1.0)
    online.credit(0, [1, 2])
    once = [(online.rank(page), online.cash(page)) for page in range(3)]
    for _ in range(5):
        online.credit(0, [1, 2])
    assert [(online.rank(page), online.cash(page)) for page in range(3)] == once
    online.credit(1, [0])
    online.credit(0, [1, 2])
    assert online.rank(2) > once[2][0]
    assert sum(online.cash(page) for page in range(3)) == pytest.approx(1.0)


def test_a_ranking_holds_the_links_of_what_was_crawled() -> None:
    """Fetching again what a ranking knows credits nobody; a page that it saw uncrawled does."""
    online = OnlineImportance(damping=0.5)
    online.publish([0, 1, 2], [2.0, 1.0, 3.0], crawled=[0])
    online.credit(0, [1, 2])
    assert (online.rank(1), online.rank(2)) == (1.0, 3.0)
    online.credit(1, [2])
    assert online.rank(2) == 3.5
    online.publish([2], [1.0], crawled=[])
    assert online.rank(2) == 1.0
