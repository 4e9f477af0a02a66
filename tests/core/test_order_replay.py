"""Replays of the known web: each order is measured by the places of the important pages."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.order_replay import _breadth_first, _by_backlinks, _by_rank, replay_losses

CHAIN_AND_HUB = [[1, 2, 3, 4], [5], [5, 6], [5], [], [7], [], []]
"""Page 0 links to four pages; three of these link to page 5, which leads to page 7."""


def test_breadth_first_takes_pages_as_they_are_found() -> None:
    assert list(_breadth_first(CHAIN_AND_HUB)) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_backlink_order_takes_the_page_with_most_links_and_of_equals_the_one_found_first() -> None:
    assert list(_by_backlinks(CHAIN_AND_HUB)) == [0, 1, 2, 5, 3, 4, 6, 7]


def test_rank_order_takes_the_best_ranked_page_and_pages_found_since_the_ranking_last() -> None:
    """Ranked after each page: page 5 gets the rank of two pages."""
    order = list(_by_rank(CHAIN_AND_HUB))
    assert sorted(order) == list(range(8))
    assert order.index(5) < order.index(4)


@pytest.mark.parametrize("order", [_breadth_first, _by_backlinks, _by_rank])
def test_a_replay_fetches_every_page_once_other_seeds_too(order) -> None:  # type: ignore[no-untyped-def]
    assert sorted(order([[1], [0], [3], [2], []])) == [0, 1, 2, 3, 4]
    assert list(order([[]])) == [0]


def test_the_order_that_fetches_the_important_pages_first_has_the_least_loss() -> None:
    """A page that all others link to lies behind forty pages of a list: backlink order takes it after the second."""
    pages = 42
    links = [list(range(1, pages - 1)), *([[pages - 1]] * (pages - 2)), []]
    importance = np.zeros(pages)
    importance[pages - 1] = 1.0
    breadth, backlinks, _ = replay_losses(links, ranks=importance, backlinks=importance)
    assert backlinks < breadth
