"""Where no budget is set `plan show` plans the rate that was measured, and says that nothing follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.frontier.drive import Drive, collection_of
from webfountain.policy.edits import CollectionInForce
from webfountain.report.measured_plan import has_budget, measured_plan
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
    assert found["words"].startswith("not in force, because no budget is set; with the measured rate, ")
    assert {period["recrawl"] + period["new"] for period in found["by_period"]} == {found["capacity"]}
    msgspec.json.encode(found)


def test_nothing_of_it_is_kept_and_a_budget_has_plans_of_its_own(drive: Drive) -> None:
    assert drive.frontier.plan is None
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
