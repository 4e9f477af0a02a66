"""Turns: a ring serves who is available in turn and who is in a hurry first, and forgets who left."""

from __future__ import annotations

import random
from collections import Counter
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.sites.test_sequencers import drain
from webfountain.frontier.sites.gate import Gate
from webfountain.frontier.sites.ring import ByWorth, GatedSequencer, RoundRobin
from webfountain.frontier.sites.sequencers import Fifo, FirstOf, Immediate, ValueQueue


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_a_round_robin_serves_the_available_in_turn(sizes: list[int]) -> None:
    ring = RoundRobin[tuple[int, int]]()
    for member, size in enumerate(sizes):
        ring.add(Fifo([(member, i) for i in range(size)]))
    turns = [(member, turn) for turn in range(max(sizes)) for member, size in enumerate(sizes) if size > turn]
    assert drain(ring) == turns


STEPS = ["next", "land", "load", "hurry", "pass", "leave"]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), max_size=120))
def test_a_ring_of_polite_sites_finds_a_site_exactly_when_one_is_available_and_first_one_in_a_hurry(
    steps: list[tuple[str, int]],
) -> None:
    """The heaps and the ring agree with asking every member, at every moment."""
    queues = [(Immediate[int](), Fifo[int]()) for _ in range(6)]
    sites = [GatedSequencer(FirstOf(pair), Gate()) for pair in queues]
    ring, now = RoundRobin[int](), 0.0
    out: list[int] = []
    gone: set[int] = set()
    for site in sites:
        ring.add(site)
    for action, which in steps:
        here = [site for i, site in enumerate(sites) if i not in gone]
        if action == "next":
            free = {i for i, site in enumerate(sites) if site in here and site.wake_at() <= now}
            hurried = {i for i in free if queues[i][0].backlog()}
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
            queues[which][action == "load"].load([which])
            ring.wake(sites[which])
        elif action == "leave" and which not in gone:
            ring.remove(sites[which])
            gone.add(which)
        elif action == "pass":
            now += which / 2
        soonest = min((site.wake_at() for i, site in enumerate(sites) if i not in gone), default=inf)
        assert ring.wake_at() <= max(soonest, now), "the ring would sleep through a site that is due"


def test_a_removed_member_is_served_no_more_and_keeps_its_items() -> None:
    ring, gone, stays = RoundRobin[int](), Fifo([1]), Fifo([2])
    ring.add(gone)
    ring.add(stays)
    ring.remove(gone)
    assert drain(ring) == [2]
    assert gone.flush() == [1]


def test_the_order_of_a_ring_does_not_depend_on_where_memory_is_used_again() -> None:
    """Who left for good is not mistaken for a newcomer at the same address, which would go before its turn."""
    ring = RoundRobin[str]()
    leaves, others = GatedSequencer(Fifo(["gone"]), Gate(open_at=5.0)), []
    ring.add(leaves)
    ring.add(GatedSequencer(Fifo(["first"]), Gate(open_at=5.0)))
    ring.remove(leaves)
    queue, gate, place = Fifo(["second"]), Gate(open_at=5.0), id(leaves)
    del leaves
    while id(newcomer := GatedSequencer(queue, gate)) != place:
        others.append(newcomer)
        assert len(others) < 10_000, "this Python does not use memory again: nothing was tested"
    ring.add(newcomer)
    assert drain(ring, 5.0) == ["first", "second"]


def test_who_left_is_not_checked_any_more() -> None:
    ring, gone, fifo = RoundRobin[int](), Fifo[int](), Fifo([1])
    ring.add(gone)
    ring.add(fifo)
    ring.remove(gone)
    gone.load([9])
    ring.wake(gone)
    assert drain(ring) == [1]


def test_a_ready_site_keeps_its_turn_when_it_is_checked_again() -> None:
    ring = RoundRobin[str]()
    sites = [GatedSequencer(Fifo([name] * 2), Gate(2, open_at=1.0)) for name in "abc"]
    for site in sites:
        ring.add(site)
    assert ring.next(2.0) == "a"
    ring.wake(sites[1])
    assert drain(ring, 2.0) == ["b", "c", "a", "b", "c"]


def test_a_site_in_a_hurry_goes_before_the_ring_with_all_that_is_urgent() -> None:
    ring, slow, queues = RoundRobin[int](), Fifo([1, 2, 3]), (Immediate([8, 9]), Fifo([4, 5]))
    ring.add(slow)
    ring.add(FirstOf(queues))
    assert drain(ring) == [8, 9, 1, 4, 2, 5, 3]


def six_ready_and_one_shut(until: float) -> RoundRobin[str]:
    """A ring of six ready sites, and a seventh with an immediate item whose gate opens later."""
    ring, urgent = RoundRobin[str](), Immediate[str]()
    for name in "abcdef":
        ring.add(GatedSequencer(Fifo([name] * 9), Gate(9)))
    ring.add(hurried := GatedSequencer(FirstOf((urgent, Fifo(["late"]))), Gate(open_at=until)))
    assert [ring.next(0.0), ring.next(0.0)] == ["a", "b"]
    urgent.load(["now"])
    ring.wake(hurried)
    return ring


def test_a_site_in_a_hurry_goes_before_all_that_are_ready_as_soon_as_its_gate_opens() -> None:
    ring = six_ready_and_one_shut(until=5.0)
    assert [ring.next(4.9), ring.next(5.0), ring.next(5.0)] == ["c", "now", "d"]


