"""The plan in force as data and in words; without a budget, a measured one; what a goal of freshness costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.store.stores import Queue, active
from tests.store.stores import lease as lease_of
from webfountain.core.forecast import Outlook
from webfountain.core.phases import Phases
from webfountain.errors import StoreVersion
from webfountain.frontier.planning.plan import Forecast, Plan, encode_plan, pack_phases
from webfountain.records import Link, Outcome
from webfountain.report.plan import (
    plan_in_force,
    plan_words,
)
from webfountain.store.contract import PLAN
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from webfountain.records import OutcomeKind

PERIOD_S = 10.0
START = 1000.0


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
