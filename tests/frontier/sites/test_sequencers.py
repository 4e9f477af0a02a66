"""Sequencers compose: leaves give what they were loaded with, combiners choose among what is available."""

from __future__ import annotations

import random
from collections import Counter
from math import inf
from typing import TYPE_CHECKING, TypeVar

from hypothesis import given
from hypothesis import strategies as st

from webfountain.frontier.sites.gate import Gate
from webfountain.frontier.sites.ring import GatedSequencer
from webfountain.frontier.sites.sequencers import Fifo, FirstOf, Immediate, Sequencer, WeightedRandom

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")
items = st.lists(st.integers(0, 100))


def drain(sequencer: Sequencer[T], at: float = 0.0) -> list[T]:
    found = []
    while sequencer.wake_at() <= at and (item := sequencer.next(at)) is not None:
        found.append(item)
    return found


@given(items)
def test_fifo_serves_in_order_of_arrival(given_items: list[int]) -> None:
    fifo = Fifo[int]()
    fifo.load(given_items)
    assert fifo.backlog() == len(given_items)
    assert drain(fifo) == given_items
    assert fifo.wake_at() == inf


@given(items, st.sampled_from([Fifo, Immediate]))
def test_flush_returns_what_next_would_have_and_leaves_nothing(
    given_items: list[int], make: Callable[[], Fifo[int]]
) -> None:
    flushed, drained = make(), make()
    flushed.load(given_items)
    drained.load(given_items)
    assert flushed.flush() == drain(drained)
    assert flushed.backlog() == 0
    assert flushed.next(0) is None


@given(items, items)
def test_the_immediate_queue_goes_before_everything_else(urgent: list[int], normal: list[int]) -> None:
    first, second = Fifo(urgent), Fifo(normal)
    both = FirstOf((first, second))
    assert both.backlog() == len(urgent) + len(normal)
    assert drain(both) == urgent + normal


def test_an_immediate_url_that_arrives_late_is_still_next() -> None:
    first, second = Fifo[int](), Fifo([1, 2])
    both = FirstOf((first, second))
    assert both.next(0) == 1
    first.load([9])
    assert both.next(0) == 9
    assert both.next(0) == 2


@given(items, items, st.floats(0, 1))
def test_a_weighted_choice_gives_everything_once_and_each_member_in_order(
    left: list[int], right: list[int], p: float
) -> None:
    members = (Fifo([("l", x) for x in left]), Fifo([("r", x) for x in right]))
    found = drain(WeightedRandom(members, lambda: (p, 1 - p), random.Random(1)))
    assert [x for side, x in found if side == "l"] == left
    assert [x for side, x in found if side == "r"] == right


def test_a_weighted_choice_follows_its_weights_and_a_change_of_plan_at_once() -> None:
    weights = [0.8, 0.2]
    members = (Fifo(["new"] * 20_000), Fifo(["old"] * 20_000))
    joined = WeightedRandom(members, lambda: weights, random.Random(7))
    first = Counter(joined.next(0) for _ in range(10_000))
    weights[:] = [0.1, 0.9]
    second = Counter(joined.next(0) for _ in range(10_000))
    assert abs(first["new"] / 10_000 - 0.8) < 0.02
    assert abs(second["new"] / 10_000 - 0.1) < 0.02


def test_a_member_of_weight_zero_is_served_when_alone() -> None:
    joined = WeightedRandom((Fifo([1]), Fifo([2])), lambda: (0.0, 1.0), random.Random(1))
    assert drain(joined) == [2, 1]
    both_zero = WeightedRandom((Fifo([1]), Fifo([2])), lambda: (0.0, 0.0), random.Random(1))
    assert sorted(drain(both_zero)) == [1, 2]


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from("tgh"), st.floats(0, 10)), max_size=60))
def test_a_gate_never_lets_more_through_than_its_slots_and_never_before_their_time(
    concurrency: int, steps: list[tuple[str, float]]
) -> None:
    gate, now, out = Gate(concurrency), 0.0, 0
    shut: list[float] = []
    for action, amount in steps:
        now += amount
        if action == "t" and gate.opens_at <= now:
            assert sum(until > now for until in shut) + out < concurrency
            gate.take()
            out += 1
        elif action == "g" and out:
            gate.give(now + 2 * amount)
            shut.append(now + 2 * amount)
            out -= 1
        elif action == "h":
            gate.hold(now + amount)
            assert gate.opens_at >= now + amount
        assert gate.in_flight == out
    if out == concurrency:
        assert gate.opens_at == inf


def test_a_polite_sequencer_holds_its_backlog_until_the_gate_opens() -> None:
    polite = GatedSequencer(Fifo([1, 2]), Gate())
    assert polite.next(0) == 1
    assert polite.next(0) is None
    assert polite.wake_at() == inf
    polite.gate.give(5.0)
    assert polite.wake_at() == 5.0
    assert polite.next(4.9) is None
    assert polite.next(5.0) == 2
    polite.gate.give(0.0)
    assert polite.wake_at() == inf, "an empty queue waits for no time"


def test_a_weighted_choice_hurries_nobody_since_it_may_give_something_else() -> None:
    assert WeightedRandom((Fifo([1]), Immediate([2])), lambda: (1.0, 1.0), random.Random(1)).hurry_at() == inf
