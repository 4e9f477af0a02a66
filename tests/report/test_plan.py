"""The plan in force as data and in words; without a budget, a measured one; what a goal of freshness costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.frontier.drive import Drive, collection_of
from tests.store.stores import Queue, active
from tests.store.stores import lease as lease_of
from webfountain.core.forecast import Outlook
from webfountain.core.goals import Goal
from webfountain.core.phases import Phases
from webfountain.errors import InputError, StoreVersion
from webfountain.frontier.planning.plan import Forecast, Plan, encode_plan, pack_phases
from webfountain.policy.collection_file import CollectionInForce
from webfountain.records import Link, Outcome
from webfountain.report.plan import (
    goal_document,
    goal_of,
    goal_words,
    has_budget,
    measured_plan,
    plan_in_force,
    plan_words,
)
from webfountain.store.contract import COLLECTION, PLAN
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from tests.frontier.drive import Answer
    from webfountain.records import Fetch, OutcomeKind

PERIOD_S = 10.0
START = 1000.0
HOME = "http://home.example"
DAY = 86_400.0
BUDGET = 'strategy = "fountain"\ncapacity_pages_per_period = 9\n'


def a_plan(*, fountain: bool = True) -> Plan:
    """Two periods; the second expects 5 of 100 pages to be obsolete at its end."""
    import numpy as np

    phases = Phases(np.array([START]), np.zeros((1, 256)), np.zeros(256), np.zeros(256))
    fields = {
        "start": START,
        "period": PERIOD_S,
        "strategy": 3,
        "fountain": fountain,
        "weights": (0.5, 0.25),
        "recrawl": (7, 9),
        "fresh": (7, 3),
        "buckets": (10, 20),
        "pages": (60.0, 40.0),
        "rates": (0.1, 0.01),
        "quotas": ((4, 3), (5, 4)),
        "forecast": Forecast((9.0, 6.0), (8.0, 5.0), (3.0, 0.0), (97.0, 100.0)),
        "objective": 12.0,
        "bound": 11.5,
        "gap": 0.04,
        "message": "found by calendars",
        "seconds": 0.3,
        "price": 1.0,
        "intervals": tuple(1.0 for _ in range(256)),
        "phases": pack_phases(phases),
    }
    return msgspec.convert(fields, Plan)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(period_s=PERIOD_S)


def settle(store: MemoryStore, url: str, kind: OutcomeKind, *, at: float, queue: Queue) -> None:
    """One fetch of a page with this outcome."""
    site = site_of(url)
    (lease,) = lease_of(store, active(store, site, until=at), 1, queue=queue)
    record = msgspec.structs.replace(lease.record, state="crawled", bucket=10, last_crawled=at)
    store.queues.settle([Outcome(lease.id, kind, record, 0.1, 0)], at=at)


def test_a_store_without_a_plan_has_none(store: MemoryStore) -> None:
    assert plan_in_force(store, at=START) is None


def test_a_plan_stands_beside_what_happened_in_its_periods(store: MemoryStore) -> None:
    """One first fetch in period 1, one check that found a change in period 2; what came before does not count."""
    store.board.put_value(PLAN, encode_plan(a_plan()))
    for url, at in (("https://a.org/", START - 5), ("https://b.org/", START + 2)):
        store.queues.discover([Link(url=url, site=site_of(url), key=fingerprint(url))], at=at)
        settle(store, url, "new", at=at, queue="never-crawled")
    settle(store, "https://b.org/", "changed", at=START + 13, queue="recrawl")
    document = plan_in_force(store, at=START + 15)
    assert document is not None
    assert document["period"] == 2
    assert document["end"] == START + 20
    first, second = document["by_period"]
    assert (first["crawled_new"], first["recrawled"], first["changes"]) == (1, 0, 0)
    assert (second["crawled_new"], second["recrawled"], second["changes"]) == (0, 1, 1)
    assert (second["recrawl"], second["new"], second["obsolete"]) == (9, 3, 6.0)
    msgspec.json.encode(document)


def test_a_plan_in_words_names_strategy_period_and_prediction() -> None:
    assert plan_words(a_plan(), at=START + 15) == "fountain, period 2 of 2", "which it does not do from rates"
    assert plan_words(a_plan(fountain=False), at=START + 15).endswith(
        "period 2 of 2, forecasts 5.0% obsolete pages at its end"
    )
    printed = plan_words(a_plan(), at=START + 15, foretold=Outlook(0.03, 0.01, 0.08, 12, 0.04))
    assert printed.endswith(
        "forecasts 3.0% obsolete pages in its cycle (1.0% to 8.0% with a probability of 80 %, from 12 cycles)"
    )
    first = plan_words(a_plan(), at=START, foretold=Outlook(0.03, 0.01, 0.08, 0, 0.04))
    assert first.endswith("(1.0% to 8.0% with a probability of 80 %, before the first whole cycle)")
    assert plan_words(a_plan(fountain=False), at=START).startswith("strategy 3, period 1 of 2")


def test_a_plan_of_another_version_is_refused_with_its_reason(store: MemoryStore) -> None:
    store.board.put_value(PLAN, msgspec.msgpack.encode({"start": 1}))
    with pytest.raises(StoreVersion, match="another version"):
        plan_in_force(store, at=START)


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
