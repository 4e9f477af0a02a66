"""The plan and the cost of a goal at the measured rate of fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.frontier.drive import Drive, collection_of
from webfountain.core.goals import Goal
from webfountain.errors import InputError
from webfountain.lab.measured_plan import goal_document, goal_of, goal_words, has_budget, measured_plan
from webfountain.policy.collection_file import CollectionInForce
from webfountain.store.contract import COLLECTION

if TYPE_CHECKING:
    from tests.frontier.drive import Answer
    from webfountain.records import Fetch

HOME = "http://home.example"
DAY = 86_400.0
BUDGET = 'strategy = "fountain"\ncapacity_pages_per_period = 9\n'


def web(fetch: Fetch, at: float) -> Answer:
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    links = "".join(f"<a href='/{n}'>x</a>" for n in range(60)) if fetch.url == f"{HOME}/" else f"day {at // DAY}"
    return 200, {"content-type": "text/html"}, links.encode(), 0.01


@pytest.fixture(scope="module")
def drive() -> Drive:
    """A crawl of ten days of 61 pages, most of which change every day."""
    driven = Drive(collection_of([f"{HOME}/"], delay_factor=0), web)
    driven.run(seconds=10 * DAY)
    return driven


def test_the_measured_rate_is_planned_from_the_census_and_called_so(drive: Drive) -> None:
    found = measured_plan(drive.store, at=drive.clock.now())
    assert found is not None
    fetches = sum(row.fetches for row in drive.store.census.rows(since=0))
    assert found["capacity"] == pytest.approx(fetches / 10, rel=0.15)
    assert not found["in_force"]
    assert found["words"].startswith("not in force, because no budget is set; with the measured rate of ")
    assert {period["recrawl"] + period["new"] for period in found["by_period"]} == {found["capacity"]}
    msgspec.json.encode(found)


def test_the_plan_for_the_measured_rate_is_not_stored_and_a_budget_has_its_own_plans(drive: Drive) -> None:
    assert drive.frontier.planner.follower.plan is None
    assert not has_budget(drive.store)
    before = drive.store.board.value(COLLECTION)
    assert before is not None
    drive.store.board.put_value(COLLECTION, CollectionInForce.encode(collection_of([f"{HOME}/"], rest=BUDGET)))
    assert has_budget(drive.store)
    drive.store.board.put_value(COLLECTION, before)


def test_too_few_copies_give_none() -> None:
    driven = Drive(collection_of([f"{HOME}/1"]), web)
    driven.run(seconds=60)
    assert measured_plan(driven.store, at=driven.clock.now()) is None


def test_a_goal_is_read_and_another_text_is_an_error() -> None:
    assert goal_of("obsolete=2%") == Goal(0.02)
    assert goal_of("older=7d:5%") == Goal(0.05, 7 * DAY)
    for text in ("obsolete=0%", "obsolete=2", "older=5%", "older=7x:5%", "fresh=2%", "obsolete=1.2.3%"):
        with pytest.raises(InputError, match="--goal"):
            goal_of(text)


def test_a_goal_that_is_nearly_held_costs_about_the_present_fetches(drive: Drive) -> None:
    at = drive.clock.now()
    now = goal_document(drive.store, Goal(0.5), at=at)
    assert now is not None
    held = goal_document(drive.store, Goal(now["share_now"]), at=at)
    assert held is not None
    assert held["fetches"] <= held["fetches_now"] * 1.01
    harder = goal_document(drive.store, Goal(now["share_now"] / 2), at=at)
    assert harder is not None
    assert harder["fetches"] > held["fetches"] > harder["fetches"] / 4
    assert harder["less_fetches"] == pytest.approx(0.9 * harder["fetches"])
    assert "would leave" in goal_words(harder)
    msgspec.json.encode(harder)


def test_without_measurements_there_is_no_answer() -> None:
    assert goal_document(Drive(collection_of([f"{HOME}/"]), web).store, Goal(0.1), at=DAY) is None
