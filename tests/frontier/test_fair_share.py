"""How sites are shared out: a quarter around the mean, whoever joins."""

from __future__ import annotations

import random

import pytest

from webfountain.frontier.fair_share import most_sites, surplus


def shared_out(have: list[int], *, heartbeats: int = 20, seed: int = 0) -> list[int]:
    """What the ants have in the end when each lets its surplus go in turn and whoever looks first takes it."""
    rng = random.Random(seed)
    waiting = 0
    for _ in range(heartbeats):
        total = sum(have) + waiting
        mean, fewest = sum(have) / len(have), min(have)
        for ant, mine in enumerate(have):
            many = surplus(mine, mean, fewest)
            have[ant] -= many
            waiting += many
        for ant in rng.sample(range(len(have)), len(have)):
            taken = max(min(waiting, most_sites(total / len(have), fewest) - have[ant]), 0)
            have[ant] += taken
            waiting -= taken
    assert sum(have) + waiting == total
    return have


@pytest.mark.parametrize(
    "have", [[26, 24, 26, 4], [80, 0, 0, 0], [27, 27, 26, 0], [100, 100, 100, 1], [12, 0, 0], [1000, 3], [7, 7, 7, 1]]
)
def test_each_ant_comes_within_a_quarter_of_the_mean(have: list[int]) -> None:
    mean = sum(have) / len(have)
    for seed in range(5):
        found = shared_out([*have], seed=seed)
        assert min(found) >= mean * 0.75 - 1, found
        assert max(found) <= mean * 1.25 + 2, found


@pytest.mark.parametrize("have", [[20, 20, 20], [22, 18, 20], [3, 2, 2], [1, 0], [0, 0], [2, 1, 1], [1, 1, 0]])
def test_what_is_even_stays_where_it_is(have: list[int]) -> None:
    mean, fewest = sum(have) / len(have), min(have)
    assert [surplus(mine, mean, fewest) for mine in have] == [0] * len(have)
