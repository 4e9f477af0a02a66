"""Planning: once a cycle from what was counted; the last plan stays when that fails; fetches are held against it."""

from __future__ import annotations

import functools
from math import inf
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from tests.frontier.drive import Answer, Drive, Web, collection_of
from tests.frontier.plans import DAY, census, cycle_of, plan_of
from webfountain.core.buckets import bucket_of, interval_of
from webfountain.core.census import change_rates
from webfountain.frontier.planning.make_plan import census_of
from webfountain.frontier.planning.plan import Plan, decode_plan, encode_plan
from webfountain.frontier.planning.plan_follower import PlanFollower, plans
from webfountain.frontier.planning.planner import Controller
from webfountain.frontier.planning.schedule import (
    CHECKS_PER_PERIOD,
    BucketSchedule,
    PlanSchedule,
    Schedule,
    Spending,
    UrgencySchedule,
)
from webfountain.lab.demo.web import GeneratedWeb, generated_web
from webfountain.metrics import Metrics
from webfountain.records import CensusRow, Fetch, Outcome, SettleResult, SiteLease
from webfountain.store.memory.queues import MemoryQueues
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.policy.collection import Collection
    from webfountain.policy.tables import Strategy
    from webfountain.store.contract import FrontierStore

FASTEST = DAY / 96
SLOW = bucket_of(100 * DAY, FASTEST)
SOME = {bucket_of(days * DAY, FASTEST): 200 for days in (1, 4, 20, 100)}


@functools.cache
def made_once(strategy: Strategy, periods: int) -> Plan:
    return plan_of(census(SOME), strategy=strategy, periods=periods)


def some_plan(strategy: Strategy = "fountain", *, periods: int = 14, start: float = 100 * DAY) -> Plan:
    """For four kinds of pages, 200 each; the cycle from `start`."""
    return msgspec.structs.replace(made_once(strategy, periods), start=start)


def collection_with(*, rest: str = "", capacity: int | None = 100) -> Collection:
    return collection_of(
        ["http://one.example/"], rest=f"{rest}\ncapacity_pages_per_period = {capacity}" if capacity else rest
    )


def controller_of(*, rest: str = "", last: Plan | None = None) -> Controller:
    return Controller(collection_with(rest=rest), start=0.0, last=last)


def follower_of(*, recrawl: bool = True, rest: str = "", capacity: int | None = 100) -> tuple[PlanFollower, Metrics]:
    metrics = Metrics()
    collection = collection_with(rest=rest, capacity=capacity)
    return PlanFollower(collection, metrics=metrics, start=0.0, recrawl=recrawl), metrics


# ------------------------------------------------------------------------------------------------ when to plan


def test_the_census_is_asked_for_once_and_again_only_when_a_plan_came_or_failed() -> None:
    controller = controller_of(rest="periods = 4")
    assert controller.due() == DAY
    assert controller.census_since(0.9 * DAY) is None
    assert controller.census_since(DAY) == 1 - 4, "one cycle back"
    assert controller.due() == inf, "a plan is being made"
    assert controller.census_since(5 * DAY) is None
    controller.planned(None)
    assert controller.due() == 2 * DAY
    assert controller.census_since(5 * DAY) == 1
    controller.planned(some_plan(start=5 * DAY))
    assert controller.census_since(5.9 * DAY) is None


