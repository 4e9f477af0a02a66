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
    is_in_sample,
    likelier_prior,
)

USUAL = 1 / 120
PRIOR = FIRST_PRIOR[None].astype(np.float64)


ALL, NONE = np.ones(1, dtype=np.bool_), np.zeros(1, dtype=np.bool_)


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
    pages = [PageRates(past_of(*[(30.0, True)] * many), PRIOR, usual_rate=USUAL) for many in (1, 4, 16, 64)]
    worth = [page.alone(age, sample=NONE, tellable=0.1) for page in pages]
    assert all(earlier.rate < later.rate for earlier, later in pairwise(worth))
    assert worth[-1].urgency < worth[0].urgency
    assert worth[-1].rate > 1.0, "far beyond one change per visit"


def test_a_page_of_the_sample_is_never_given_up() -> None:
    page = PageRates(past_of(*[(30.0, True)] * 64), PRIOR, usual_rate=USUAL)
    ages = np.array([1.0, 30.0, 1000.0])
    worth = [float(page.alone(ages[[k]], sample=ALL, tellable=0.1).urgency[0]) for k in range(3)]
    assert 0.0 < worth[0] < worth[1] < worth[2] < 10.1
    assert worth[2] > 9.9, "the whole time between two changes, were they as frequent as visits can show"


@given(st.integers(16, 300_000))
def test_the_sample_of_a_site_is_small_and_stays_while_the_site_grows_by_a_tenth(pages: int) -> None:
    sample, grown = (np.flatnonzero(is_in_sample(np.arange(pages), size)) for size in (pages, pages * 11 // 10))
    assert 1 <= len(sample) <= max(pages / 16, 1.0)
    assert 0.3 * pages**0.5 - 1.0 <= len(sample) <= 0.8 * pages**0.5 + 1.0
    assert set(grown.tolist()) <= set(sample.tolist()) or set(sample.tolist()) <= set(grown.tolist())


def test_what_part_of_the_changing_pages_is_fast_is_learned_from_the_sample() -> None:
    pages, tellable = 1024, 0.1
    sample = is_in_sample(np.arange(pages), pages)
    past = np.zeros((COLUMNS, pages))
    for age in (5.0, 5.0, 90.0):  # visits during a burst, and one long after it
        past = past + evidence_of(np.full(pages, age), np.ones(pages, dtype=np.bool_))
    before = fitted(past, tellable)
    for number in range(8):
        changed = np.full(pages, number % 4 == 0)
        past = past + np.where(sample, evidence_of(np.full(pages, 10.0), changed), 0.0)
    slow = fitted(past, tellable)
    fast = tellable < RATES * USUAL
    assert slow[fast].sum() < 0.2 < 0.5 < before[fast].sum()
    other = past[:, ~sample][:, :1]
    given_up, visited = (
        PageRates(other, prior[None], usual_rate=USUAL).alone(np.array([90.0]), sample=NONE, tellable=tellable)
        for prior in (before, slow)
    )
    assert visited.urgency[0] > 5.0 > 2.0 * given_up.urgency[0]


def test_a_sample_that_agrees_with_the_other_pages_changes_nothing() -> None:
    random = np.random.default_rng(7)
    past = np.zeros((COLUMNS, 1024))
    for age in (5.0, 20.0, 90.0):
        past = past + evidence_of(np.full(1024, age), random.random(1024) < 0.8)
    np.testing.assert_array_equal(fitted(past, 0.1), fitted(past, np.inf))


def fitted(
    past: np.ndarray[tuple[int, int], np.dtype[np.float64]], tellable: float
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Fit the prior of a site for long."""
    prior = FIRST_PRIOR
    for _ in range(20):
        prior = likelier_prior(past, prior.astype(np.float64), usual_rate=USUAL, tellable=tellable)
    return prior.astype(np.float64)


def test_urgency_grows_with_age_and_no_faster_than_its_square() -> None:
    rates = PageRates(past_of((30.0, True), (60.0, False)), PRIOR, usual_rate=USUAL)
    ages = np.geomspace(1.0, 1000.0, 60)
    worth = np.array([rates.alone(np.array([age]), sample=NONE, tellable=0.1).urgency[0] for age in ages])
    slope = np.diff(np.log(worth)) / np.diff(np.log(ages))
    assert slope.min() > 0
    assert slope.max() <= 2.0 + 1e-9
    assert (worth <= rates.alone(ages[:1], sample=NONE, tellable=0.1).rate[0] * ages**2 / 2).all()


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
        prior = likelier_prior(past, prior.astype(np.float64), usual_rate=USUAL, tellable=np.inf)
    assert prior.sum() == pytest.approx(1.0, rel=1e-5)
    assert prior[:5].sum() == pytest.approx(0.5, abs=0.05)
    assert prior[6:9].sum() == pytest.approx(0.5, abs=0.05)
