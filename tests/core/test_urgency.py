"""The index of a fetch, against its integral definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.core.urgency import urgency, urgency_and_slope, urgency_of_known_rate


def one(hazard: float, rate: float, events: float, exposure: float) -> float:
    return float(urgency(np.array([hazard]), np.array([rate]), np.array([events]), np.array([exposure]))[0])


@pytest.mark.parametrize("hazard", [1e-6, 0.01, 0.5, 3.0, 40.0])
@pytest.mark.parametrize(("events", "exposure"), [(0.5, 0.5), (1.0, 2.0), (1.0 + 1e-12, 2.0), (7.5, 3.0)])
def test_urgency_is_the_mean_of_the_index_over_the_gamma_distribution_of_rates(
    hazard: float, events: float, exposure: float
) -> None:
    quantiles = (np.arange(200_000) + 0.5) / 200_000
    from scipy.stats import gamma

    relative = gamma.ppf(quantiles, events, scale=1 / exposure)
    index = -(np.expm1(-relative * hazard) + relative * hazard * np.exp(-relative * hazard)) / np.maximum(
        relative, 1e-300
    )
    assert one(hazard, 0.1, events, exposure) == pytest.approx(index.mean() / 0.1, rel=2e-3)


@given(st.floats(1e-8, 1e3), st.floats(1e-6, 10), st.floats(0.05, 50), st.floats(0.05, 50))
def test_urgency_is_never_negative_and_grows_with_the_hazard(
    h: float, rate: float, events: float, exposure: float
) -> None:
    assert 0 <= one(h, rate, events, exposure) <= one(2 * h, rate, events, exposure) * (1 + 1e-6)


@given(st.floats(1e-6, 1e3), st.floats(1.01, 50), st.floats(0.05, 50), st.floats(0.05, 50))
def test_urgency_never_grows_faster_than_its_slope_predicts(
    h: float, times: float, events: float, exposure: float
) -> None:
    now, slope = urgency_and_slope(*(np.array([each]) for each in (h, 0.1, events, exposure)))
    assert one(times * h, 0.1, events, exposure) <= float(now[0]) * times ** float(slope[0]) * (1 + 1e-3)
    assert one(1.001 * h, 0.1, events, exposure) >= float(now[0]) * 1.001 ** (0.98 * float(slope[0])) * (1 - 1e-6)


def test_much_evidence_gives_the_index_at_the_known_rate() -> None:
    known = urgency_of_known_rate(np.array([0.05]), np.array([20.0]))[0]
    assert one(20 * 0.025, 0.025, 2e5, 1e5) == pytest.approx(known, rel=1e-4)


def test_a_page_that_never_changes_and_one_just_fetched_have_no_urgency() -> None:
    assert urgency_of_known_rate(np.array([0.0, 1.0]), np.array([9.0, 0.0])).tolist() == [0.0, 0.0]
    assert one(0.0, 0.1, 0.5, 0.5) == 0.0
