"""The steady optimum and the oldest-first forecast, against brute force and against pages simulated one by one."""

from __future__ import annotations

import math
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from webfountain.core.fetch_price import interval_of_rest, intervals_at_price, price_of_budget
from webfountain.core.model import make_instance, obsolete_oldest_first, simulate_plan

if TYPE_CHECKING:
    from webfountain.core.arrays import Array
    from webfountain.core.model import Instance

classes = st.lists(st.tuples(st.integers(1, 10_000), st.floats(1e-7, 1e-3)), min_size=1, max_size=6)


def fresh_share(rate: float, interval: float) -> float:
    """Mean over time of P(fresh) for one page visited every `interval`. Source: Cho & Garcia-Molina 2003, eq. (9)."""
    return 0.0 if interval == inf else -math.expm1(-rate * interval) / (rate * interval)


@settings(max_examples=20, deadline=None)
@example([(1, 0.0002), (2, 1e-07)], 0.0625)  # what is given up would come before what is not
@given(classes, st.floats(0.05, 3.0))
def test_intervals_at_the_price_of_a_budget_spend_exactly_the_budget(
    given_classes: list[tuple[int, float]], visits: float
) -> None:
    pages, rates = (np.array(column, dtype=float) for column in zip(*given_classes, strict=True))
    budget = visits * float((pages * rates).sum())
    price = price_of_budget(pages, rates, budget)
    intervals = intervals_at_price(rates, price)
    rest = interval_of_rest(pages, rates, price, budget)
    spent = float((pages / intervals_at_price(rates, price, longest=rest)).sum())
    assert spent == pytest.approx(budget, rel=2e-3)
    assert rest == inf or np.any(np.isinf(intervals)), "only pages given up share what is left"


@settings(max_examples=20, deadline=None)
@given(classes, st.floats(1e-5, 3.0), st.floats(1e-5, 3.0))
def test_a_larger_budget_never_costs_more_a_fetch(
    given_classes: list[tuple[int, float]], one: float, other: float
) -> None:
    pages, rates = (np.array(column, dtype=float) for column in zip(*given_classes, strict=True))
    less, more = sorted([one, other])
    all_changes = float((pages * rates).sum())
    assert price_of_budget(pages, rates, more * all_changes) <= price_of_budget(pages, rates, less * all_changes) * (
        1 + 1e-6
    )


def test_where_all_pages_change_faster_than_the_budget_reaches_they_share_it_all_the_same() -> None:
    pages, rates = np.array([1000.0]), np.array([1.0])
    price = price_of_budget(pages, rates, 1.0)
    assert interval_of_rest(pages, rates, price, 1.0) == pytest.approx(1000.0)


@pytest.mark.parametrize("budget", [2.0, 8.0, 30.0, 100.0])
@pytest.mark.parametrize("given_rates", [(0.02, 0.3), (0.1, 0.1), (0.01, 1.0, 0.05)])
def test_no_other_division_of_the_budget_keeps_more_pages_fresh(given_rates: tuple[float, ...], budget: float) -> None:
    """Against every division on a grid of shares."""
    rates, pages = np.array(given_rates), np.array([50.0, 80.0, 40.0][: len(given_rates)])
    price = price_of_budget(pages, rates, budget)
    intervals = intervals_at_price(rates, price)
    ours = sum(n * fresh_share(r, i) for n, r, i in zip(pages, rates, intervals, strict=True))
    grid = np.linspace(0, 1, 201 if len(rates) == 2 else 41)
    best = 0.0
    for first in grid:
        for second in [1 - first] if len(rates) == 2 else grid[grid <= 1 - first + 1e-9]:
            shares = np.array([first, second, 1 - first - second][: len(rates)])
            each = [inf if s < 1e-9 else n / (s * budget) for n, s in zip(pages, shares, strict=True)]
            best = max(best, sum(n * fresh_share(r, i) for n, r, i in zip(pages, rates, each, strict=True)))
    assert ours >= best - 1e-6 * pages.sum()
    assert ours == pytest.approx(best, rel=0.01), "the grid comes near"


def test_a_page_that_changes_too_fast_is_given_up_as_is_one_that_never_changes() -> None:
    intervals = intervals_at_price(np.array([1e-3, 1.0, 0.0]), 2.0, longest=500.0)
    assert intervals.tolist()[1:] == [500.0, 500.0]
    assert intervals[0] < 500.0
    x = intervals[0] * 1e-3
    assert (1 - np.exp(-x) * (1 + x)) / 1e-3 == pytest.approx(2.0, rel=1e-6)


