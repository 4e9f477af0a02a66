"""The believed freshness of a collection, from its census."""

from __future__ import annotations

import math

import pytest

from webfountain.core.buckets import interval_of
from webfountain.core.change_rate import fresh_share, freshness
from webfountain.store.answers import BucketCensus


def test_freshness_is_that_of_evenly_aged_pages_that_change_as_a_poisson_process() -> None:
    """The closed form against the mean of e^-age/D over even ages."""
    fastest, bucket, mean_age = 900.0, 120, 200_000.0
    interval = interval_of(bucket, fastest)
    ages = [2 * mean_age * (step + 0.5) / 10_000 for step in range(10_000)]
    expected = sum(math.exp(-age / interval) for age in ages) / len(ages)
    assert fresh_share(mean_age, bucket, fastest_s=fastest) == pytest.approx(expected, rel=1e-6)


def test_a_page_without_a_copy_is_not_fresh() -> None:
    census = {255: BucketCensus(pages=3, sum_last_crawled=300.0)}
    assert freshness(census, never_crawled=1, at=100.0, fastest_s=900.0) == pytest.approx(0.75)
