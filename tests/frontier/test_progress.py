"""The budget is spread over the period."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from webfountain.frontier.progress import TokenBucket


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
