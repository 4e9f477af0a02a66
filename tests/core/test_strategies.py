"""The weights of the periods."""

from __future__ import annotations

import pytest

from webfountain.core.strategies import STRATEGIES, weights_of


def test_the_strategies_weigh_the_periods_as_the_paper_says() -> None:
    assert weights_of(1, 3).tolist() == [1, 1, 1]
    assert weights_of(2, 3).tolist() == [0, 0, 1]
    low, _, last = weights_of(3, 3)
    assert 0 < low < 0.1 < last == 1
    assert STRATEGIES == (1, 2, 3)
    with pytest.raises(ValueError, match="strategy 4"):
        weights_of(4, 3)
