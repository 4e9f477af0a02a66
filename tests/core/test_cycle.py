"""Census to instance, and phase clocks."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.buckets import interval_of
from webfountain.core.cycle import STRATEGIES, PhaseClocks, instance_of, weights_of


def test_the_strategies_weigh_the_periods_as_the_paper_says():
    assert weights_of(1, 3).tolist() == [1, 1, 1]
    assert weights_of(2, 3).tolist() == [0, 0, 1]
    low, _, last = weights_of(3, 3)
    assert 0 < low < 0.1 < last == 1
    assert STRATEGIES == (1, 2, 3)
    with pytest.raises(ValueError, match="strategy 4"):
        weights_of(4, 3)


def test_an_instance_has_the_census_and_the_change_fractions_of_its_buckets():
    instance = instance_of(
        np.array([10, 200]), np.array([30.0, 10.0]), np.array([3.0, 1.0]), strategy=2, periods=4, period=86400.0,
        fastest=900.0, capacity=5.0, waiting=2.0, arrivals=0.5,
    )  # fmt: skip
    assert (instance.T, instance.B) == (4, 2)
    assert instance.a[3, 1] == pytest.approx(1 - np.exp(-86400 / interval_of(200, 900.0)))
    assert instance.p.tolist() == [0.75, 0.25]
    assert instance.oldwt[:, 0].tolist() == [0, 0, 0, 1]


def test_a_page_is_due_when_its_clock_has_gained_one_whatever_plan_moved_it():
    clocks, bucket = PhaseClocks(), np.array([7])
    mark = clocks.mark(bucket)
    for increment in (0.25, 0.25, 0.5):
        assert clocks.progress(bucket, mark)[0] < 1
        clocks.advance(np.array([7, 9]), np.array([increment, 0.0]))
    assert clocks.progress(bucket, mark)[0] == 1
    assert clocks.progress(np.array([9]), mark)[0] == 0


def test_a_bucket_outside_the_plan_goes_with_its_nearest_neighbour():
    clocks = PhaseClocks()
    clocks.advance(np.array([30, 10]), np.array([0.5, 1.0]))
    gained = clocks.progress(np.array([0, 20, 21, 255]), np.zeros(4))
    assert gained.tolist() == [1.0, 1.0, 0.5, 0.5]
