"""The bucket byte is a rounded logarithm, clipped to 256 classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.buckets import BUCKETS, RATIO, bucket_of, interval_of, intervals_of, of_every_bucket

DAY = 86400.0
FASTEST = DAY / 96


def test_with_a_period_of_a_day_the_classes_run_from_fifteen_minutes_to_two_years() -> None:
    assert interval_of(0, FASTEST) == 15 * 60
    assert interval_of(255, FASTEST) == pytest.approx(730 * DAY, rel=1e-12)
    assert math.isclose(interval_of(18, FASTEST) / interval_of(17, FASTEST), RATIO)


@given(st.integers(0, BUCKETS - 1), st.floats(1e-3, 1e6))
def test_the_interval_of_a_bucket_falls_into_that_bucket(bucket: int, fastest: float) -> None:
    assert bucket_of(interval_of(bucket, fastest), fastest) == bucket


@given(st.floats(0, 1e12), st.floats(1e-3, 1e6))
def test_the_byte_is_the_clipped_rounded_logarithm(interval: float, fastest: float) -> None:
    logarithm = math.log(max(interval / fastest, 1e-300)) / math.log(RATIO)
    assert bucket_of(interval, fastest) == min(max(round(logarithm), 0), 255)


def test_impossible_and_infinite_intervals_fall_into_the_end_classes() -> None:
    assert [bucket_of(value, FASTEST) for value in (-1.0, 0.0, math.inf)] == [0, 0, 255]


def test_arrays_and_scalars_agree() -> None:
    classes = range(BUCKETS)
    assert intervals_of(classes, FASTEST).tolist() == pytest.approx([interval_of(c, FASTEST) for c in classes])


def test_a_bucket_without_a_value_lies_between_its_neighbours() -> None:
    every = of_every_bucket(np.array([10, 20]), np.array([1.0, 3.0]))
    assert every.shape == (BUCKETS,)
    assert every[[0, 10, 15, 20, 255]].tolist() == [1.0, 1.0, 2.0, 3.0, 3.0]
