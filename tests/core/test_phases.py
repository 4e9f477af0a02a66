"""Phase clocks: due and horizon are inverse, agree with adding up step by step, and a plan never changes the past."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.phases import Phases

if TYPE_CHECKING:
    from webfountain.core.arrays import Array

    Rows = list[list[float]]  # a plan: each period's gain of each lane

START, PERIOD = 1000.0, 10.0
gains = st.floats(0.0, 3.0).map(lambda x: 0.0 if x < 0.05 else x)
plans = st.lists(st.lists(st.lists(gains, min_size=2, max_size=2), min_size=1, max_size=6), min_size=1, max_size=4)
speeds = st.lists(st.floats(0.01, 2.0), min_size=2, max_size=2)


def clocks_of(speed: list[float], cycles: list[Rows], keep: int = 64) -> Phases:
    """Clocks that ran at `speed` and then followed each of the plans, one right after the other."""
    phases, start = Phases.running(np.array(speed), start=START), START
    for rows in cycles:
        phases = phases.planned(np.array(rows), start=start, period=PERIOD, keep=keep)
        start += PERIOD * len(rows)
    return phases


def added_up(speed: list[float], cycles: list[Rows], t: float) -> Array:
    """The phase by adding every period's gain, from 0 at START."""
    rows = [row for cycle in cycles for row in cycle]
    if t <= START:
        return np.array(speed) * (t - START)
    phase, begun = np.zeros(2), START
    for row in rows:
        phase = phase + np.array(row) * min(max((t - begun) / PERIOD, 0.0), 1.0)
        begun += PERIOD
    last: Array = np.mean(cycles[-1], axis=0) / PERIOD
    return phase + last * max(t - begun, 0.0)


@given(speeds, plans, st.floats(-50, 150))
def test_a_clock_shows_what_every_period_added(speed: list[float], cycles: list[Rows], after: float) -> None:
    t = START + after
    assert clocks_of(speed, cycles).at(t) == pytest.approx(added_up(speed, cycles, t), abs=1e-9)


@given(speeds, plans, st.floats(-50, 150), st.floats(0.1, 3.0))
def test_what_was_crawled_at_the_horizon_is_due_just_now(
    speed: list[float], cycles: list[Rows], after: float, gain: float
) -> None:
    """horizon and due are inverse of each other: nothing crawled later is due, all crawled before is."""
    phases, t = clocks_of(speed, cycles), START + after
    for lane, horizon in enumerate(phases.horizon(t, gain=gain)):
        assert horizon < t
        assert phases.due(lane, horizon - 1e-6, gain=gain) <= t + 1e-3
        assert phases.due(lane, horizon + 1e-3, gain=gain) >= t - 1e-3


@given(speeds, plans, st.floats(-50, 100), st.floats(0.1, 3.0))
def test_a_page_is_due_when_the_added_gains_reach_its_share(
    speed: list[float], cycles: list[Rows], after: float, gain: float
) -> None:
    phases, order = clocks_of(speed, cycles), START + after
    for lane in range(2):
        due = phases.due(lane, order, gain=gain)
        wanted = added_up(speed, cycles, order)[lane] + gain
        if due == inf:
            assert added_up(speed, cycles, 1e9)[lane] < wanted
        else:
            assert added_up(speed, cycles, due)[lane] == pytest.approx(wanted, abs=1e-6)
            assert added_up(speed, cycles, due - 1e-3)[lane] <= wanted


@given(speeds, plans, st.lists(st.lists(gains, min_size=2, max_size=2), min_size=1, max_size=5), st.floats(-20, 150))
def test_a_new_plan_never_changes_what_happened_before_its_start(
    speed: list[float], cycles: list[Rows], rows: Rows, after: float
) -> None:
    phases, start = clocks_of(speed, cycles), START + after
    planned = phases.planned(np.array(rows), start=start, period=PERIOD)
    for t in np.linspace(START - 100, start, 17):
        assert planned.at(t) == pytest.approx(phases.at(t), abs=1e-9)


def test_forgotten_knots_count_at_the_mean_speed_of_those_that_stay() -> None:
    phases = clocks_of([1.0, 1.0], [[[0.5, 2.0]]] * 20, keep=4)
    assert len(phases.times) <= 6
    assert phases.before == pytest.approx([0.05, 0.2])
    later = phases.planned(np.full((3, 2), 9.0), start=phases.times[-1], period=PERIOD, keep=4)
    assert later.before == pytest.approx([0.05, 0.2]), "the plan to come says nothing of the past"


def test_a_lane_that_no_plan_visits_is_never_due_and_its_horizon_lies_before_all_time() -> None:
    phases = Phases.running(np.zeros(1), start=START).planned(np.zeros((3, 1)), start=START, period=PERIOD)
    assert phases.due(0, START) == inf
    assert phases.horizon(START + 100)[0] == -inf


def test_a_page_is_due_when_a_period_without_visits_is_over() -> None:
    phases = Phases.running(np.ones(1), start=START).planned(np.array([[1.0], [0.0], [1.0]]), start=START, period=10.0)
    assert phases.due(0, START, gain=1.0) == pytest.approx(START + 10)
    assert phases.due(0, START + 5, gain=1.0) == pytest.approx(START + 25)
    assert phases.horizon(START + 15)[0] == pytest.approx(START)
