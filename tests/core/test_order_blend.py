"""A blend of orders: the chances of pages, the weights of orders, and the bound that holds on any web."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.order_blend import _PRIOR, _RATE, OrderBlend, _posterior, weights_by_losses

ALONE = {"breadth-first": [0.0, 9.0, 9.0], "backlinks": [9.0, 0.0, 9.0], "pagerank": [9.0, 9.0, 0.0]}
"""Losses after which one order has all the weight."""


def blend_of(order: str) -> OrderBlend:
    blend = OrderBlend()
    blend.rank(ALONE[order], waiting=4, backlinks=np.array([4.0, 3.0, 2.0, 1.0]), ranks=np.array([0.2, 0.3, 0.4, 0.5]))
    return blend


@pytest.mark.parametrize(("order", "first"), [("backlinks", 0), ("pagerank", 3)])
def test_the_chance_of_a_page_falls_with_its_place_and_a_mean_page_has_one(order: str, first: int) -> None:
    found = blend_of(order).importance(np.array([4.0, 3.0, 2.0, 1.0]), np.array([0.2, 0.3, 0.4, 0.5]))
    assert found.argmax() == first
    np.testing.assert_allclose(np.sort(found / found.max())[::-1], [1.0, 1.5 / 2.5, 1.5 / 3.5, 1.5 / 4.5])
    assert found.mean() == pytest.approx(1.0)


def test_breadth_first_order_gives_all_pages_the_same_importance() -> None:
    """Pages of equal importance are in one lane, in the order in which they were found."""
    assert blend_of("breadth-first").importance(np.array([9.0, 0.0]), np.array([0.0, 9.0])).tolist() == [1.0, 1.0]
    assert OrderBlend().importance(np.array([9.0, 0.0]), np.array([0.0, 9.0])).tolist() == [1.0, 1.0]


def test_in_pagerank_order_pages_found_since_the_ranking_come_last() -> None:
    old, new = blend_of("pagerank").importance(np.array([0.0, 99.0]), np.array([0.2, 0.0]))
    assert new == 0.5 * old


def test_more_backlinks_than_any_page_had_at_the_ranking_are_worth_more() -> None:
    four, eight = blend_of("backlinks").importance(np.array([4.0, 8.0]), np.zeros(2))
    assert eight == pytest.approx(2 * four)


def test_a_ranking_without_waiting_pages_makes_all_pages_alike() -> None:
    blend = OrderBlend()
    blend.rank([0.0, 0.0, 0.0], waiting=0, backlinks=np.zeros(0), ranks=np.zeros(0))
    assert blend.importance(np.array([1.0, 0.0]), np.array([0.0, 3.0])).tolist() == pytest.approx([1.0, 1.0])


def test_pagerank_order_has_the_most_weight_until_a_replay_shows_another_to_be_better() -> None:
    assert weights_by_losses([]).argmax() == 2
    assert weights_by_losses([2.0, 2.1, 2.0]).argmax() == 2
    assert weights_by_losses([2.0, 1.5, 2.0]).argmax() == 1
    assert weights_by_losses([1.5, 2.0, 2.0]).tolist() == [1.0, 0.0, 0.0]  # orders of little weight are left out


@given(st.lists(st.tuples(*[st.floats(0.0, 10.0)] * 3), min_size=1, max_size=30))
def test_the_loss_of_the_blend_stays_within_its_bound_of_each_order(replays: list[tuple[float, ...]]) -> None:
    """The bound of the module's docstring, for arbitrary losses."""
    sums, total = np.zeros(3), 0.0
    for losses in np.array(replays):
        mixed = float(_posterior(sums.tolist()) @ np.exp(-_RATE * (losses - losses.min())))
        total += float(losses.min()) - np.log(mixed) / _RATE
        sums += losses
    for order, own in enumerate(sums):
        assert total <= own + np.log(1.0 / _PRIOR[order]) / _RATE + 1e-9
