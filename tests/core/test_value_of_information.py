"""The value of information: a visit may show whether later visits to a page are worth their price."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from webfountain.core.independent_pages import RATES
from webfountain.core.value_of_information import LaterVisits

USUAL = 1 / 120
PRICES = st.floats(0.5, 20.0)
WEIGHTS = arrays(np.float64, (5, len(RATES)), elements=st.floats(0.0, 1.0)).filter(lambda each: each.sum(1).min() > 0.1)


def later(visit: float = 25.0) -> LaterVisits:
    return LaterVisits(usual_rate=USUAL, visit=visit)


def one_or_other(slow: float, fast: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Of a page that changes at one of two rates, each with probability one half."""
    chances = np.zeros((1, len(RATES)))
    for rate in (slow, fast):
        chances[0, np.abs(np.log(RATES * USUAL / rate)).argmin()] = 0.5
    return chances


def value(chances: np.ndarray[tuple[int, int], np.dtype[np.float64]], age: float, price: float = 3.0) -> float:
    pages = np.ones(len(chances))
    return float(later().information(chances, age * pages, price * pages, 0.0 * pages)[0].max())


@given(WEIGHTS, st.floats(0.0, 400.0), PRICES)
def test_the_value_is_never_negative_and_never_above_the_value_of_knowing_the_rate(
    weights: np.ndarray[tuple[int, int], np.dtype[np.float64]], age: float, price: float
) -> None:
    pages = np.ones(len(weights))
    chances = weights / weights.sum(axis=1, keepdims=True)
    found, most = later().information(chances, age * pages, price * pages, 0.0 * pages)
    assert (found >= 0.0).all()
    assert (found <= most + 1e-9).all()


def test_a_visit_is_worth_most_where_its_result_separates_the_rates() -> None:
    """A change in ten days or three a day: a visit after three days shows which, one after three months does not."""
    page = one_or_other(0.1, 3.0)
    assert value(page, 3.0) > 2.0
    assert value(page, 90.0) < 0.1 * value(page, 3.0)
    assert value(page, 0.0) == 0.0


def test_a_page_of_known_rate_has_nothing_to_show() -> None:
    assert value(one_or_other(0.1, 0.1), 3.0) == pytest.approx(0.0, abs=1e-9)


def test_a_value_that_cannot_fill_what_lacks_is_not_computed_but_its_limit_is_known() -> None:
    pages = np.ones(1)
    found, most = later().information(one_or_other(0.1, 3.0), 3.0 * pages, 3.0 * pages, 1e3 * pages)
    assert found[0] == 0.0 < most[0] < 1e3


def test_a_page_without_a_price_has_no_value_of_information() -> None:
    pages = np.ones(1)
    found = later().information(one_or_other(0.1, 3.0), 3.0 * pages, np.inf * pages, 0.0 * pages)
    assert found.tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("visit", [7.6, 17.1, 38.4, 86.5])
def test_where_visits_are_frequent_or_rare_what_they_show_does_not_count(visit: float) -> None:
    assert later(visit).horizon == 0.0
    pages = np.ones(1)
    found = later(visit).information(one_or_other(0.1, 3.0), 3.0 * pages, 3.0 * pages, 0.0 * pages)
    assert found.tolist() == [[0.0], [0.0]]
