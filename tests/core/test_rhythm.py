"""The week of a site."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.rhythm import WEEK, Week


def test_before_anything_is_found_all_days_are_alike():
    assert Week().factors(3, 20).tolist() == [1.0] * 17


def test_a_day_on_which_nothing_changes_calms_and_the_others_stay():
    week, found = Week(), np.ones(70)
    found[6::WEEK] = 0.0
    week.learn(0, found, np.ones(70))
    factors = week.factors(0, WEEK)
    assert factors[6] == pytest.approx(5 / 15)
    assert factors[:6].tolist() == [1.0] * 6
    assert week.factors(6, 7) == week.factors(76, 77)


def test_a_closed_step_counts_as_if_it_were_told_again_and_fades():
    told, closed, faded = Week(), Week(), Week()
    told.learn(0, np.array([4.0, 0.0]), np.array([1.0, 1.0]))
    closed.close(0, 4.0, 1.0, keep=1.0)
    closed.learn(1, np.zeros(1), np.ones(1))
    assert closed.factors(0, WEEK).tolist() == told.factors(0, WEEK).tolist()
    faded.close(0, 4.0, 1.0, keep=1.0)
    faded.close(1, 0.0, 0.0, keep=0.5)
    faded.learn(2, np.zeros(1), np.zeros(1))
    assert faded.factors(0, 1)[0] == pytest.approx((2 + 5) / (0.5 + 5))


DAYS = st.lists(st.tuples(st.floats(0, 9), st.floats(0.1, 9)), min_size=1, max_size=20)


@given(DAYS, st.integers(1, 30), st.integers(0, 9))
def test_a_day_of_many_steps_is_learned_as_a_day_of_one(days, steps, begin):
    whole, parts = Week(), Week(day=float(steps))
    found, expected = np.array(days).T
    whole.learn(begin, found, expected)
    parts.learn(begin * steps, np.repeat(found / steps, steps), np.repeat(expected / steps, steps))
    assert parts.factors(0, WEEK * steps) == pytest.approx(np.repeat(whole.factors(0, WEEK), steps))


def test_a_step_belongs_to_the_day_it_begins_in():
    """Steps of 10 hours: the third begins at hour 20 of the first day, the fourth at hour 6 of the second."""
    week = Week(day=2.4)
    week.close(2, 9.0, 1.0, keep=1.0)
    week.learn(3, np.zeros(1), np.zeros(1))
    assert week.factors(0, 4).tolist() == [pytest.approx(14 / 6)] * 3 + [1.0]
    assert week.factors(17, 20).tolist() == [pytest.approx(14 / 6)] * 3, "a week later, from hour 170 on"