def test_a_tiny_price_is_still_solved_to_its_digits() -> None:
    interval = float(intervals_at_price(np.array([1e-6]), 1e-9)[0])
    assert interval == pytest.approx(np.sqrt(2 * 1e-9 / 1e-6), rel=1e-4)  # x small: x^2/2 = price * rate


def test_the_price_is_zero_where_the_budget_exceeds_all_demand_and_the_bounds_hold() -> None:
    pages, rates = np.array([10.0, 10.0]), np.array([0.1, 1.0])
    assert price_of_budget(pages, rates, 3.0, shortest=10.0) == 0.0
    bounded = price_of_budget(pages, rates, 1.0, longest=100.0, shortest=10.0)
    intervals = np.clip(intervals_at_price(rates, bounded, longest=100.0), 10.0, 100.0)
    assert float((pages / intervals).sum()) == pytest.approx(1.0, rel=1e-3)


# ------------------------------------------------------------------------------------------------ oldest first


def instance(a: Array, pages: Array, *, obsolete: Array, periods: int) -> Instance:
    return make_instance(
        a=np.tile(a, (periods, 1)), C=np.full(periods, 1e9), b0=pages, y0=obsolete, n0=0.0, nconst=0.0,
        p=pages / pages.sum(), oldwt=1.0, newwt=1.0, c=1.0, d=1.0, o=0.0, w=0.0, periods=periods,
    )  # fmt: skip


def by_page(a: float, pages: int, x: Array, mean_age: float, *, runs: int = 30) -> Array:
    """Pages simulated one by one: the x oldest are crawled, then each changes by chance; means over runs."""
    rng, total = np.random.default_rng(5), np.zeros(len(x))
    for _ in range(runs):
        age = (rng.permutation(pages) + 0.5) / pages * 2 * mean_age
        obsolete = rng.random(pages) < 1 - (1 - a) ** age
        for t, many in enumerate(x):
            oldest = np.argsort(-age, kind="stable")[: int(many)]
            age += 1
            obsolete |= rng.random(pages) < a
            age[oldest], obsolete[oldest] = 0.0, False
            total[t] += obsolete.sum()
    return total / runs


@pytest.mark.parametrize(("a", "share"), [(0.05, 0.1), (0.3, 0.25), (0.02, 0.5)])
def test_the_forecast_agrees_with_pages_simulated_one_by_one(a: float, share: float) -> None:
    pages, periods = 2000, 8
    x = np.full((periods, 1), share * pages)
    model = instance(np.array([a]), np.array([float(pages)]), obsolete=np.zeros(1), periods=periods)
    forecast = obsolete_oldest_first(model, x, np.zeros(periods), mean_age=np.array([0.5 / share]))
    truth = by_page(a, pages, x[:, 0], 0.5 / share)
    assert forecast == pytest.approx(truth, rel=0.03, abs=3.0)


@given(st.floats(0.005, 0.6), st.floats(0.05, 0.9), st.integers(2, 14))
def test_oldest_first_never_leaves_more_obsolete_than_a_random_choice_once_steady(
    a: float, share: float, periods: int
) -> None:
    """From the same steady start; equation (2) is the recursion of `model`."""
    pages = np.array([1000.0])
    ages = (np.arange(4000) + 0.5) / 4000 / share
    obsolete = pages * np.mean(1 - (1 - a) ** ages)
    model = instance(np.array([a]), pages, obsolete=obsolete, periods=periods)
    x = np.full((periods, 1), share * 1000.0)
    by_equation = simulate_plan(model, x, np.zeros(periods)).y[1:].sum(axis=1)
    oldest_first = obsolete_oldest_first(model, x, np.zeros(periods), mean_age=np.array([0.5 / share]))
    assert np.all(oldest_first <= by_equation * 1.02 + 1.0)


def test_first_copies_join_their_bucket_fresh() -> None:
    model = instance(np.array([0.1, 0.2]), np.array([10.0, 30.0]), obsolete=np.zeros(2), periods=2)
    z = np.array([40.0, 0.0])
    forecast = obsolete_oldest_first(model, np.zeros((2, 2)), z, mean_age=np.zeros(2))
    assert forecast[0] == pytest.approx(10 * 0.1 + 30 * 0.2)
    second = 10 * (1 - 0.9**2) + 30 * (1 - 0.8**2) + 10 * 0.1 + 30 * 0.2
    assert forecast[1] == pytest.approx(second)
