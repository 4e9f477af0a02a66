"""Estimators of the change interval: codec, properties, and the comparison that chose the default."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.estimators import bias_corrected_interval, likelihood_interval, naive_interval
from webfountain.core.change_rate import (
    HISTORY_CHECKS,
    NO_HISTORY,
    Check,
    Prior,
    Totals,
    append,
    decode,
    estimate_interval,
)

DAY = 86400.0
checks = st.lists(st.builds(Check, st.floats(0.05, 6e8), st.booleans()), min_size=1, max_size=40)
priors = st.builds(Prior, st.floats(1.0, 1e9), st.floats(0.05, 20))


def history_of(items: list[Check]) -> bytes:
    history = NO_HISTORY
    for interval, changed in items:
        history = append(history, interval, changed)
    return history


def simulated(mean: float, count: int, rng: random.Random) -> list[Check]:
    """Checks at irregular intervals (a factor of 40) of a page that changes by a Poisson process."""
    intervals = [10 * DAY * math.exp(rng.uniform(-1.85, 1.85)) for _ in range(count)]
    return [Check(t, rng.random() < -math.expm1(-t / mean)) for t in intervals]


@given(checks)
def test_a_history_is_the_last_24_checks_one_byte_each_and_nine_percent_exact(items: list[Check]) -> None:
    decoded = decode(history_of(items))
    assert len(history_of(items)) == len(decoded) == min(len(items), HISTORY_CHECKS)
    for kept, original in zip(decoded, items[-HISTORY_CHECKS:], strict=True):
        assert kept.changed == original.changed
        assert kept.interval == pytest.approx(original.interval, rel=0.1)


def test_impossible_intervals_are_clipped_into_the_codec() -> None:
    assert [check.interval > 0 for check in decode(history_of([Check(-1.0, False), Check(math.inf, True)]))] == [
        True
    ] * 2


@given(checks, priors)
def test_the_estimate_is_the_mode_of_the_posterior(items: list[Check], prior: Prior) -> None:
    """Against a fine grid of the posterior in ln r."""
    history = history_of(items)
    logs = np.linspace(math.log(1e-12), math.log(1e3), 20001)
    rate = np.exp(logs)
    posterior = prior.weight * (logs - rate * prior.interval)
    for interval, changed in decode(history):
        posterior += np.log(-np.expm1(-rate * interval)) if changed else -rate * interval
    best = logs[int(np.argmax(posterior))]
    assert math.log(1 / estimate_interval(history, prior=prior)) == pytest.approx(best, abs=3e-3)


@given(checks, priors)
def test_finding_a_change_never_makes_a_page_slower_than_finding_none(items: list[Check], prior: Prior) -> None:
    changed = estimate_interval(history_of([*items, Check(DAY, True)]), prior=prior)
    still = estimate_interval(history_of([*items, Check(DAY, False)]), prior=prior)
    assert changed < still


@given(priors)
def test_without_checks_the_prior_is_the_estimate(prior: Prior) -> None:
    assert estimate_interval(NO_HISTORY, prior=prior) == pytest.approx(prior.interval, rel=1e-3)


def test_checks_older_than_the_history_count_through_the_totals() -> None:
    recent = history_of([Check(DAY, True)] * HISTORY_CHECKS)
    prior = Prior(30 * DAY)
    long_still = Totals(checks=124, changes=24, observed_time=124 * DAY)
    estimates = [
        estimate_interval(recent, totals=totals, prior=prior)
        for totals in (None, Totals(24, 24, 24 * DAY), Totals(124, 124, 124 * DAY), long_still)
    ]
    assert estimates[0] == estimates[1]
    assert estimates[2] < estimates[0] < estimates[3]
    assert estimates[3] == pytest.approx(
        likelihood_interval([Check(DAY, True)] * 24 + [Check(DAY, False)] * 100), rel=0.15
    )


def test_totals_that_contradict_the_history_are_ignored() -> None:
    recent = history_of([Check(DAY, True)] * HISTORY_CHECKS)
    prior = Prior(30 * DAY)
    assert estimate_interval(recent, totals=Totals(30, 30, 0.0), prior=prior) == estimate_interval(recent, prior=prior)


def test_the_classical_estimators_on_a_worked_example() -> None:
    """Four daily checks, two changes: 4/2; -1/ln(2.5/4.5); likelihood solves 2 = 2/(e^r - 1)."""
    items = [Check(1.0, True), Check(1.0, False), Check(1.0, True), Check(1.0, False)]
    assert naive_interval(items) == 2.0
    assert bias_corrected_interval(items) == pytest.approx(-1 / math.log(2.5 / 4.5))
    assert likelihood_interval(items) == pytest.approx(1 / math.log(2), rel=1e-4)


def test_without_a_change_or_with_nothing_but_changes_only_the_posterior_is_finite() -> None:
    still, busy = [Check(1.0, False)] * 3, [Check(1.0, True)] * 3
    assert naive_interval(still) == bias_corrected_interval(still) == likelihood_interval(still) == math.inf
    assert likelihood_interval(busy) == 0.0
    assert 0 < estimate_interval(history_of(busy), prior=Prior(1.0)) < 1.0
    assert 3.0 < estimate_interval(history_of(still), prior=Prior(10.0)) < math.inf


def log_errors(count: int) -> dict[str, float]:
    """Root mean square of ln(estimate/truth) on 400 pages whose rates spread log-normally about the site's mean."""
    rng = random.Random(count)
    errors: dict[str, list[float]] = {"naive": [], "corrected": [], "likelihood": [], "posterior": []}
    for _ in range(400):
        mean = 20 * DAY * math.exp(rng.gauss(0.0, 1.0))
        items = simulated(mean, count, rng)
        estimates = {
            "naive": naive_interval(items),
            "corrected": bias_corrected_interval(items),
            "likelihood": likelihood_interval(items),
            "posterior": estimate_interval(history_of(items), prior=Prior(20 * DAY)),
        }
        for name, estimate in estimates.items():
            # An infinite or zero estimate is taken as what a crawler would use: two years, a quarter of an hour.
            errors[name].append(math.log(min(max(estimate, DAY / 96), 730 * DAY) / mean) ** 2)
    return {name: math.sqrt(sum(squares) / len(squares)) for name, squares in errors.items()}


@pytest.mark.parametrize("count", [3, 8, 24])
def test_on_simulated_poisson_pages_the_default_is_the_best_of_the_four(count: int) -> None:
    errors = log_errors(count)
    assert min(errors, key=errors.__getitem__) == "posterior", errors
