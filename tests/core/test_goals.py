"""What a goal of freshness costs, against pages simulated one by one."""

from __future__ import annotations

import numpy as np
import pytest

from webfountain.core.goals import Goal, PageClasses, cost_of, share_at

DAY = 86_400.0
PAGES = PageClasses(np.array([200.0, 300.0]), np.array([1 / 5, 1 / 60]) / DAY)


@pytest.mark.parametrize("age_s", [0.0, 3 * DAY])
def test_the_share_is_that_of_pages_simulated_one_by_one(age_s: float) -> None:
    """All pages have one rate, so they are visited evenly."""
    rate, interval = 1 / 10, 7.0
    rng = np.random.default_rng(1)
    first = rng.exponential(1 / rate, 200_000)
    seen = rng.uniform(0, interval, 200_000)
    simulated = float((seen - first > age_s / DAY).mean())
    pages = PageClasses(np.array([70.0]), np.array([rate / DAY]))
    assert share_at(age_s, pages, 10 / DAY) == pytest.approx(simulated, abs=0.004)


@pytest.mark.parametrize("goal", [Goal(0.02), Goal(0.2), Goal(0.05, 7 * DAY)])
def test_the_fetches_reach_the_goal_and_no_more(goal: Goal) -> None:
    cost = cost_of(goal, PAGES)
    assert cost is not None
    assert share_at(goal.age_s, PAGES, cost.fetches_per_s) == pytest.approx(goal.share, rel=1e-3)
    assert cost.less_fetches_per_s == pytest.approx(0.9 * cost.fetches_per_s)
    assert cost.less_share > goal.share


def test_a_harder_goal_costs_more_and_an_age_less_than_freshness() -> None:
    costs = [cost_of(goal, PAGES) for goal in (Goal(0.2), Goal(0.05), Goal(0.05, 7 * DAY), Goal(0.01))]
    loose, middle, aged, hard = (cost.fetches_per_s for cost in costs if cost is not None)
    assert loose < middle < hard
    assert aged < middle


def test_what_was_measured_corrects_the_model() -> None:
    """Twice as obsolete as independent pages would be: the goal of the model is half as large."""
    doubled, plain = cost_of(Goal(0.1), PAGES, correction=2.0), cost_of(Goal(0.05), PAGES)
    assert doubled is not None
    assert plain is not None
    assert doubled.fetches_per_s == pytest.approx(plain.fetches_per_s, rel=1e-6)


def test_pages_that_never_change_cost_nothing_and_an_impossible_goal_has_no_cost() -> None:
    still = cost_of(Goal(0.1), PageClasses(np.array([9.0]), np.array([0.0])))
    assert still is not None
    assert still.fetches_per_s == 0.0
    assert cost_of(Goal(1e-9), PAGES) is None
