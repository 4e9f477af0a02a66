"""From counts to constants: priors at first, the truth at last, and an instance that the model accepts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.buckets import bucket_of, intervals_of
from webfountain.core.census import MOST_FINDS, PRIOR_LINKS, Census, change_rates, instance_from, obsolete_of

if TYPE_CHECKING:
    from webfountain.core.arrays import Array
    from webfountain.core.model import Instance

DAY = 86_400.0
FASTEST = DAY / 96
BUCKETS = np.array([bucket_of(days * DAY, FASTEST) for days in (1, 5, 30)])


def nothing_counted(**counted: Any) -> Census:
    zero = np.zeros(3)
    return replace(
        Census(
            BUCKETS, np.array([100.0, 300.0, 600.0]), np.full(3, 2 * DAY), zero, zero, zero, zero, zero, zero,
            new_fetches=0.0, new_seconds=0.0, new_links=0.0, waiting=50.0, arrivals=7.0,
        ),
        **counted,
    )  # fmt: skip


def checked(rates: Array, n: int, gap: float) -> Census:
    """What n checks of each bucket, `gap` s apart, count when its pages change at `rates`."""
    rng = np.random.default_rng(3)
    changes = rng.binomial(n, -np.expm1(-rates * gap)).astype(float)
    return nothing_counted(fetches=np.full(3, float(n)), changes=changes, observed_time=np.full(3, n * gap))


def built(census: Census, **more: bool | int) -> Instance:
    settings: dict[str, Any] = {
        "strategy": 3,
        "periods": 14,
        "period": DAY,
        "fastest": FASTEST,
        "capacity": 400.0,
        "in_pages": True,
    }
    return instance_from(census, **(settings | more))


def test_before_anything_is_counted_a_bucket_has_its_nominal_rate() -> None:
    assert change_rates(nothing_counted(), FASTEST) == pytest.approx(1 / intervals_of(BUCKETS, FASTEST))


@pytest.mark.parametrize("off", [0.2, 1.0, 4.0])
def test_change_rates_converge_to_the_truth_whatever_the_bucket_says(off: float) -> None:
    truth = off / intervals_of(BUCKETS, FASTEST)
    found = change_rates(checked(truth, 20_000, 0.3 * DAY), FASTEST)
    assert found == pytest.approx(truth, rel=0.1)


def test_a_bucket_checked_long_without_a_change_is_believed_to_change_rarely() -> None:
    census = checked(np.zeros(3), 5000, DAY)
    assert np.all(change_rates(census, FASTEST) < 0.05 / intervals_of(BUCKETS, FASTEST))


def test_checks_that_all_find_a_change_add_nothing() -> None:
    census = checked(np.full(3, 100.0 / DAY), 1000, DAY)
    assert change_rates(census, FASTEST) == pytest.approx(1 / intervals_of(BUCKETS, FASTEST))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1), st.floats(1, 1e8)), min_size=3, max_size=3))
def test_rates_are_positive_and_finite_and_obsolete_pages_never_outnumber_the_pages(
    counts: list[tuple[int, float, float]],
) -> None:
    fetches, share, gap = (np.array(column) for column in zip(*counts, strict=True))
    census = nothing_counted(
        fetches=fetches.astype(float), changes=np.floor(fetches * share), observed_time=fetches * gap, mean_age=gap
    )
    rates = change_rates(census, FASTEST)
    assert np.all((rates > 0) & np.isfinite(rates))
    obsolete = obsolete_of(census, rates)
    assert np.all((obsolete >= 0) & (obsolete <= census.pages))


def test_the_obsolete_estimate_is_the_mean_over_ages_up_to_twice_the_mean() -> None:
    census, rates = nothing_counted(), np.array([1.0, 0.2, 0.01]) / DAY
    ages = (np.arange(10_000) + 0.5) / 10_000 * 4 * DAY
    truth = [n * np.mean(-np.expm1(-rate * ages)) for n, rate in zip(census.pages, rates, strict=True)]
    assert obsolete_of(census, rates) == pytest.approx(truth, rel=1e-6)


def test_costs_and_finds_per_fetch_converge_to_what_was_counted_and_start_from_a_belief() -> None:
    first = built(nothing_counted())
    assert first.w[0] == pytest.approx(PRIOR_LINKS)
    n = np.full(3, 50_000.0)
    many = nothing_counted(
        fetches=n, seconds=n * [0.1, 0.2, 0.4], links=n * [0.3, 0.1, 0.0], births=n * [0.5, 0.3, 0.2],
        new_fetches=50_000.0, new_seconds=25_000.0, new_links=20_000.0,
    )  # fmt: skip
    later = built(many, in_pages=False)
    assert later.c[0] == pytest.approx([0.1, 0.2, 0.4], rel=0.01)
    assert later.d[0] == pytest.approx(0.5, rel=0.01)
    assert later.w[0] == pytest.approx(0.4, rel=0.01)
    assert later.o[0] == pytest.approx(np.array([0.3, 0.1, 0.0]) * (1 - later.w[0]), rel=0.01, abs=1e-3)
    assert later.p == pytest.approx([0.5, 0.3, 0.2], rel=0.01)
    assert later.nconst == pytest.approx(7.0)
    assert later.n0 == 50.0


def test_in_pages_every_fetch_costs_one_and_finds_are_bounded() -> None:
    flood = built(nothing_counted(new_fetches=1000.0, new_links=50_000.0, births=np.full(3, 1000 / 3)))
    assert np.all(flood.c == 1.0)
    assert np.all(flood.d == 1.0)
    assert np.all(flood.w == MOST_FINDS)
    assert flood.newwt[-1] == pytest.approx(1 / (1 - MOST_FINDS)), "a first copy is worth one obsolete page"


def test_a_url_that_was_never_fetched_is_worth_the_chance_that_it_has_a_page() -> None:
    alive, dead = (built(nothing_counted(new_fetches=980.0, births=np.full(3, each))) for each in (980 / 3, 0.0))
    assert dead.newwt == pytest.approx(0.02 * alive.newwt)


def test_every_period_has_some_weight_so_that_free_crawls_come_early() -> None:
    assert np.all(built(nothing_counted(), strategy=2).oldwt > 0)
