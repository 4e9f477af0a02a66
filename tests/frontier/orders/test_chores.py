"""Chores come round by the clock, each at its own interval."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from webfountain.frontier.batch import Batch
from webfountain.frontier.orders.chores import Chores, ChoreTimer

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


def test_a_chore_is_due_when_its_interval_has_passed_since_it_was_done() -> None:
    timer = ChoreTimer(10.0, start=1.0)
    assert [at for at in (0.0, 1.0, 2.0, 10.9, 12.0, 21.9, 22.0) if timer.take(at)] == [1.0, 12.0, 22.0]
    timer.hasten()
    assert timer.take(22.0)
    assert not timer.take(31.9)
