"""When a page may reach a price, by the growth of its urgency and by the value of information."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.site_answers import REVIEW, Approach


@pytest.mark.parametrize(
    ("more", "steps"),
    [(0.0, 10.0), (1.0, 10.0 * 3.0**0.5 - 10.0), (3.5, 10.0 * REVIEW), (50.0, 10.0 * REVIEW)],
)
def test_a_page_with_more_to_show_may_reach_a_price_sooner_but_is_not_computed_again_at_every_step(
    more: float, steps: float
) -> None:
    """A page of urgency 1, fetched ten steps ago, which grows with the square of time."""
    page = Approach(*(np.array([each]) for each in (1.0, 2.0, 10.0, 10.0, 0.1, more)))
    assert page.steps_until(np.array([[4.0]])) == pytest.approx(steps)
