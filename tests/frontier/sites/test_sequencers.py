"""Sequencers: a ring serves who is available in turn and who is in a hurry first."""

from __future__ import annotations

import random
from collections import Counter, deque
from math import inf
from typing import TYPE_CHECKING, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.frontier.sites.politeness import Gate
from webfountain.frontier.sites.sequencers import ByWorth, RoundRobin, Sequencer, Tier

if TYPE_CHECKING:
    from collections.abc import Iterable
T = TypeVar("T")


class Leaf(Generic[T]):
    """A sequencer behind a gate, with urgent items, which come first, and others. A number is worth what it says."""

    def __init__(self, items: Iterable[T] = (), *, urgent: Iterable[T] = (), gate: Gate | None = None) -> None:
        self.items = deque(items)
        self.urgent = deque(urgent)
        self.gate = Gate(1000, open_at=-inf) if gate is None else gate

    def times(self) -> tuple[float, float]:
        opens_at = self.gate.opens_at if self.items or self.urgent else inf
        return opens_at, opens_at if self.urgent else inf

    def worth(self) -> float:
        first = next(iter(self.items), None)
        return inf if self.urgent else -inf if first is None else float(first) if isinstance(first, int) else 1.0

    def next(self, at: float) -> T | None:
        if self.times()[0] > at:
            return None
        self.gate.take()
        return (self.urgent or self.items).popleft()


def join(ring: RoundRobin[T] | Tier[T], *members: Sequencer[T]) -> None:
    """Add members that have items already."""
    for member in members:
        ring.add(member)
        ring.wake(member)


def drain(sequencer: Sequencer[T], at: float = 0.0) -> list[T]:
    found = []
    while sequencer.times()[0] <= at and (item := sequencer.next(at)) is not None:
        found.append(item)
    return found


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


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_a_round_robin_serves_the_available_in_turn(sizes: list[int]) -> None:
    ring = RoundRobin[tuple[int, int]]()
    for member, size in enumerate(sizes):
        join(ring, Leaf([(member, i) for i in range(size)]))
    turns = [(member, turn) for turn in range(max(sizes)) for member, size in enumerate(sizes) if size > turn]
    assert drain(ring) == turns


STEPS = ["next", "land", "load", "hurry", "pass", "leave"]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), max_size=120))
def test_a_ring_of_polite_sites_finds_a_site_exactly_when_one_is_available_and_first_one_in_a_hurry(
    steps: list[tuple[str, int]],
) -> None:
    """The heaps and the ring agree with asking every member, at every moment."""
    sites = [Leaf[int](gate=Gate()) for _ in range(6)]
    ring, now = RoundRobin[int](), 0.0
    out: list[int] = []
    gone: set[int] = set()
    for site in sites:
        join(ring, site)
    for action, which in steps:
        here = [site for i, site in enumerate(sites) if i not in gone]
        if action == "next":
            free = {i for i, site in enumerate(sites) if site in here and site.times()[0] <= now}
            hurried = {i for i in free if sites[i].urgent}
            item = ring.next(now)
            assert (item is not None) == bool(free)
            if item is not None:
                assert item in (hurried or free)
                out.append(item)
        elif action == "land" and out:
            landed = out.pop(0)
            sites[landed].gate.give(now + which)
            ring.wake(sites[landed])
        elif action in ("load", "hurry"):
            (sites[which].items if action == "load" else sites[which].urgent).append(which)
            ring.wake(sites[which])
        elif action == "leave" and which not in gone:
            ring.remove(sites[which])
            gone.add(which)
        elif action == "pass":
            now += which / 2
        soonest = min((site.times()[0] for i, site in enumerate(sites) if i not in gone), default=inf)
        assert ring.wake_at() <= max(soonest, now), "the ring would sleep through a site that is due"


def test_a_removed_member_is_served_no_more_and_keeps_its_items() -> None:
    ring, gone, stays = RoundRobin[int](), Leaf([1]), Leaf([2])
    join(ring, gone)
    join(ring, stays)
    ring.remove(gone)
    assert drain(ring) == [2]
    assert list(gone.items) == [1]