def test_a_site_in_a_hurry_goes_before_all_though_it_was_ready_before() -> None:
    ring = six_ready_and_one_shut(until=0.0)
    assert [ring.next(1.0), ring.next(1.0)] == ["now", "c"]


def test_what_stands_before_an_immediate_item_is_in_a_hurry_with_it() -> None:
    errands, urgent, gate = Fifo[int | str](["robots"]), Immediate[int | str](["now"]), Gate()
    ring, site = RoundRobin[int | str](), GatedSequencer(FirstOf((errands, urgent)), gate)
    ring.add(Fifo([1, 2, 3]))
    ring.add(site)
    assert [ring.next(0.0), ring.next(0.0)] == ["robots", 1]
    gate.give(1.0)
    ring.wake(site)
    assert [ring.next(0.9), ring.next(1.0), ring.next(1.0)] == [2, "now", 3]


def test_a_hurry_passes_both_tiers_and_does_not_favour_the_neighbours_of_a_shut_site() -> None:
    """Only once the site itself may be asked does its address go before all others."""
    top, address, shut = RoundRobin[str](), RoundRobin[str](), Gate(open_at=5.0)
    for name in "abc":
        top.add(Fifo([name] * 3))
    address.add(Fifo(["neighbour"] * 3))
    address.add(GatedSequencer(Immediate(["now"]), shut))
    top.add(GatedSequencer(address, Gate(9)))
    assert [top.next(1.0) for _ in range(5)] == ["a", "b", "c", "neighbour", "a"]
    assert [top.next(5.0) for _ in range(4)] == ["now", "b", "c", "neighbour"]


def test_a_site_that_left_its_address_leaves_no_hurry_behind() -> None:
    top, address, gone = RoundRobin[str](), RoundRobin[str](), Immediate(["now"])
    top.add(Fifo(["a"] * 2))
    address.add(gone)
    address.add(Fifo(["neighbour"]))
    top.add(GatedSequencer(address, Gate(9)))
    address.remove(gone)
    assert drain(top) == ["a", "neighbour", "a"]


def test_rings_cascade_behind_one_gate_per_address() -> None:
    """Two sites share an address: together they see one request at a time; another address goes on."""
    shared, single = RoundRobin[str](), RoundRobin[str]()
    for name in ("a", "b"):
        shared.add(GatedSequencer(Fifo([name] * 2), Gate(2)))
    single.add(Fifo(["c"] * 2))
    top, address = RoundRobin[str](), GatedSequencer(shared, Gate())
    top.add(address)
    top.add(single)
    assert Counter(top.next(0) for _ in range(3)) == {"a": 1, "c": 2}
    assert top.next(0) is None
    address.gate.give(3.0)
    top.wake(address)
    assert top.next(2.9) is None
    assert top.next(3.0) == "b"


def valued(*items: int) -> ValueQueue[int]:
    """A queue of numbers, each worth what it says."""
    queue = ValueQueue[int](float)
    queue.load(items)
    return queue


def test_by_worth_every_other_turn_is_the_worthiests_and_the_others_go_round() -> None:
    ring = ByWorth[int]()
    for queue in (valued(1, 1, 1), valued(5, 5, 5), valued(3, 3)):
        ring.add(queue)
    assert drain(ring) == [5, 1, 5, 3, 5, 1, 3, 1]


def test_by_worth_equals_take_turns() -> None:
    ring = ByWorth[str]()
    for name in "abc":
        queue = ValueQueue[str](lambda item: 1.0)
        queue.load([name] * 3)
        ring.add(queue)
    assert drain(ring) == list("abc" * 3)


def test_by_worth_what_came_meanwhile_counts_once_its_owner_says_so() -> None:
    ring, one, other = ByWorth[int](), valued(2), valued(4, 4, 4)
    ring.add(one)
    ring.add(other)
    assert ring.next(0.0) == 4
    one.flush()
    one.load([1, 8])
    ring.wake(one)
    assert [ring.next(0.0) for _ in range(3)] == [1, 8, 4]


def test_by_worth_an_address_is_worth_what_its_sites_are_and_who_is_in_a_hurry_goes_first() -> None:
    top, address, urgent = ByWorth[int](), ByWorth[int](), Immediate[int]()
    low, high, single = valued(1, 1), valued(7), valued(5, 5)
    address.add(low)
    address.add(high)
    gate = GatedSequencer(address, Gate())
    for member in (single, gate, urgent):
        top.add(member)
    assert top.next(0.0) == 7
    urgent.load([0])
    top.wake(urgent)
    assert [top.next(0.0) for _ in range(2)] == [0, 5]


@pytest.mark.parametrize("seed", range(5))
def test_by_worth_nobody_is_lost_or_served_twice(seed: int) -> None:
    rng, ring = random.Random(seed), ByWorth[int]()
    out: list[int] = []
    queues = [valued() for _ in range(20)]
    for queue in queues:
        ring.add(queue)
    put = 0
    for _ in range(2000):
        if rng.random() < 0.5:
            queue = rng.choice(queues)
            queue.load([rng.randrange(5) + put * 10])
            put += 1
            ring.wake(queue)
        elif (item := ring.next(0.0)) is not None:
            out.append(item)
    out += drain(ring)
    assert sorted(item // 10 for item in out) == list(range(put))
