"""Pages that change alone: their rates are found, also far beyond a change per visit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.independent_pages import (
    COLUMNS,
    FIRST_PRIOR,
    RATES,
    PageRates,
    evidence_of,
    likelier_prior,
)

USUAL = 1 / 120
PRIOR = FIRST_PRIOR[None].astype(np.float64)


def past_of(*visits: tuple[float, bool]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Of one page that was visited after so many steps, and found changed or not."""
    age, changed = (np.array(each) for each in zip(*visits, strict=True))
    return np.asarray(evidence_of(age.astype(np.float64), changed.astype(np.bool_)).sum(axis=1, keepdims=True))


@given(st.lists(st.floats(1.0, 200.0), min_size=0, max_size=9), st.integers(0, 9), st.floats(1.0, 200.0))
def test_the_likelihood_is_exact_where_visits_that_found_a_change_are_evenly_spaced(
    quiet: list[float], found: int, every: float
) -> None:
    visits = [(age, False) for age in quiet] + [(every, True)] * found
    if not visits:
        return
    rates = RATES * USUAL
    exact = FIRST_PRIOR.astype(np.float64).copy()
    for age, changed in visits:
        exact *= -np.expm1(-rates * age) if changed else np.exp(-rates * age)
    chances = PageRates(past_of(*visits), PRIOR, usual_rate=USUAL).chances[0]
    assert chances == pytest.approx(exact / exact.sum(), rel=1e-6, abs=1e-9)


def test_a_page_that_was_changed_at_every_visit_is_believed_faster_with_each_and_given_up_in_the_end() -> None:
    age = np.array([30.0])
    worth = [PageRates(past_of(*[(30.0, True)] * many), PRIOR, usual_rate=USUAL).alone(age) for many in (1, 4, 16, 64)]
    assert all(earlier.rate < later.rate for earlier, later in pairwise(worth))
    assert worth[-1].urgency < worth[0].urgency
    assert worth[-1].rate > 1.0, "far beyond one change per visit"


def test_urgency_grows_with_age_and_no_faster_than_its_square() -> None:
    rates = PageRates(past_of((30.0, True), (60.0, False)), PRIOR, usual_rate=USUAL)
    ages = np.geomspace(1.0, 1000.0, 60)
    worth = np.array([rates.alone(np.array([age])).urgency[0] for age in ages])
    slope = np.diff(np.log(worth)) / np.diff(np.log(ages))
    assert slope.min() > 0
    assert slope.max() <= 2.0 + 1e-9
    assert (worth <= rates.alone(ages[:1]).rate[0] * ages**2 / 2).all()


def test_the_prior_of_a_site_goes_to_the_rates_of_its_pages() -> None:
    rng = np.random.default_rng(3)
    fast, slow = RATES[7] * USUAL, RATES[3] * USUAL
    true = np.where(np.arange(200) % 2, fast, slow)
    past = np.zeros((COLUMNS, 200))
    for _ in range(20):
        age = np.full(200, 40.0)
        past += evidence_of(age, rng.random(200) < -np.expm1(-true * age))
    prior = FIRST_PRIOR
    for _ in range(20):
        prior = likelier_prior(past, prior.astype(np.float64), usual_rate=USUAL)
    assert prior.sum() == pytest.approx(1.0, rel=1e-5)
    assert prior[:5].sum() == pytest.approx(0.5, abs=0.05)
    assert prior[6:9].sum() == pytest.approx(0.5, abs=0.05)
