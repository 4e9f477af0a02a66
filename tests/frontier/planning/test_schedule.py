"""Schedules: a horizon and a due time say the same of every page, within the bounds, whatever the plan."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.plans import DAY, hand_made
from tests.store.stores import lease
from webfountain.core.buckets import BUCKETS, interval_of
from webfountain.core.phases import Phases
from webfountain.frontier.planning.schedule import (
    CHOICES_PER_PERIOD,
    REFRESH,
    VISITS_PER_CHANGE,
    Bounds,
    BucketSchedule,
    NoRecrawl,
    PlanSchedule,
)
from webfountain.frontier.planning.urgency_schedule import PATIENCE, UrgencySchedule
from webfountain.records import Link, Outcome, PageRecord
from webfountain.store.contract import ADVANCED, LANES, RETRY
from webfountain.store.memory.store import MemoryStore

FASTEST = DAY / 96
SPEED = np.geomspace(4 / DAY, 1e-3 / DAY, BUCKETS)
INTERVALS = tuple(np.geomspace(0.1 * DAY, 300 * DAY, BUCKETS).tolist())


def planned():
    gains = np.array([np.linspace(3.0, 0.0, BUCKETS), np.linspace(0.0, 0.5, BUCKETS)])
    return hand_made(Phases.running(SPEED, start=0.0).planned(gains, start=0.0, period=DAY), intervals=INTERVALS)


MAKERS = {
    "bucket": lambda bounds: BucketSchedule(fastest=FASTEST, bounds=bounds),
    "plan": lambda bounds: PlanSchedule(planned(), bounds=bounds),
    "fountain": lambda bounds: UrgencySchedule(planned(), bounds=bounds, ranked=frozenset()),
    "ranked": lambda bounds: UrgencySchedule(planned(), bounds=bounds, ranked=frozenset({"s"})),
}


@pytest.mark.parametrize("name", MAKERS)
@given(st.integers(0, BUCKETS - 1), st.floats(0, 20), st.floats(0, 30), st.sampled_from([(0.0, inf), (0.5, 9.0)]))
def test_a_page_is_inside_the_horizon_exactly_when_its_due_time_has_come(name, lane, crawled, later, bounds):
    schedule = MAKERS[name](Bounds(bounds[0] * DAY, bounds[1] * DAY))
    order, at = crawled * DAY, (crawled + later) * DAY
    (due,) = schedule.due_times("s", [(lane, order)], at)
    assert order + bounds[0] * DAY <= due <= order + bounds[1] * DAY
    if abs(due - at) > 1.0:  # but for rounding
        assert (order <= schedule.horizon("s", at)[lane]) == (due <= at)


@pytest.mark.parametrize("name", MAKERS)
def test_what_has_a_time_of_its_own_is_due_then(name):
    schedule = MAKERS[name](Bounds())
    assert schedule.due_times("s", [(ADVANCED, 5.0), (RETRY, 7.0)], 0.0) == [5.0, 7.0]
    horizon = schedule.horizon("s", 42.0)
    assert len(horizon) == LANES
    assert horizon[ADVANCED:] == [42.0, 42.0]


def test_without_a_plan_a_page_is_looked_at_some_times_per_expected_change():
    schedule = BucketSchedule(fastest=FASTEST, bounds=Bounds())
    assert schedule.due_times("s", [(100, 0.0)], 0.0) == [pytest.approx(interval_of(100, FASTEST) / VISITS_PER_CHANGE)]
    assert schedule.weights(0.0) == (0.5, 0.5)


def test_without_recrawling_nothing_is_due_again():
    schedule = NoRecrawl()
    assert schedule.horizon("s", 9.0) == [-inf] * LANES
    assert schedule.due_times("s", [(3, 0.0), (RETRY, 1.0)], 9.0) == [inf, inf]
    assert schedule.weights(0.0) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["plan", "fountain"])
def test_a_correction_moves_all_due_times_at_once_and_stays_within_bounds(name):
    schedule = MAKERS[name](Bounds())
    before = schedule.horizon("s", DAY)[100]
    (due,) = schedule.due_times("s", [(100, 0.0)], 0.0)
    schedule.correct(0.5)
    assert schedule.horizon("s", DAY)[100] > before
    assert schedule.due_times("s", [(100, 0.0)], 0.0)[0] < due
    for _ in range(100):
        schedule.correct(0.5)
    least = schedule.due_times("s", [(100, 0.0)], 0.0)[0]
    schedule.correct(0.5)
    assert schedule.due_times("s", [(100, 0.0)], 0.0)[0] == least > 0


def test_a_plan_s_horizon_is_used_for_a_fiftieth_of_a_period():
    schedule = MAKERS["plan"](Bounds())
    first = schedule.horizon("a", DAY)
    assert schedule.horizon("b", DAY + 0.9 * REFRESH * DAY) is first
    assert schedule.horizon("a", DAY + 1.1 * REFRESH * DAY) is not first


def test_weights_follow_the_plan():
    for name in ("plan", "fountain"):
        assert MAKERS[name](Bounds()).weights(0.0) == pytest.approx((1 / 3, 2 / 3))


# ------------------------------------------------------------------------------------------ by urgency


def a_crawled_page(site, *, bucket, at):
    """A store with one page, crawled at a time."""
    store = MemoryStore(period_s=DAY)
    store.discover([Link(f"{site}/x", site, b"x")], at=at)
    (home,) = store.activate(1, owner="o", until=at + 60, at=at)
    (new,) = lease(store, home, 1)
    record = PageRecord(f"{site}/x", state="crawled", bucket=bucket, last_crawled=at)
    store.settle([Outcome(new.id, "new", record)], at=at)
    return store


def leased(store, schedule, site, at):
    horizon = schedule.horizon(site, at)
    (home,) = store.activate(1, owner="o", until=at, at=inf)
    found = lease(store, home, 1, queue="recrawl", horizon=horizon)
    store.release([one.id for one in found])
    return len(found)


def test_a_page_that_is_passed_over_is_due_after_some_intervals_whatever_the_budget():
    schedule = UrgencySchedule(planned(), bounds=Bounds(), ranked=frozenset({"ranked"}))
    interval, at = INTERVALS[100], 100 * DAY
    for factor in (1.0, 0.5, 0.5):
        schedule.correct(factor)
        store = a_crawled_page("ranked", bucket=100, at=at)
        assert not leased(store, schedule, "ranked", at + (PATIENCE - 0.01) * interval)
        assert leased(store, schedule, "ranked", at + (PATIENCE + 0.01) * interval)
    # What is not ranked follows the budget: the price is a quarter of the plan's by now.
    store = a_crawled_page("other", bucket=100, at=at)
    assert not leased(store, schedule, "other", at + 0.24 * interval)
    assert leased(store, schedule, "other", at + 0.26 * interval)


def test_a_site_whose_pages_begin_or_cease_to_be_ranked_is_judged_by_the_other_rule_at_once():
    schedule = UrgencySchedule(planned(), bounds=Bounds(longest=2 * INTERVALS[100]), ranked=frozenset())
    assert schedule.due_times("s", [(100, 0.0)], 0.0) == [INTERVALS[100]]
    schedule.ranked = frozenset({"s"})
    assert schedule.due_times("s", [(100, 0.0)], 0.0) == [2 * INTERVALS[100]], "max_interval binds"
    schedule.ranked = frozenset()
    assert schedule.due_times("s", [(100, 0.0)], 0.0) == [INTERVALS[100]]


@pytest.mark.parametrize("name", ["bucket", "plan"])
def test_only_fountain_s_own_schedule_has_urgent_pages_chosen(name):
    schedule = MAKERS[name](Bounds())
    assert [schedule.wanted(day * DAY, starved=True) for day in range(3)] == [None] * 3
    assert NoRecrawl().wanted(5 * DAY, starved=True) is None


def test_pages_are_chosen_by_the_clock_for_what_the_plan_fetches_until_the_next_choice():
    schedule = MAKERS["ranked"](Bounds())
    every = DAY / CHOICES_PER_PERIOD
    assert schedule.wanted(0.0, starved=False).alone == pytest.approx(1 + 15 / CHOICES_PER_PERIOD)
    assert schedule.wanted(0.9 * every, starved=False) is None
    assert schedule.wanted(every, starved=False) is not None
    second = DAY  # where 20 pages are planned
    assert schedule.wanted(second, starved=False).alone == pytest.approx(1 + 20 / CHOICES_PER_PERIOD)


def test_while_new_pages_wait_known_ones_have_what_the_plan_means_for_them_unless_fetches_are_left():
    schedule = MAKERS["ranked"](Bounds())
    planned_recrawls = schedule.wanted(0.0, starved=False).beside_new
    assert planned_recrawls == pytest.approx(1 + 10 / CHOICES_PER_PERIOD)
    schedule.correct(0.9)
    unspent = schedule.wanted(0.1 * DAY, starved=True)
    assert unspent.beside_new == unspent.alone
    schedule.correct(1.003)
    assert schedule.wanted(0.2 * DAY, starved=True).beside_new == planned_recrawls


def test_an_ant_that_starves_has_pages_chosen_sooner_but_not_all_the_time():
    schedule = MAKERS["ranked"](Bounds())
    every = DAY / CHOICES_PER_PERIOD
    assert schedule.wanted(0.0, starved=True) is not None
    assert schedule.wanted(0.05 * every, starved=True) is None
    assert schedule.wanted(0.15 * every, starved=True) is not None
    assert schedule.wanted(0.2 * every, starved=True) is None


def test_in_a_period_of_seconds_a_choice_provides_for_longer_than_until_the_next():
    assert MAKERS["ranked"](Bounds()).wanted(0.0, starved=False).ahead_s == DAY / CHOICES_PER_PERIOD
    plan = hand_made(Phases.running(SPEED, start=0.0), period=1.0, intervals=INTERVALS)
    short = UrgencySchedule(plan, bounds=Bounds(), ranked=frozenset({"s"}))
    assert short.wanted(0.0, starved=False).ahead_s == 0.2


def test_the_more_sites_are_ranked_the_longer_a_choice_provides_where_periods_are_short():
    plan = hand_made(Phases.running(SPEED, start=0.0), period=1.0, intervals=INTERVALS)
    schedule = UrgencySchedule(plan, bounds=Bounds(), ranked=frozenset(map(str, range(2000))))
    assert schedule.wanted(0.0, starved=False).ahead_s == 10.0
    assert schedule.wanted(9.0, starved=False) is None
    assert schedule.wanted(10.0, starved=False) is not None
