"""After a run whose clock was ahead the crawl goes on with the right time, and says so."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.store.stores import PERIOD_S, SITE, active, crawled, lease, links, outcome
from webfountain.records import Outcome, SiteState
from webfountain.store.contract import PLAN, Parked
from webfountain.store.embedded import TOLERANCE_S, open_embedded

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.store.embedded.store import EmbeddedStore

NOW = 1_000_000.0
DAY = 86_400.0


def opened(folder: Path, at: float | None) -> EmbeddedStore:
    return open_embedded(folder, collection="tests", period_s=PERIOD_S, read_only=False, at=at)


def crawl_ahead(folder: Path, ahead: float) -> None:
    """Three pages: one crawled, one failed, one waiting; the site parked until its next request."""
    at = NOW + ahead
    store = opened(folder, None)
    store.discover(links(1, 2, 3), at=at)
    site = active(store)
    first, second = lease(store, site, 2)
    failed = msgspec.structs.replace(crawled(second.record, at), state="failed", failures=1, due=at + 500.0)
    store.settle([outcome(first, at), Outcome(second.id, "failed", failed)], at=at)
    state = SiteState(next_at=at + 5.0, robots_at=at, sitemaps=((f"{SITE}/s", at),))
    store.park([Parked(site, at + 50.0, state)], at=at)
    store.put_value(PLAN, b"of tomorrow")
    store.close()


@pytest.mark.parametrize("ahead", [DAY, 30 * DAY])
def test_times_of_a_run_whose_clock_was_ahead_are_clamped_and_said(
    tmp_path: Path, ahead: float, caplog: pytest.LogCaptureFixture
) -> None:
    """The corrected crawl asked nothing until then, without a word."""
    crawl_ahead(tmp_path, ahead)
    with caplog.at_level(logging.WARNING):
        store = opened(tmp_path, NOW)
    assert [message for message in caplog.messages if f"the clock was {ahead:.0f} s ahead" in message]
    store.check_valid()
    assert store.next_site_due() == NOW + 50.0
    (site,) = store.sites("", 9)
    assert site.first_seen == NOW
    assert site.state == SiteState(next_at=NOW + 5.0, robots_at=NOW, sitemaps=((f"{SITE}/s", NOW),))
    records = {record.state: record for _, record in store.pages()}
    assert records["crawled"].last_crawled == records["crawled"].copied == NOW
    assert records["failed"].due == NOW + 500.0
    assert store.census_rows(since=int(NOW // PERIOD_S) + 1) == []
    assert store.value(PLAN) is None
    store.close()
    caplog.clear()
    opened(tmp_path, NOW + 1.0).close()
    assert not caplog.messages, "said once"


def test_a_clock_that_went_on_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    crawl_ahead(tmp_path, 0.0)
    before = opened(tmp_path, None)
    kept = sorted(before.pages(), key=repr), before.sites("", 9), before.value(PLAN)
    before.close()
    for at in (NOW, NOW + DAY, NOW - TOLERANCE_S):
        store = opened(tmp_path, at)
        assert (sorted(store.pages(), key=repr), store.sites("", 9), store.value(PLAN)) == kept
        store.close()
    assert not caplog.messages
