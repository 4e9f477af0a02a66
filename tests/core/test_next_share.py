"""The distribution of the next cycle's share, and its scores."""

from __future__ import annotations

import random

import pytest

from webfountain.core.next_share import (
    POINTS,
    Began,
    PastCycle,
    blended,
    by_past,
    by_present,
    crps,
    faded_losses,
    outlook_of,
    quantiles,
)


def test_the_score_is_the_integral_of_the_squared_distance_to_the_step() -> None:
    points = [0.1, 0.2, 0.2, 0.7]
    for share in (0.05, 0.2, 0.5, 0.9):
        cells = [(n + 0.5) / 20_000 for n in range(20_000)]
        squares = ((sum(point <= x for point in points) / 4 - (share <= x)) ** 2 for x in cells)
        assert crps(points, share) == pytest.approx(sum(squares) / 20_000, abs=1e-3)


def test_of_a_single_point_the_score_is_the_absolute_error() -> None:
    assert crps([0.3] * 5, 0.1) == pytest.approx(0.2)


def test_the_honest_forecast_has_the_best_score() -> None:
    rng = random.Random(3)
    drawn = [rng.betavariate(2, 8) for _ in range(4000)]
    honest = quantiles([(share, 1.0) for share in drawn])
    others = [[0.7 * point for point in honest], [point**0.7 for point in honest], [0.2] * POINTS]
    scores = [sum(crps(points, share) for share in drawn) for points in (honest, *others)]
    assert scores[0] == min(scores)


def test_quantiles_go_by_weight() -> None:
    assert quantiles([(0.1, 9.0), (0.5, 1.0)], parts=(0.4, 0.99)) == pytest.approx([0.1, 0.5])


def test_the_regression_follows_what_was_known_at_the_begin_as_far_as_that_was_worth_something() -> None:
    """The share was twice what was believed, or had nothing to do with it."""
    rng = random.Random(5)
    for linked in (True, False):
        cycles = []
        for _ in range(60):
            believed = rng.uniform(0.0, 0.3)
            cycles.append(PastCycle(Began(0.03, believed), 2 * believed if linked else rng.uniform(0.0, 0.6)))
        low, high = (outlook_of(by_present(cycles, Began(0.03, each)), cycles=60).median for each in (0.05, 0.25))
        assert (high - low > 0.3) is linked


def test_without_cycles_both_laws_are_wide_and_in_order() -> None:
    for law in (by_past([]), by_present([], Began(0.03, 0.01))):
        assert len(law) == POINTS
        assert law == sorted(law)
        assert law[0] < 0.001 < 0.02 < law[-1] <= 1.0


def test_the_blend_goes_to_the_law_with_the_better_scores() -> None:
    good, bad = [0.1] * POINTS, [0.9] * POINTS
    losses = [0.0, 0.0]
    assert outlook_of(blended([good, bad], losses), cycles=0).high == pytest.approx(0.9)
    for _ in range(20):
        losses = faded_losses(losses, [good, bad], 0.1)
    assert outlook_of(blended([good, bad], losses), cycles=20).high == pytest.approx(0.1)
