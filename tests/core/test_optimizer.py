"""The optimiser on EMT-1, on the steady state that can be computed by hand, and on instances of every kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.core.drawn_instances import EMT1, drawn, emt1
from webfountain.core.model import Instance, simulate_plan
from webfountain.core.optimizer import Quality, solve
from webfountain.core.working_set import measured, polished, repaired, uniform_plan

CLOSE = {"normal": {1: 1e-3, 2: 5e-3, 3: 4e-3}, "high": {1: 5e-4, 2: 1e-3, 3: 2e-3}}


def steady(periods: int, *, buckets: int = 255) -> Instance:
    """EMT-1 without growth: nothing is found and nothing arrives."""
    k = emt1(1, periods=periods, buckets=buckets)
    return replace(k, o=k.o * 0, w=k.w * 0, nconst=k.nconst * 0, n0=0.0)


def fixed_interval_optimum(k: Instance) -> float:
    """Obsolete pages when each page is crawled every k-th period for ever, k the best for it at one price.

    min over k of 1 - (1 - (1-a)^k)/(k a) + price/k, less the price of the capacity, at the best price.
    """
    interval, a = np.arange(1, 4001)[:, None], k.a[0]
    obsolete = 1 - (1 - (1 - a) ** interval) / (interval * a)

    def dual(price: float) -> float:
        return float((obsolete + price / interval).min(axis=0) @ k.b0 - price * k.C[0])

    return max(dual(price) for price in np.linspace(0.2, 2.0, 721))


@pytest.mark.parametrize("strategy", [1, 2, 3])
def test_normal_quality_is_close_to_the_best_known_of_emt1(strategy: int) -> None:
    k = emt1(strategy)
    found = solve(k)
    check_close(k, found.objective, found.x, found.z, strategy, "normal")
    assert found.excess <= 1e-9
    assert found.bound <= found.objective


@pytest.mark.soak
@pytest.mark.parametrize("strategy", [1, 2, 3])
def test_high_quality_is_closer_still(strategy: int) -> None:
    k = emt1(strategy)
    found = solve(k, quality="high")
    check_close(k, found.objective, found.x, found.z, strategy, "high")


def check_close(k: Instance, objective: float, x: np.ndarray, z: np.ndarray, strategy: int, quality: Quality) -> None:
    """The objective is the plan's own, keeps the capacity, and is within the promised part of the best known."""
    path = simulate_plan(k, x, z)
    assert path.objective == pytest.approx(objective, rel=1e-12)
    assert (path.used - k.C).max() <= 1e-9
    assert path.objective <= EMT1["best_known"][f"strategy_{strategy}"] * (1 + CLOSE[quality][strategy])


@pytest.mark.parametrize("strategy", [1, 2, 3])
def test_slsqp_on_everything_from_the_plan_gains_less_than_half_a_percent(strategy: int) -> None:
    k = emt1(strategy, buckets=8)
    found = solve(k)
    begin = measured(k, np.column_stack([found.f, found.g]), found.prices, "warm")
    assert polished(k, begin, everything=True, route="warm").objective >= found.objective * (1 - 5e-3)


def test_uniform_and_proportional_crawling_of_the_steady_state_cost_what_theory_says() -> None:
    """Without growth: 36.395 at best, 75.8 with the same share of every bucket, 129.3 in proportion to change."""
    k = steady(14)
    a, b = k.a[0], k.b0
    assert fixed_interval_optimum(k) == pytest.approx(36.395, abs=0.002)

    def settled(f: np.ndarray) -> float:
        """The fixed point of equation (2) for a constant share f."""
        return float(((1 - f) * a / (1 - (1 - f) * (1 - a)) * b).sum())

    assert settled(np.full(255, 47 / 510)) == pytest.approx(75.8, abs=0.05)
    assert settled(np.minimum(1.0, a * 47 / (a * b).sum())) == pytest.approx(129.3, abs=0.05)


@pytest.mark.parametrize(("periods", "mean"), [(14, 22.94), (28, 29.16)])
def test_the_mean_obsolete_count_approaches_the_steady_state_from_below(periods: int, mean: float) -> None:
    check_mean(periods, mean)


@pytest.mark.soak
@pytest.mark.parametrize(("periods", "mean"), [(56, 33.09), (84, 34.48)])
def test_the_mean_obsolete_count_of_long_cycles_approaches_it_too(periods: int, mean: float) -> None:
    check_mean(periods, mean)


def check_mean(periods: int, mean: float) -> None:
    found = solve(steady(periods))
    # A study found these; what is lower is a better plan, but none is below its own bound.
    assert found.bound <= found.objective <= (1 + 1.5e-3) * mean * periods
    assert 0.99 * mean < found.objective / periods < 36.395


@pytest.mark.parametrize("seed", range(30))
def test_every_kind_of_instance_gets_a_plan_that_keeps_the_rules(seed: int) -> None:
    k = drawn(seed)
    found = solve(k)
    path = simulate_plan(k, found.x, found.z)
    assert np.isfinite([found.objective, found.bound, found.gap, found.excess]).all()
    assert found.excess <= 1e-9 * max(1.0, float(k.C.max()))
    assert path.objective == pytest.approx(found.objective, rel=1e-12)
    assert (found.x >= 0).all()
    assert (found.x <= path.b[:-1] * (1 + 1e-12)).all()
    assert (found.z <= path.n[:-1] * (1 + 1e-12)).all()
    assert 0 <= found.bound <= found.objective
    uniform = measured(k, np.column_stack(uniform_plan(k)), np.zeros(k.T), "uniform").objective
    assert found.objective <= uniform * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("solver", ["auto", "slsqp", "calendars"])
def test_the_same_instance_gets_the_same_plan(solver: str) -> None:
    k = emt1(3, periods=7, buckets=6)
    one, other = solve(k, solver=solver), solve(k, solver=solver)  # type: ignore[arg-type]
    assert one.x.tobytes() == other.x.tobytes()
    assert one.z.tobytes() == other.z.tobytes()


def test_the_unit_of_pages_seconds_and_weights_does_not_matter() -> None:
    k = emt1(2, buckets=30)
    live = replace(k, b0=k.b0 * 1e5, n0=k.n0 * 1e5, nconst=k.nconst * 1e5, c=k.c * 0.25, d=k.d * 0.25, C=k.C * 0.25e5)
    assert solve(live).objective == pytest.approx(solve(k).objective * 1e5, rel=1e-3)


def test_with_time_for_everything_no_page_stays_obsolete() -> None:
    k = replace(emt1(1, buckets=9), C=np.full(14, 1e6), o=np.zeros((14, 9)))
    found = solve(k)
    assert simulate_plan(k, found.x, found.z).y[1:].sum() == pytest.approx(0.0, abs=1e-9)


def test_a_repair_lowers_split_buckets_before_whole_ones() -> None:
    k = replace(emt1(1, buckets=4, periods=1), C=np.array([255.0]), n0=0.0)
    f, _ = repaired(k, np.array([[1.0, 0.6, 0.6, 0.0]]), np.zeros(1))
    assert f[0].tolist() == [1.0, pytest.approx(0.5), pytest.approx(0.5), 0.0]


def test_prices_say_what_one_more_second_saves() -> None:
    k = emt1(1, buckets=12)
    found = solve(k, solver="calendars")
    more = replace(k, C=k.C + np.where(np.arange(14) == 5, 0.5, 0.0))
    gain = (
        found.objective
        - polished(more, measured(more, np.column_stack([found.f, found.g]), found.prices, ""), route="more").objective
    )
    assert gain >= 0.3 * 0.5 * found.prices[5] > 0
