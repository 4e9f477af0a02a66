"""What a batch orders: events while the last one is out, chores at their intervals."""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.drive import Drive, collection_of
from webfountain.clock import ManualClock
from webfountain.frontier.batch import Batch
from webfountain.frontier.cluster.membership import LoneAnt
from webfountain.frontier.orders import (
    COUNT_EACH_S,
    COUNT_LONGEST_S,
    POLL_EACH_S,
    POLL_INTERVAL_S,
    POLL_LONGEST_S,
    Chores,
    OpenBatch,
    Polls,
    PollTimer,
)
from webfountain.frontier.planning.schedule import Schedule

TIMES = st.lists(st.floats(0.0, 5.0), max_size=60)


@given(TIMES, st.lists(st.floats(0.5, 20.0), max_size=4), st.floats(0.0, 10.0))
def test_a_chore_acts_when_its_interval_has_passed_since_it_was_done(
    pauses: list[float], intervals: list[float], start: float
) -> None:
    """Each is held to a model of its own: due at the start, then an interval after it was done last."""
    acted: list[tuple[int, float]] = []

    def act(number: int, batch: Batch) -> None:
        acted.append((number, batch.at))

    chores = [(interval, partial(act, number)) for number, interval in enumerate(intervals)]
    order, at, due = Chores(chores, start=start), 0.0, [start] * len(intervals)
    expected: list[tuple[int, float]] = []
    for pause in pauses:
        at += pause
        if order.due <= at:
            order.add(Batch(at))
        for number, interval in enumerate(intervals):
            if due[number] <= at:
                expected.append((number, at))
                due[number] = at + interval
    assert acted == expected


def test_what_happens_while_a_batch_is_out_waits_for_the_next_one() -> None:
    clock = ManualClock(1.0)
    batches = OpenBatch(clock)
    gathered = batches.gather()
    gathered.tidy, gathered.schedule = True, Schedule()
    assert batches.send() is gathered
    clock.set(2.0)
    assert batches.gather() is not gathered
    assert (gathered.at, batches.gather().at) == (1.0, 2.0)
    assert (batches.gather().tidy, batches.gather().schedule) == (False, gathered.schedule)


def poll_timer(seed: int) -> PollTimer:
    return PollTimer(POLL_EACH_S, POLL_LONGEST_S, rng=random.Random(seed), start=0.0)


def count_timer(seed: int) -> PollTimer:
    return PollTimer(COUNT_EACH_S, COUNT_LONGEST_S, rng=random.Random(seed), start=0.0)


def polled(checks: PollTimer, *, until: float, idle: bool, processes: int, begin: float = 0.0) -> list[float]:
    """When a process that asks itself every 50 ms looked."""
    times = (begin + 0.05 * tick for tick in range(int((until - begin) / 0.05)))
    return [at for at in times if checks.due(at, idle=idle, processes=processes)]


def test_an_idle_process_among_many_polls_more_and_more_seldom_and_a_busy_one_twice_a_second_at_once() -> None:
    checks = poll_timer(1)
    times = polled(checks, until=100.0, idle=True, processes=1000)
    waits = [b - a for a, b in pairwise(times)]
    assert waits[0] <= 0.6
    assert all(POLL_INTERVAL_S <= wait <= POLL_LONGEST_S + 0.1 for wait in waits)
    assert min(waits[5:]) > POLL_LONGEST_S / 2
    assert len({round(wait, 2) for wait in waits[5:]}) > 5, "with jitter"
    assert polled(checks, until=101.0, idle=False, processes=1000, begin=100.0)[0] <= 100.05
    assert len(polled(checks, until=111.0, idle=False, processes=1000, begin=101.0)) >= 19


def test_one_of_the_idle_processes_polls_within_a_second_however_many_there_are() -> None:
    for many in (1, 2, 7, 30, 200):
        each = (poll_timer(seed) for seed in range(many))
        times = sorted(at for checks in each for at in polled(checks, until=120.0, idle=True, processes=many))
        later = [at for at in times if at > 60.0]
        assert max(b - a for a, b in pairwise(later)) <= 1.0


def test_a_thousand_idle_processes_together_count_no_oftener_than_fifty_times_a_second() -> None:
    found = [len(polled(count_timer(seed), until=300.0, idle=True, processes=1000)) - 7 for seed in range(10)]
    assert sum(found) / len(found) / 300.0 * 1000 < 50.0


def test_the_only_process_of_a_store_has_nothing_to_poll_between_two_polls() -> None:
    drive = Drive(collection_of(["http://home.example/"]), lambda fetch, at: "dns")
    polls = Polls(LoneAnt("a", lease_s=600.0), drive.frontier.progress, rng=random.Random(1), start=0.0)
    batch = Batch(1.0)
    polls.add(batch)
    assert (batch.inbox, batch.immediate, polls.due) == (True, True, 1.0 + POLL_INTERVAL_S)