def test_plans_are_made_often_at_first_and_then_once_a_cycle() -> None:
    controller = controller_of(rest="periods = 6")
    planned_at = []
    for hour in range(24 * 30):
        if controller.census_since(hour / 24 * DAY) is not None:
            planned_at.append(hour // 24)
            controller.planned(msgspec.structs.replace(some_plan(periods=6), start=hour / 24 * DAY))
    assert planned_at == [1, 2, 4, 8, 14, 20, 26]


def test_after_a_plan_of_an_earlier_crawl_the_next_is_made_at_its_cycle_s_end() -> None:
    controller = controller_of(last=some_plan(start=0.0))
    assert controller.census_since(13.9 * DAY) is None
    assert controller.census_since(14 * DAY) is not None


def test_no_plan_is_made_from_a_handful_of_pages() -> None:
    controller = controller_of()
    assert controller.plan_from(census({100: 5})) is None
    assert controller.plan_from(census(SOME)) is not None


# -------------------------------------------------------------------------------------------- following a plan


def test_a_failed_plan_keeps_the_last_and_is_counted() -> None:
    follower, metrics = follower_of()
    follower.adopt(None)
    assert metrics.get("controller/plan_kept") == 0, "there was none to keep"
    follower.adopt(some_plan())
    plan, schedule = follower.plan, follower.schedule
    follower.adopt(None)
    assert (follower.plan, follower.schedule) == (plan, schedule)
    assert metrics.get("controller/plan_kept") == 1
    assert metrics.get("controller/plan_adopted") == 1


@pytest.mark.parametrize(("capacity", "recrawl", "kind"), [(None, True, BucketSchedule), (100, False, Schedule)])
def test_without_a_budget_or_without_recrawling_no_plan_is_followed(
    capacity: int | None, recrawl: bool, kind: type[Schedule]
) -> None:
    follower, _ = follower_of(capacity=capacity, recrawl=recrawl)
    assert follower.resume(encode_plan(some_plan())) is None
    assert type(follower.schedule) is kind
    assert not plans(collection_with(capacity=capacity), recrawl=recrawl)


@pytest.mark.parametrize(("strategy", "kind"), [("fountain", UrgencySchedule), (1, PlanSchedule), (3, PlanSchedule)])
def test_a_kept_plan_goes_on_if_it_is_of_this_policy(strategy: Strategy, kind: type[Schedule]) -> None:
    rest = f"strategy = {strategy!r}".replace("'", '"')
    follower, _ = follower_of(rest=rest)
    data = encode_plan(some_plan(strategy))
    assert follower.resume(data) == follower.plan == decode_plan(data)
    assert isinstance(follower.schedule, kind)


@pytest.mark.parametrize("data", [None, b"of another version"])
@pytest.mark.parametrize("strategy", ['"fountain"', "2"])
def test_a_plan_of_another_version_period_or_strategy_is_left(data: bytes | None, strategy: str) -> None:
    follower, _ = follower_of(rest=f"strategy = {strategy}")
    other = msgspec.structs.replace(some_plan("fountain" if "f" in strategy else 2), period=2 * DAY)
    for kept in (data, encode_plan(some_plan(1)), encode_plan(other)):
        assert follower.resume(kept) is None
    assert follower.plan is None
    assert isinstance(follower.schedule, BucketSchedule)


def test_whether_urgency_decides_reaches_the_schedule_in_force_and_the_next_whose_price_goes_on() -> None:
    follower, _ = follower_of()
    follower.hand_over(ranks=True, waiting=3)
    follower.adopt(some_plan())
    schedule = follower.schedule
    assert isinstance(schedule, UrgencySchedule)
    assert schedule.ranks
    follower.hand_over(ranks=False, waiting=0)
    assert not schedule.ranks
    schedule.correct(Spending(planned=10.0, unspent=5.0, waiting=0, starved=True))
    price = schedule.price
    follower.adopt(some_plan())
    assert follower.schedule is not schedule
    assert follower.schedule.price == price < some_plan().price


class Corrections(Schedule):
    """A schedule that only notes its corrections."""

    def __init__(self) -> None:
        self.noted: list[Spending] = []

    def correct(self, spending: Spending) -> None:
        self.noted.append(spending)


def test_fetches_left_unspent_ask_for_more_pages_to_be_due() -> None:
    follower, metrics = follower_of()
    follower.adopt(some_plan(start=10 * DAY))
    corrections = follower.schedule = Corrections()
    stretch = DAY / CHECKS_PER_PERIOD
    assert follower.check_at() == 10 * DAY + stretch
    assert not follower.check(10 * DAY + 0.9 * stretch)
    assert follower.check(10 * DAY + stretch) == 2, "two a check are planned, nothing was fetched"
    for _ in range(3):
        follower.count()
    assert not follower.check(10 * DAY + 2 * stretch)
    assert [spending.short for spending in corrections.noted] == [True, False]
    assert metrics.get("controller/corrected") == 1


def test_where_due_pages_cannot_be_fetched_no_more_are_asked_for() -> None:
    follower, metrics = follower_of()
    follower.adopt(some_plan(start=10 * DAY))
    follower.schedule = Corrections()
    assert not follower.check(10 * DAY + DAY / CHECKS_PER_PERIOD, starved=False)
    assert metrics.get("controller/corrected") == 0


def test_as_many_pages_are_missing_as_fetches_were_left_however_many_wait_that_cannot_be_had() -> None:
    """And the price comes down to what these are worth, not to nothing, which let in thousands of others."""
    follower, _ = follower_of()
    follower.hand_over(ranks=True, waiting=20, top=1e9, level=1e9)
    follower.adopt(some_plan(start=10 * DAY))
    stretch, price = DAY / CHECKS_PER_PERIOD, some_plan().price
    assert follower.missing() == 1, "more than three checks' worth wait"
    assert follower.check(10 * DAY + stretch) == 2
    assert follower.schedule.price is not None
    assert follower.schedule.price >= price, "no other is worth less than that, as far as is known"
    assert follower.missing() == 2
    follower.hand_over(ranks=True, waiting=20, top=1e9, level=0.9 * price)
    follower.check(10 * DAY + 2 * stretch)
    assert follower.schedule.price >= 0.9 * price
    follower.check(10 * DAY + 3 * stretch)
    assert follower.schedule.price == pytest.approx(0.9 * price)
    for _ in range(3):
        follower.count()
    follower.check(10 * DAY + 4 * stretch)
    assert follower.missing() == 1


def test_what_happened_before_a_plan_is_not_held_against_it() -> None:
    follower, metrics = follower_of()
    for _ in range(500):
        follower.count()
    follower.adopt(some_plan(start=10 * DAY))
    assert not follower.check(10 * DAY + 1.0)
    assert metrics.get("controller/corrected") == 0


# ---------------------------------------------------------------------------------------------- what is planned


def test_a_plan_at_ten_million_pages_spends_its_capacity() -> None:
    rng = np.random.default_rng(1)
    sizes = rng.multinomial(10_000_000, np.full(256, 1 / 256))
    taken = census({bucket: int(n) for bucket, n in enumerate(sizes)}, waiting=200_000, checked=0.02)
    plan = plan_of(taken, capacity_pages_per_period=500_000)
    assert (len(plan.buckets), plan.periods, len(plan.intervals)) == (256, 14, 256)
    for recrawl, fresh in zip(plan.recrawl, plan.fresh, strict=True):
        assert 0.99 * 500_000 <= recrawl + fresh <= 500_000


@pytest.mark.parametrize("strategy", ["fountain", 1, 2, 3])
def test_a_plan_spends_its_capacity_and_promises_what_oldest_first_keeps(strategy: Strategy) -> None:
    plan = plan_of(census(SOME, waiting=60), strategy=strategy)
    assert all(recrawl + fresh <= 100 for recrawl, fresh in zip(plan.recrawl, plan.fresh, strict=True))
    assert sum(plan.recrawl) + sum(plan.fresh) >= 14 * 99
    assert plan.forecast.pages[-1] == pytest.approx(800 + sum(plan.fresh), abs=5)
    assert all(
        0 <= obsolete <= known for obsolete, known in zip(plan.forecast.obsolete, plan.forecast.pages, strict=True)
    )
    clocks = plan.clocks()
    for row, bucket in enumerate(plan.buckets):
        gained = clocks.at(plan.end)[bucket] - clocks.at(plan.start)[bucket]
        assert gained * plan.pages[row] == pytest.approx(sum(quota[row] for quota in plan.quotas), rel=0.1, abs=20)


def test_fountain_s_intervals_spend_what_the_plan_gives_to_recrawling() -> None:
    plan = some_plan()
    spent = sum(n / plan.intervals[bucket] for n, bucket in zip(plan.pages, plan.buckets, strict=True))
    assert spent * 14 * DAY == pytest.approx(sum(plan.recrawl), rel=0.02)


def test_a_stale_collection_is_brought_down_first_then_held() -> None:
    assert plan_of(census({SLOW: 300}, age=100 * DAY, checked=0)).strategy == 2
    assert plan_of(census({SLOW: 300}, age=DAY, checked=0)).strategy == 3


def test_a_new_plan_goes_on_from_the_clocks_before() -> None:
    first = some_plan()
    second = plan_of(census(SOME, at=105 * DAY), clocks=first.clocks())
    for t in (101.0, 103.5, 105.0):
        assert np.allclose(second.clocks().at(t * DAY), first.clocks().at(t * DAY))


def test_seeds_are_no_rate_of_arrival() -> None:
    seeds = CensusRow(86, None, births=100_000)
    later = [CensusRow(day, None, births=30) for day in range(87, 100)]
    taken = census(SOME, rows=[seeds, *later])
    assert census_of(taken, cycle_of()).arrivals == pytest.approx(30.0)
    assert census_of(census(SOME, rows=[seeds]), cycle_of()).arrivals == 0.0


# -------------------------------------------------------------------------------------------------- in a crawl


def answers_of(web: GeneratedWeb, *, period: float, start: float) -> Web:
    """The generated web under the drive's clock: one period of the crawl is one of the web."""

    def answer(fetch: Fetch, at: float) -> Answer:
        base = site_of(fetch.url)
        found = web.respond(web.bases.index(base), fetch.url.removeprefix(base), (at - start) / period)
        headers = {"content-type": found.media_type}
        if found.location:
            headers["location"] = found.location
        if found.etag:
            headers["etag"] = f'"{found.etag}"'
            if fetch.etag == headers["etag"]:
                return (304, headers, b"", 0.02)
        return (found.status, headers, found.body, 0.02)

    return answer


def drive_of(
    web: GeneratedWeb, *, strategy: str = '"fountain"', capacity: int = 150, store: FrontierStore | None = None
) -> Drive:
    collection = collection_of(
        [f"{base}/" for base in web.bases], min_delay="0s", delay_factor=0, politeness="per_ip = false",
        rest=f"capacity_pages_per_period = {capacity}\nperiods = 7\nstrategy = {strategy}\n[change]\nmin_change = 0",
    )  # fmt: skip
    return Drive(collection, answers_of(web, period=DAY, start=1_000_000.0), store=store)


class CountingQueues(MemoryQueues):
    """Counts what is written to pages outside settling."""

    settled = advanced = 0

    def settle(
        self,
        outcomes: Sequence[Outcome],
        *,
        at: float,
        learned: Sequence[tuple[SiteLease, bytes]] = (),
        parts: Sequence[tuple[SiteLease, int, bytes]] = (),
    ) -> SettleResult:
        self.settled += len(outcomes)
        return super().settle(outcomes, at=at, learned=learned, parts=parts)

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        self.advanced += len(keys)
        return super().advance(site, keys, due=due, at=at)


class CountingStore(MemoryStore):
    queues: CountingQueues

    def __init__(self) -> None:
        super().__init__(period_s=DAY)
        self.queues = CountingQueues(self.table, self.census, self.changes)


@pytest.mark.untraced
def test_measured_constants_come_near_the_truth_and_a_plan_rewrites_no_queue() -> None:
    rates = ((0.4, 0.5), (0.6, 0.03))
    web = generated_web(3, sites=2, pages=90, body_bytes=1500, links=8, births=0, deaths=0, rates=rates,
                       sitemap_share=0)  # fmt: skip
    store = CountingStore()
    drive = drive_of(web, strategy="3", store=store, capacity=60)
    drive.run(seconds=30 * DAY)
    plan = drive.frontier.planner.follower.plan
    assert plan is not None
    assert drive.metrics.get("controller/plan_adopted") >= 6
    assert drive.metrics.get("controller/plan_kept") == 0
    # all writes to page records were settled fetches: a plan change touched none
    asked = len(drive.asked()) + drive.metrics.get("outcome/refused_by_robots") + drive.metrics.get("outcome/refused")
    assert store.queues.advanced == 0
    assert abs(store.queues.settled - asked) <= 2
    # changes per period and page, all buckets together, against the web's own rates
    measured = sum(n * rate for n, rate in zip(plan.pages, plan.rates, strict=True)) * DAY
    own = [web.rate(i, page.path) for i, site in enumerate(web.sites) for page in site.pages]
    assert measured == pytest.approx(sum(own), rel=0.25)
    slow = sum(n for n, bucket in zip(plan.pages, plan.buckets, strict=True) if interval_of(bucket, FASTEST) > 7 * DAY)
    assert slow == pytest.approx(0.6 * sum(plan.pages), rel=0.25), "two kinds of pages are told apart"
    assert 60 * 30 * 0.8 <= len(drive.asked()) <= 60 * 30 * 1.02


def test_census_rates_agree_with_the_counts_of_the_store() -> None:
    taken = census(SOME, periods=14)
    counted = census_of(taken, cycle_of())
    assert counted.fetches.tolist() == [200 * 0.2 * 14] * 4
    assert counted.mean_age == pytest.approx(3 * DAY)
    assert np.all(change_rates(counted, FASTEST) > 0)


def test_a_plan_survives_a_restart() -> None:
    web = generated_web(4, sites=1, pages=60, body_bytes=1500, links=8, births=0, deaths=0)
    drive = drive_of(web)
    drive.run(seconds=5 * DAY)
    plan = drive.frontier.planner.follower.plan
    assert plan is not None
    drive.run(seconds=DAY / 100)
    drive.frontier.close()
    again = Drive(drive.collection, drive.answer, store=drive.store, clock=drive.clock)
    assert again.frontier.planner.follower.plan == plan is not None
