"""The week of sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.activity import WEEK, factors_of_steps, factors_of_week, summed_by_day

if TYPE_CHECKING:
    import numpy.typing as npt

FLAT = np.zeros((1, WEEK))


def steps(first: int, last: int) -> npt.NDArray[np.int64]:
    return np.arange(first, last)[None]


def test_before_anything_is_found_all_days_are_alike() -> None:
    assert factors_of_steps(steps(3, 20), factors_of_week(FLAT, FLAT), day=1.0).tolist() == [[1.0] * 17]


def test_a_day_on_which_nothing_changes_calms_and_the_others_stay() -> None:
    found, expected = np.ones((1, 70)), np.ones((1, 70))
    found[:, 6::WEEK] = 0.0
    week = factors_of_week(*(summed_by_day(steps(0, 70), each, day=1.0) for each in (found, expected)))
    assert week.tolist() == [[1.0] * 6 + [pytest.approx(5 / 15)]]
    assert factors_of_steps(np.array([[6, 76, 77]]), week, day=1.0).tolist() == [[week[0, 6], week[0, 6], 1.0]]


def test_each_site_has_a_week_of_its_own() -> None:
    both = np.stack([np.arange(14), np.arange(3, 17)])
    assert summed_by_day(both, np.ones((2, 14)), day=1.0).tolist() == [[2.0] * WEEK] * 2
    sums = summed_by_day(both, np.stack([np.zeros(14), (both[1] == 10) * 4.0]), day=1.0)
    assert sums.tolist() == [[0.0] * WEEK, [0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0]]


@given(st.lists(st.floats(0, 9), min_size=1, max_size=20), st.integers(1, 30), st.integers(0, 9))
def test_a_day_of_many_steps_counts_as_a_day_of_one(days: list[float], parts: int, begin: int) -> None:
    whole = summed_by_day(steps(begin, begin + len(days)), np.array([days]), day=1.0)
    cut = np.repeat(np.array([days]) / parts, parts, axis=1)
    again = summed_by_day(steps(begin * parts, (begin + len(days)) * parts), cut, day=float(parts))
    assert again == pytest.approx(whole)


def test_a_step_belongs_to_the_day_it_begins_in() -> None:
    """Steps of 10 hours: the third begins at hour 20 of the first day, the fourth at hour 6 of the second."""
    week = summed_by_day(np.array([[2]]), np.array([[9.0]]), day=2.4)
    assert factors_of_steps(steps(0, 4), week, day=2.4).tolist() == [[9.0] * 3 + [0.0]]
    assert factors_of_steps(steps(17, 20), week, day=2.4).tolist() == [[9.0] * 3], "a week later, from hour 170 on"