def test_the_order_of_a_ring_does_not_depend_on_where_memory_is_used_again() -> None:
    """Who left for good is not mistaken for a newcomer at the same address, which would go before its turn."""
    ring = RoundRobin[str]()
    leaves, others = Leaf(["gone"], gate=Gate(open_at=5.0)), []
    join(ring, leaves)
    join(ring, Leaf(["first"], gate=Gate(open_at=5.0)))
    ring.remove(leaves)
    gate, place = Gate(open_at=5.0), id(leaves)
    del leaves
    while id(newcomer := Leaf(["second"], gate=gate)) != place:
        others.append(newcomer)
        assert len(others) < 10_000, "this Python does not use memory again: nothing was tested"
    join(ring, newcomer)
    assert drain(ring, 5.0) == ["first", "second"]


def test_who_left_is_not_checked_any_more() -> None:
    ring, gone, stays = RoundRobin[int](), Leaf[int](), Leaf([1])
    join(ring, gone)
    join(ring, stays)
    ring.remove(gone)
    gone.items.append(9)
    ring.wake(gone)
    assert drain(ring) == [1]


def test_a_ready_site_keeps_its_turn_when_it_is_checked_again() -> None:
    ring = RoundRobin[str]()
    sites = [Leaf([name] * 2, gate=Gate(2, open_at=1.0)) for name in "abc"]
    for site in sites:
        join(ring, site)
    assert ring.next(2.0) == "a"
    ring.wake(sites[1])
    assert drain(ring, 2.0) == ["b", "c", "a", "b", "c"]


def test_a_site_in_a_hurry_goes_before_the_ring_with_all_that_is_urgent() -> None:
    ring = RoundRobin[int]()
    join(ring, Leaf([1, 2, 3]))
    join(ring, Leaf([4, 5], urgent=[8, 9]))
    assert drain(ring) == [8, 9, 1, 4, 2, 5, 3]


def six_ready_and_one_shut(until: float) -> RoundRobin[str]:
    """A ring of six ready sites, and a seventh with an immediate item whose gate opens later."""
    ring, late = RoundRobin[str](), Leaf(["late"], gate=Gate(open_at=until))
    for name in "abcdef":
        join(ring, Leaf([name] * 9))
    join(ring, late)
    assert [ring.next(0.0), ring.next(0.0)] == ["a", "b"]
    late.urgent.append("now")
    ring.wake(late)
    return ring


def test_a_site_in_a_hurry_goes_before_all_that_are_ready_as_soon_as_its_gate_opens() -> None:
    ring = six_ready_and_one_shut(until=5.0)
    assert [ring.next(4.9), ring.next(5.0), ring.next(5.0)] == ["c", "now", "d"]


def test_a_site_in_a_hurry_goes_before_all_though_it_was_ready_before() -> None:
    ring = six_ready_and_one_shut(until=0.0)
    assert [ring.next(1.0), ring.next(1.0)] == ["now", "c"]


def test_a_hurry_passes_both_tiers_and_does_not_favour_the_neighbours_of_a_shut_site() -> None:
    """Only once the site itself may be asked does its address go before all others."""
    top = RoundRobin[str]()
    for name in "abc":
        join(top, Leaf([name] * 3))
    address = Tier(top, 9)
    join(address, Leaf(["neighbour"] * 3))
    join(address, Leaf(urgent=["now"], gate=Gate(open_at=5.0)))
    join(top, address)
    assert [top.next(1.0) for _ in range(5)] == ["a", "b", "c", "neighbour", "a"]
    assert [top.next(5.0) for _ in range(4)] == ["now", "b", "c", "neighbour"]


def test_a_site_that_left_its_address_leaves_no_hurry_behind() -> None:
    top, gone = RoundRobin[str](), Leaf(urgent=["now"])
    join(top, Leaf(["a"] * 2))
    address = Tier(top, 9)
    join(address, gone)
    join(address, Leaf(["neighbour"]))
    join(top, address)
    address.remove(gone)
    assert drain(top) == ["a", "neighbour", "a"]


def test_two_sites_of_an_address_see_one_request_at_a_time_together_and_another_address_goes_on() -> None:
    top = RoundRobin[str]()
    shared, single = Tier(top, 1), Tier(top, 2)
    for tier in (shared, single):
        join(top, tier)
    for name in ("a", "b"):
        join(shared, Leaf([name] * 2))
    join(single, Leaf(["c"] * 2))
    assert Counter(top.next(0) for _ in range(3)) == {"a": 1, "c": 2}
    assert top.next(0) is None
    shared.gate.give(3.0)
    top.wake(shared)
    assert top.next(2.9) is None
    assert top.next(3.0) == "b"


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
