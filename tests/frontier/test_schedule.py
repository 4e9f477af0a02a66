"""Schedules: a horizon and a due time say the same of every page, within the bounds, whatever the plan."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.plans import DAY, hand_made
from webfountain.core.buckets import BUCKETS, interval_of
from webfountain.core.phases import Phases
from webfountain.frontier.fountain import FountainSchedule
from webfountain.frontier.schedule import LOOKS, REFRESH, Bounds, BucketSchedule, NoRecrawl, PlanSchedule
from webfountain.store.base import ADVANCED, LANES, RETRY

FASTEST = DAY / 96
SPEED = np.geomspace(4 / DAY, 1e-3 / DAY, BUCKETS)
INTERVALS = tuple(np.geomspace(0.1 * DAY, 300 * DAY, BUCKETS).tolist())


def planned():
    gains = np.array([np.linspace(3.0, 0.0, BUCKETS), np.linspace(0.0, 0.5, BUCKETS)])
    return hand_made(Phases.running(SPEED, start=0.0).planned(gains, start=0.0, period=DAY), intervals=INTERVALS)


MAKERS = {
    "bucket": lambda bounds: BucketSchedule(fastest=FASTEST, bounds=bounds),
    "plan": lambda bounds: PlanSchedule(planned(), bounds=bounds),
    "fountain": lambda bounds: FountainSchedule(planned(), bounds=bounds, watched=lambda site: False),
}


@pytest.mark.parametrize("name", MAKERS)
@given(st.integers(0, BUCKETS - 1), st.floats(0, 20), st.floats(0, 30), st.sampled_from([(0.0, inf), (0.5, 9.0)]))
def test_a_page_is_inside_the_horizon_exactly_when_its_due_time_has_come(name, lane, crawled, later, bounds):
    schedule = MAKERS[name](Bounds(bounds[0] * DAY, bounds[1] * DAY))
    order, at = crawled * DAY, (crawled + later) * DAY
    (due,) = schedule.due_times("s", [(lane, order)], at)
    assert order + bounds[0] * DAY <= due <= order + bounds[1] * DAY
    if abs(due - at) > 1.0:  # but for rounding
        assert (order <= schedule.horizon("s", at)[lane]) == (due <= at)


@pytest.mark.parametrize("name", MAKERS)
def test_what_has_a_time_of_its_own_is_due_then(name):
    schedule = MAKERS[name](Bounds())
    assert schedule.due_times("s", [(ADVANCED, 5.0), (RETRY, 7.0)], 0.0) == [5.0, 7.0]
    horizon = schedule.horizon("s", 42.0)
    assert len(horizon) == LANES
    assert horizon[ADVANCED:] == [42.0, 42.0]


def test_without_a_plan_a_page_is_looked_at_some_times_per_expected_change():
    schedule = BucketSchedule(fastest=FASTEST, bounds=Bounds())
    assert schedule.due_times("s", [(100, 0.0)], 0.0) == [pytest.approx(interval_of(100, FASTEST) / LOOKS)]
    assert schedule.weights(0.0) == (0.5, 0.5)


def test_without_recrawling_nothing_is_due_again():
    schedule = NoRecrawl()
    assert schedule.horizon("s", 9.0) == [-inf] * LANES
    assert schedule.due_times("s", [(3, 0.0), (RETRY, 1.0)], 9.0) == [inf, inf]
    assert schedule.weights(0.0) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["plan", "fountain"])
def test_a_correction_moves_all_due_times_at_once_and_stays_within_bounds(name):
    schedule = MAKERS[name](Bounds())
    before = schedule.horizon("s", DAY)[100]
    (due,) = schedule.due_times("s", [(100, 0.0)], 0.0)
    schedule.correct(0.5)
    assert schedule.horizon("s", DAY)[100] > before
    assert schedule.due_times("s", [(100, 0.0)], 0.0)[0] < due
    for _ in range(100):
        schedule.correct(0.5)
    least = schedule.due_times("s", [(100, 0.0)], 0.0)[0]
    schedule.correct(0.5)
    assert schedule.due_times("s", [(100, 0.0)], 0.0)[0] == least > 0


def test_a_plan_s_horizon_is_used_for_a_fiftieth_of_a_period():
    schedule = MAKERS["plan"](Bounds())
    first = schedule.horizon("a", DAY)
    assert schedule.horizon("b", DAY + 0.9 * REFRESH * DAY) is first
    assert schedule.horizon("a", DAY + 1.1 * REFRESH * DAY) is not first


def test_weights_follow_the_plan():
    for name in ("plan", "fountain"):
        assert MAKERS[name](Bounds()).weights(0.0) == pytest.approx((1 / 3, 2 / 3))
