"""By worth: the member with the most valuable item is served first, and nobody waits for ever."""

from __future__ import annotations

import random

import pytest

from tests.frontier.sites.test_sequencers import Leaf, drain, join
from webfountain.frontier.sites.by_worth import ByWorth
from webfountain.frontier.sites.sequencers import Tier


def test_by_worth_every_other_turn_is_the_worthiests_and_the_others_go_round() -> None:
    ring = ByWorth[int]()
    for items in ((1, 1, 1), (5, 5, 5), (3, 3)):
        join(ring, Leaf(items))
    assert drain(ring) == [5, 1, 5, 3, 5, 1, 3, 1]


def test_by_worth_equals_take_turns() -> None:
    ring = ByWorth[str]()
    for name in "abc":
        join(ring, Leaf([name] * 3))
    assert drain(ring) == list("abc" * 3)


def test_by_worth_what_came_meanwhile_counts_once_its_owner_says_so() -> None:
    ring, one, other = ByWorth[int](), Leaf([2]), Leaf([4, 4, 4])
    join(ring, one)
    join(ring, other)
    assert ring.next(0.0) == 4
    one.items.clear()
    one.items.extend([1, 8])
    ring.wake(one)
    assert [ring.next(0.0) for _ in range(3)] == [1, 8, 4]


def test_by_worth_an_address_is_worth_what_its_sites_are_and_who_is_in_a_hurry_goes_first() -> None:
    top, hurried = ByWorth[int](), Leaf[int]()
    address = Tier(top, 1)
    join(address, Leaf([1, 1]))
    join(address, Leaf([7]))
    for member in (Leaf([5, 5]), address, hurried):
        join(top, member)
    assert top.next(0.0) == 7
    hurried.urgent.append(0)
    top.wake(hurried)
    assert [top.next(0.0) for _ in range(2)] == [0, 5]


@pytest.mark.parametrize("seed", range(5))
def test_by_worth_nobody_is_lost_or_served_twice(seed: int) -> None:
    rng, ring = random.Random(seed), ByWorth[int]()
    out: list[int] = []
    queues = [Leaf[int]() for _ in range(20)]
    for queue in queues:
        join(ring, queue)
    put = 0
    for _ in range(2000):
        if rng.random() < 0.5:
            queue = rng.choice(queues)
            queue.items.append(rng.randrange(5) + put * 10)
            put += 1
            ring.wake(queue)
        elif (item := ring.next(0.0)) is not None:
            out.append(item)
    out += drain(ring)
    assert sorted(item // 10 for item in out) == list(range(put))
