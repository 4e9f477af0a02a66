"""Ends of leased pages that nobody examined."""

from __future__ import annotations

import msgspec

from tests.frontier.pages.test_examiner import DAY, crawled, fetched
from webfountain.frontier.visit import refused


def test_a_refused_page_keeps_what_is_known_of_it_and_backs_off() -> None:
    lease = fetched(crawled(failures=2)).fetch.lease
    assert lease is not None
    outcome = refused(lease, "refused_by_robots", "robots.txt", period_s=DAY, at=9 * DAY)
    assert (outcome.lease, outcome.kind) == (lease.id, "refused_by_robots")
    record = outcome.record
    assert (record.state, record.error, record.due) == ("refused", "robots.txt", 9 * DAY + 4 * DAY)
    assert msgspec.structs.replace(record, state="crawled", error=None, due=None, failures=2) == crawled(failures=2)
