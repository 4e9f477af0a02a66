"""Schedules: a horizon and a due time say the same of every page, within the bounds, whatever the plan."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.plans import DAY, hand_made
from tests.store.stores import lease
from webfountain.core.buckets import BUCKETS, interval_of
from webfountain.core.phases import Phases
from webfountain.frontier.planning.plan import Bounds, Plan
from webfountain.frontier.planning.schedule import (
    PATIENCE,
    REFRESH,
    VISITS_PER_CHANGE,
    BucketSchedule,
    PlanSchedule,
    Schedule,
    Spending,
    UrgencySchedule,
)
from webfountain.records import Link, Outcome, PageRecord
from webfountain.store.lanes import ADVANCED, LANES, RETRY
from webfountain.store.memory.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable


FASTEST = DAY / 96
SPEED = np.geomspace(4 / DAY, 1e-3 / DAY, BUCKETS)
INTERVALS = tuple(np.geomspace(0.1 * DAY, 300 * DAY, BUCKETS).tolist())


def planned() -> Plan:
    gains = np.array([np.linspace(3.0, 0.0, BUCKETS), np.linspace(0.0, 0.5, BUCKETS)])
    return hand_made(Phases.running(SPEED, start=0.0).planned(gains, start=0.0, period=DAY), intervals=INTERVALS)


SPENT = Spending(planned=10.0, unspent=0.0, waiting=10, starved=True)
SHORT = Spending(planned=10.0, unspent=5.0, waiting=0, starved=True)
MAKERS: dict[str, Callable[[Bounds], Schedule]] = {
    "bucket": lambda bounds: BucketSchedule(fastest=FASTEST, bounds=bounds),
    "plan": lambda bounds: PlanSchedule(planned(), bounds=bounds),
    "fountain": lambda bounds: UrgencySchedule(planned(), bounds=bounds, ranks=False),
    "ranked": lambda bounds: UrgencySchedule(planned(), bounds=bounds, ranks=True),
}


@pytest.mark.parametrize("name", MAKERS)
@given(st.integers(0, BUCKETS - 1), st.floats(0, 20), st.floats(0, 30), st.sampled_from([(0.0, inf), (0.5, 9.0)]))
def test_a_page_is_inside_the_horizon_exactly_when_its_due_time_has_come(
    name: str, lane: int, crawled: float, later: float, bounds: tuple[float, float]
) -> None:
    schedule = MAKERS[name](Bounds(bounds[0] * DAY, bounds[1] * DAY))
    order, at = crawled * DAY, (crawled + later) * DAY
    due = schedule.due(lane, order)
    assert order + bounds[0] * DAY <= due <= order + bounds[1] * DAY
    if abs(due - at) > 1.0:  # but for rounding
        assert (order <= schedule.horizon(at)[lane]) == (due <= at)


@pytest.mark.parametrize("name", MAKERS)
def test_what_has_a_time_of_its_own_is_due_then(name: str) -> None:
    schedule = MAKERS[name](Bounds())
    assert (schedule.due(ADVANCED, 5.0), schedule.due(RETRY, 7.0)) == (5.0, 7.0)
    horizon = schedule.horizon(42.0)
    assert len(horizon) == LANES
    assert horizon[ADVANCED:] == [42.0, 42.0]


def test_without_a_plan_a_page_is_fetched_some_times_per_expected_change() -> None:
    schedule = BucketSchedule(fastest=FASTEST, bounds=Bounds())
    assert schedule.due(100, 0.0) == pytest.approx(interval_of(100, FASTEST) / VISITS_PER_CHANGE)
    assert schedule.weights(0.0) == (0.5, 0.5)


def test_without_recrawling_nothing_is_due_again() -> None:
    schedule = Schedule()
    assert schedule.horizon(9.0) == [-inf] * LANES
    assert (schedule.due(3, 0.0), schedule.due(RETRY, 1.0)) == (inf, inf)
    assert schedule.weights(0.0) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["plan", "fountain"])
def test_a_correction_moves_all_due_times_at_once_and_stays_within_bounds(name: str) -> None:
    schedule = MAKERS[name](Bounds())
    before = schedule.horizon(DAY)[100]
    due = schedule.due(100, 0.0)
    schedule.correct(SHORT)
    assert schedule.horizon(DAY)[100] > before
    assert schedule.due(100, 0.0) < due
    for _ in range(100):
        schedule.correct(SHORT)
    least = schedule.due(100, 0.0)
    schedule.correct(SHORT)
    assert schedule.due(100, 0.0) == least > 0


def test_a_plan_s_clocks_are_read_again_after_a_fiftieth_of_a_period() -> None:
    schedule = MAKERS["plan"](Bounds())
    first = schedule.horizon(DAY)[:BUCKETS]
    assert schedule.horizon(DAY + 0.9 * REFRESH * DAY)[:BUCKETS] == first
    assert schedule.horizon(DAY + 1.1 * REFRESH * DAY)[:BUCKETS] != first


@pytest.mark.parametrize("name", MAKERS)
@given(st.lists(st.floats(0.0, 0.1 * DAY), min_size=1, max_size=5))
def test_bounds_and_due_times_hold_at_every_moment(name: str, waits: list[float]) -> None:
    schedule, at = MAKERS[name](Bounds(1.0, 60.0)), DAY
    for wait in waits:
        at += wait
        horizon = schedule.horizon(at)
        assert all(at - 60.0 <= order <= at - 1.0 for order in horizon[:BUCKETS])
        assert horizon[BUCKETS:] == [at] * (LANES - BUCKETS)


def test_weights_follow_the_plan() -> None:
    for name in ("plan", "fountain"):
        assert MAKERS[name](Bounds()).weights(0.0) == pytest.approx((1 / 3, 2 / 3))


# ------------------------------------------------------------------------------------------ by urgency


def a_crawled_page(site: str, *, bucket: int, at: float) -> MemoryStore:
    """A store with one page, crawled at a time."""
    store = MemoryStore(period_s=DAY)
    store.queues.discover([Link(f"{site}/x", site, b"x")], at=at)
    (home,) = store.sites.activate(1, owner="o", until=at + 60, at=at)
    (new,) = lease(store, home, 1)
    record = PageRecord(f"{site}/x", state="crawled", bucket=bucket, last_crawled=at)
    store.queues.settle([Outcome(new.id, "new", record)], at=at)
    return store


def leased(store: MemoryStore, schedule: Schedule, site: str, at: float) -> int:
    horizon = schedule.horizon(at)
    (home,) = store.sites.activate(1, owner="o", until=at, at=inf)
    found = lease(store, home, 1, queue="recrawl", horizon=horizon)
    store.queues.release([one.id for one in found])
    return len(found)


def test_a_page_that_is_passed_over_is_due_after_some_intervals_whatever_the_price() -> None:
    schedule = UrgencySchedule(planned(), bounds=Bounds(), ranks=True)
    interval, at = INTERVALS[100], 100 * DAY
    for spending in (SPENT, SHORT, SHORT):
        schedule.correct(spending)
        store = a_crawled_page("s", bucket=100, at=at)
        assert not leased(store, schedule, "s", at + (PATIENCE - 0.01) * interval)
        assert leased(store, schedule, "s", at + (PATIENCE + 0.01) * interval)


def test_while_there_is_no_choice_to_make_intervals_follow_the_price() -> None:
    schedule = UrgencySchedule(planned(), bounds=Bounds(), ranks=False)
    price = schedule.price
    while schedule.price > price / 16:
        schedule.correct(SHORT)
    due = schedule.due(100, 0.0)
    assert due == pytest.approx(INTERVALS[100] * (schedule.price / price) ** 0.5)


def test_the_sites_of_a_batch_share_a_horizon_as_long_as_time_price_and_what_decides_are_the_same() -> None:
    schedule = UrgencySchedule(planned(), bounds=Bounds(), ranks=False)
    first = schedule.horizon(DAY)
    assert schedule.horizon(DAY) is first
    assert schedule.horizon(DAY + 1.0)[100] == first[100] + 1.0
    assert schedule.horizon(DAY) == first
    schedule.set_price(schedule.price / 4)
    assert schedule.horizon(DAY)[100] > first[100]
    schedule.ranks = True
    assert schedule.horizon(DAY)[100] == pytest.approx(DAY - PATIENCE * INTERVALS[100])


def test_bounds_bind_whether_urgency_decides_or_not() -> None:
    schedule = UrgencySchedule(planned(), bounds=Bounds(longest=2 * INTERVALS[100]), ranks=False)
    assert schedule.due(100, 0.0) == INTERVALS[100]
    schedule.ranks = True
    assert schedule.due(100, 0.0) == 2 * INTERVALS[100]


@pytest.mark.parametrize("name", ["bucket", "plan"])
def test_only_fountain_s_own_schedule_has_a_price(name: str) -> None:
    assert MAKERS[name](Bounds()).price is None
    assert Schedule().price is None
    assert MAKERS["fountain"](Bounds()).price == planned().price


def test_a_new_plan_goes_on_with_the_price_that_followed_the_budget() -> None:
    assert UrgencySchedule(planned(), bounds=Bounds(), price=0.25).price == 0.25


def test_a_plan_of_a_fetch_in_many_checks_stays_late_until_what_it_owes_is_due() -> None:
    late = Spending(planned=0.2, unspent=0.2, waiting=0, starved=True, owed=1.5)
    assert late.late
    assert not late.short, "that was reset when the price fell"
    assert not any(late._replace(**more).late for more in ({"made": 1}, {"waiting": 1}, {"starved": False}))
