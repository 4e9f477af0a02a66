"""Polls: a process polls less often while it is idle, and the less the more processes there are."""

from __future__ import annotations

import random
from itertools import pairwise

from tests.frontier.drive import Drive, collection_of
from webfountain.frontier.batch import Batch
from webfountain.frontier.cluster.membership import LoneAnt
from webfountain.frontier.polls import (
    COUNT_EACH_S,
    COUNT_LONGEST_S,
    POLL_EACH_S,
    POLL_INTERVAL_S,
    POLL_LONGEST_S,
    Polls,
    PollTimer,
)


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
