"""The budget is spread over the period; chores come round by the clock."""

from __future__ import annotations

import random
from itertools import pairwise
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from webfountain.frontier.timers import COUNTS, POLL_INTERVAL_S, POLLS, ChoreTimer, PollTimer, TokenBucket


@given(st.integers(1, 500), st.lists(st.floats(0, 40), max_size=200))
def test_no_stretch_of_time_sees_more_than_its_share_and_a_little_burst(capacity: int, waits: list[float]) -> None:
    pace, now, taken = TokenBucket(capacity, 100.0, start=0.0), 0.0, []
    for wait in waits:
        now = max(now + wait * 0.01, pace.open_at())
        pace.take(now)
        taken.append(now)
        now += wait if wait > 39 else 0.0
    burst = max(0.02 * capacity, 1.0)
    for i, begin in enumerate(taken):
        for j in range(i, len(taken), 7):
            assert j - i <= (taken[j] - begin) * capacity / 100.0 + burst + 1e-6


def test_a_budget_asked_for_without_pause_is_spent_whole() -> None:
    pace, now, n = TokenBucket(50, 100.0, start=0.0), 0.0, 0
    while (now := max(now, pace.open_at())) < 1000.0:
        pace.take(now)
        n += 1
    assert 499 <= n <= 501


def test_without_a_capacity_politeness_alone_decides() -> None:
    pace = TokenBucket(None, 100.0, start=5.0)
    pace.take(7.0)
    assert pace.open_at() == -inf


def test_a_chore_is_due_when_its_interval_has_passed_since_it_was_done() -> None:
    timer = ChoreTimer(10.0, start=1.0)
    assert [at for at in (0.0, 1.0, 2.0, 10.9, 12.0, 21.9, 22.0) if timer.take(at)] == [1.0, 12.0, 22.0]
    timer.hasten()
    assert timer.take(22.0)
    assert not timer.take(31.9)


def looked(looks: PollTimer, *, until: float, idle: bool, processes: int, begin: float = 0.0) -> list[float]:
    """When a process that asks itself every 50 ms looked."""
    times = (begin + 0.05 * tick for tick in range(int((until - begin) / 0.05)))
    return [at for at in times if looks.due(at, idle=idle, processes=processes)]


def test_an_idle_process_among_many_looks_more_and_more_seldom_and_a_busy_one_twice_a_second_at_once() -> None:
    looks = PollTimer(POLLS, rng=random.Random(1), start=0.0)
    times = looked(looks, until=100.0, idle=True, processes=1000)
    waits = [b - a for a, b in pairwise(times)]
    assert waits[0] <= 0.6
    assert all(POLL_INTERVAL_S <= wait <= POLLS.longest_s + 0.1 for wait in waits)
    assert min(waits[5:]) > POLLS.longest_s / 2
    assert len({round(wait, 2) for wait in waits[5:]}) > 5, "with jitter"
    assert looked(looks, until=101.0, idle=False, processes=1000, begin=100.0)[0] <= 100.05
    assert len(looked(looks, until=111.0, idle=False, processes=1000, begin=101.0)) >= 19


def test_one_of_the_idle_processes_looks_within_a_second_however_many_there_are() -> None:
    for many in (1, 2, 7, 30, 200):
        each = (PollTimer(POLLS, rng=random.Random(seed), start=0.0) for seed in range(many))
        times = sorted(at for looks in each for at in looked(looks, until=120.0, idle=True, processes=many))
        later = [at for at in times if at > 60.0]
        assert max(b - a for a, b in pairwise(later)) <= 1.0


def test_a_thousand_idle_processes_together_count_no_oftener_than_fifty_times_a_second() -> None:
    found = [
        len(looked(PollTimer(COUNTS, rng=random.Random(seed), start=0.0), until=300.0, idle=True, processes=1000)) - 7
        for seed in range(10)
    ]
    assert sum(found) / len(found) / 300.0 * 1000 < 50.0
