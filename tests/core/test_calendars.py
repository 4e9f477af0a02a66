"""Calendars: the dynamic program against all calendars, the mixture against the model, the bound against plans."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.core.drawn_instances import drawn, emt1
from webfountain.core.calendars import (
    Pool,
    best_calendars,
    bounded_mixture,
    growth_path,
    mix,
    schedule_costs,
    waiting_costs,
)
from webfountain.core.model import make_instance, simulate, simulate_plan
from webfountain.core.working_set import measured, polished, repaired, uniform_plan


def test_the_dynamic_program_finds_the_cheapest_of_all_calendars() -> None:
    rng = np.random.default_rng(3)
    T, B = 5, 6
    b0 = 1 + rng.random(B)
    k = make_instance(a=rng.random((T, B)), C=1.0, b0=b0, y0=b0 * rng.random(B), oldwt=rng.random((T, B)), periods=T)
    b, unit = growth_path(k, rng.random(T)), rng.random((T, B)) - 0.1
    value, calendars = best_calendars(k, b, waiting_costs(k, b), unit)
    every = np.array(list(product([0.0, 1.0], repeat=T))).T
    for i in range(B):
        pool = Pool(np.full(every.shape[1], i), every)
        costs = schedule_costs(k, b, pool) + (unit[:, i] * b[:-1, i]) @ every
        chosen = every.T.tolist().index(calendars[:, i].tolist())
        assert value[i] == pytest.approx(costs.min(), rel=1e-12)
        assert costs[chosen] == pytest.approx(costs.min(), rel=1e-12)


def test_a_schedules_cost_is_what_the_model_says() -> None:
    k = emt1(3, buckets=20)
    f, z = np.random.default_rng(4).random((14, 20)), np.full(14, 0.3)
    b = growth_path(k, z)
    path = simulate_plan(k, f * b[:-1], z)
    assert schedule_costs(k, b, Pool(np.arange(20), f)) == pytest.approx((k.oldwt * path.y[1:]).sum(axis=0))


def test_a_mixture_crawls_the_weighted_pages_of_its_schedules() -> None:
    k = emt1(buckets=2)
    share = np.zeros((14, 3))
    share[3, 0], share[5, 1], share[:, 2] = 1.0, 1.0, 1.0
    pool = Pool(np.array([0, 0, 1]), share)
    f = mix(k, growth_path(k, np.zeros(14)), pool, np.array([0.25, 0.75, 1.0]))
    assert (f[3, 0], f[5, 0], f[:, 1].min()) == (0.25, 0.75, 1.0)


@pytest.mark.parametrize("strategy", [1, 2, 3])
def test_a_mixture_keeps_the_capacity_and_most_buckets_whole(strategy: int) -> None:
    k = emt1(strategy, buckets=100)
    mixture = bounded_mixture(k)
    path = simulate_plan(k, mixture.f * growth_path(k, mixture.z)[:-1], mixture.z)
    assert (path.used <= k.C * (1 + 1e-6)).all()
    assert ((mixture.f > 0) & (mixture.f < 1)).any(axis=0).sum() <= 3 * k.T
    assert (mixture.prices >= 0).all()


@pytest.mark.parametrize("seed", range(12))
def test_no_plan_with_the_same_growth_is_below_the_bound(seed: int) -> None:
    k = drawn(seed)
    f, g = uniform_plan(k)
    z = simulate(k, f, g).z
    bound = bounded_mixture(k, z=z, plan=f).bound
    rng = np.random.default_rng(seed)
    for _ in range(20):
        other, _ = repaired(k, f * rng.random(f.shape) ** rng.choice([0.2, 1.0]), g)
        path = simulate(k, other, g)
        if np.allclose(path.z, z, rtol=1e-12, atol=0):
            assert bound <= path.objective * (1 + 1e-9)
    assert bound <= simulate(k, f, g).objective * (1 + 1e-9)


@pytest.mark.parametrize("strategy", [1, 2, 3])
def test_a_polished_plan_stays_above_the_bound_at_its_own_z(strategy: int) -> None:
    k = emt1(strategy, periods=7, buckets=10)
    f, g = uniform_plan(k)
    plan = polished(k, measured(k, np.column_stack([f, g]), np.zeros(7), "uniform"), route="test")
    z = simulate(k, plan.u[:, :-1], plan.u[:, -1]).z
    mixture = bounded_mixture(k, z=z, plan=plan.u[:, :-1])
    assert 0 < mixture.bound <= plan.objective


def test_a_period_without_capacity_is_priced_out_and_the_bound_is_tight() -> None:
    k = make_instance(a=[0.1, 0.5], C=0.0, b0=[5.0, 9.0], y0=[1.0, 2.0], periods=6)
    mixture = bounded_mixture(k, z=np.zeros(6))
    assert mixture.f.sum() == 0
    assert mixture.bound == pytest.approx(simulate(k, mixture.f, np.zeros(6)).objective, rel=1e-9)
