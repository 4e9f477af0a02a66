"""What a batch orders: events while the last one is out, chores at their intervals."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from webfountain.clock import ManualClock
from webfountain.frontier.batch import Batch
from webfountain.frontier.orders import Chores, OpenBatch
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
