"""The budget is spread over the period; chores come round by the clock."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from webfountain.frontier.agenda import Agenda, Pace


@given(st.integers(1, 500), st.lists(st.floats(0, 40), max_size=200))
def test_no_stretch_of_time_sees_more_than_its_share_and_a_little_burst(capacity, waits):
    pace, now, taken = Pace(capacity, 100.0, start=0.0), 0.0, []
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
    pace, now, n = Pace(50, 100.0, start=0.0), 0.0, 0
    while (now := max(now, pace.open_at())) < 1000.0:
        pace.take(now)
        n += 1
    assert 499 <= n <= 501


def test_without_a_capacity_politeness_alone_decides() -> None:
    pace = Pace(None, 100.0, start=5.0)
    pace.take(7.0)
    assert pace.open_at() == -inf


def test_a_chore_is_due_when_its_interval_has_passed_since_it_was_done() -> None:
    agenda = Agenda({"a": 10.0, "b": 3.0}, start=0.0)
    assert agenda.due("a", 0.0)
    assert not agenda.due("a", 9.9)
    assert agenda.due("b", 9.0)
    assert agenda.due("a", 10.0)
