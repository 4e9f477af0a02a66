"""A policy's goal: the crawl holds the obsolete share that is asked for, with fewer fetches than its capacity."""

from __future__ import annotations

import random
from bisect import bisect
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Drive, collection_of
from tests.frontier.plans import DAY, census, cycle_of
from webfountain.core.goals import Goal
from webfountain.frontier.planning.make_plan import Aim, census_of, make_plan
from webfountain.frontier.planning.plan import Bounds, GoalCost, Plan, decode_plan, encode_plan
from webfountain.report.plan import aim_words, plan_in_force

if TYPE_CHECKING:
    from tests.frontier.drive import Answer
    from webfountain.records import Fetch

HOME = "http://home.example"
PAGES, CAPACITY, LASTS = 60, 40, 20 * DAY
START = 1_000_000.0


class ChangingWeb:
    """A home page and others, each of which changes by a Poisson process, once in `LASTS` seconds in the mean."""

    def __init__(self) -> None:
        rng = random.Random(3)
        self.changes = [[START] for _ in range(PAGES)]
        for times in self.changes:
            while times[-1] < START + 120 * DAY:
                times.append(times[-1] + rng.expovariate(1 / LASTS))

    def version(self, page: int, at: float) -> int:
        return bisect(self.changes[page], at)

    def __call__(self, fetch: Fetch, at: float) -> Answer:
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        name = fetch.url.rpartition("/")[2]
        links = "".join(f"<a href='/{n}'>x</a>" for n in range(PAGES))
        body = f"version {self.version(int(name), at)}" if name else links
        return 200, {"content-type": "text/html"}, body.encode(), 0.01


def crawled(rest: str) -> tuple[float, float, Drive]:
    """Fetches of a day and obsolete share over the last three weeks of twelve, at noon of each day."""
    web = ChangingWeb()
    budget = f"capacity_pages_per_period = {CAPACITY}\n[change]\nmin_change = 0\n{rest}"
    drive = Drive(collection_of([f"{HOME}/"], delay_factor=0, rest=budget), web)
    drive.run(seconds=63 * DAY)
    made, obsolete = len(drive.log), 0
    for _ in range(21):
        drive.run(seconds=DAY)
        last = {int(name): at for at, _, url in drive.log if (name := url.rpartition("/")[2]).isdigit()}
        now = drive.clock.now()
        obsolete += sum(web.version(page, now) != web.version(page, last[page]) for page in range(PAGES))
    return (len(drive.log) - made) / 21, obsolete / (21 * PAGES), drive


def test_a_goal_is_held_with_the_fetches_that_it_takes() -> None:
    fetches, share, drive = crawled("[goal]\nobsolete = 0.2\n")
    assert fetches < CAPACITY / 2, "pages that change in twenty days need a visit in nine or so"
    assert share == pytest.approx(0.2, abs=0.07)
    shown = plan_in_force(drive.store, at=drive.clock.now())
    assert shown is not None
    assert shown["goal"]["share"] == 0.2
    assert shown["goal"]["words"].startswith("the goal of at most 20.00% obsolete takes ")


def test_without_a_goal_the_whole_capacity_is_used() -> None:
    fetches, share, drive = crawled("")
    assert fetches == pytest.approx(CAPACITY, rel=0.05)
    assert share < 0.12
    shown = plan_in_force(drive.store, at=drive.clock.now())
    assert shown is not None
    assert shown["goal"] is None


def plan_for(goal: Goal, *, found: float | None = None, last: GoalCost | None = None, capacity: int = 500) -> Plan:
    taken = census({40: 200, 120: 300})
    cycle = cycle_of(capacity_pages_per_period=capacity)
    counted = replace(census_of(taken, cycle), found=found)
    return make_plan(counted, at=taken.at, cycle=cycle, bounds=Bounds(), clocks=None, aim=Aim(goal, last))


def cost_in(plan: Plan) -> GoalCost:
    assert plan.goal is not None
    return plan.goal


def test_a_plan_has_the_fetches_of_its_goal_and_no_more() -> None:
    loose, hard = plan_for(Goal(0.3)), plan_for(Goal(0.1))
    assert cost_in(loose).planned < cost_in(hard).planned
    for plan in (loose, hard):
        assert max(plan.recrawl) <= cost_in(plan).planned + 1
        assert cost_in(plan).less_share > cost_in(plan).expected
        assert [sum(row) for row in plan.quotas] == list(plan.recrawl)
        assert decode_plan(encode_plan(plan)) == plan


def test_a_goal_beyond_the_capacity_uses_all_of_it_and_says_so() -> None:
    plan = plan_for(Goal(0.001), capacity=100)
    assert cost_in(plan).planned == pytest.approx(100, abs=1)
    assert "the capacity allows " in aim_words(cost_in(plan))


def test_what_was_found_corrects_the_goal_by_half_at_each_plan() -> None:
    first = cost_in(plan_for(Goal(0.2)))
    assert first.correction == 1.0
    measured = cost_in(plan_for(Goal(0.2), found=0.3)).correction
    assert measured != pytest.approx(1.0, rel=0.2)
    assert cost_in(plan_for(Goal(0.2), found=0.3, last=first)).correction == pytest.approx(measured**0.5)
