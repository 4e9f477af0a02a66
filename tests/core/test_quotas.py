"""Quotas are whole pages, follow the plan, and leave no time in which a page that is there would fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.drawn_instances import drawn, emt1
from webfountain.core.model import make_instance, simulate
from webfountain.core.optimizer import solve
from webfountain.core.quotas import make_quotas
from webfountain.core.working_set import repaired, uniform_plan


@settings(max_examples=150, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_quotas_are_never_negative_nor_above_the_pages_nor_above_the_capacity(seed: int) -> None:
    k = drawn(seed)
    rng = np.random.default_rng(seed)
    f, g = repaired(k, rng.random((k.T, k.B)), rng.random(k.T))
    path = simulate(k, f, g)
    quotas = make_quotas(k, path.x, path.z)
    assert (quotas.recrawl >= 0).all()
    assert (quotas.fresh >= 0).all()
    assert (quotas.recrawl <= path.b[:-1] * (1 + 1e-9) + 1e-6).all()
    assert (quotas.fresh <= path.n[:-1] * (1 + 1e-9) + 1e-6).all()
    used = (k.c * quotas.recrawl).sum(axis=1) + k.d * quotas.fresh
    assert (used <= k.C * (1 + 1e-9) + 1e-6).all()
    assert ((quotas.weight >= 0) & (quotas.weight <= 1)).all()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    pages=st.lists(st.integers(0, 300), min_size=1, max_size=20),
    share=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_where_a_page_costs_one_the_quotas_sum_to_the_capacity(pages: list[int], share: int, seed: int) -> None:
    capacity = sum(pages) * share // 10
    a = np.random.default_rng(seed).random(len(pages))
    k = make_instance(a=a, C=float(capacity), b0=pages, n0=0.0, periods=4)
    path = simulate(k, *uniform_plan(k))
    assert (make_quotas(k, path.x, path.z).recrawl.sum(axis=1) == capacity).all()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_with_unequal_costs_no_further_page_would_fit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pages, cost = rng.integers(1, 200, 12), rng.lognormal(0, 1, 12)
    k = make_instance(a=rng.random(12), C=float(pages @ cost) / 3, b0=pages, c=cost, periods=3)
    path = simulate(k, *uniform_plan(k))
    quotas = make_quotas(k, path.x, path.z)
    for t in range(3):
        left = k.C[t] - float(quotas.recrawl[t] @ cost)
        assert left < cost[quotas.recrawl[t] < pages].min(initial=np.inf)


def test_a_bucket_planned_at_a_third_of_a_page_is_visited_every_third_period() -> None:
    k = make_instance(a=0.1, C=1.0, b0=[1.0, 1.0, 1.0], periods=6)
    quotas = make_quotas(k, np.full((6, 3), 1 / 3), np.zeros(6))
    assert quotas.recrawl.sum(axis=1).tolist() == [1] * 6
    assert quotas.recrawl.sum(axis=0).tolist() == [2] * 3


def test_the_weight_is_the_never_crawled_share_of_the_fetches() -> None:
    k = make_instance(a=0.1, C=10.0, b0=[100.0], n0=50.0, periods=2)
    quotas = make_quotas(k, np.array([[6.0], [0.0]]), np.array([4.0, 0.0]))
    assert quotas.weight.tolist() == [pytest.approx(0.4), 0.5]
    assert quotas.fresh.tolist() == [4, 0]


def test_phase_clocks_gain_the_crawled_fraction_of_their_bucket() -> None:
    k = emt1(3, buckets=10)
    found = solve(k, solver="calendars")
    assert make_quotas(k, found.x, found.z).increment == pytest.approx(found.f)
