"""The end of a crawl in words: what happened, and nothing that did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from webfountain.report.end_summary import places, summary

REPORT: dict[str, Any] = {
    "pages_fetched": 120,
    "new": 80,
    "changed": 10,
    "minor": 0,
    "same": 5,
    "not_modified": 20,
    "redirected": 2,
    "gone": 2,
    "failed": 1,
    "refused_by_robots": 0,
    "by_status": {"200": 95, "304": 20},
    "links_seen": 4000,
    "links_out_of_scope": 30,
    "urls_discovered": 85,
    "waiting": 0,
    "seconds": 60.0,
    "cpu_seconds": 0.6,
    "startup_seconds": 0.5,
    "peak_rss_bytes": 120_000_000,
    "sites": 5,
    "finish_reason": "idle",
}


def test_a_summary_says_what_was_found_and_leaves_zeros_out() -> None:
    text = summary(REPORT)
    assert "nothing is left to fetch, after 0:01:00" in text
    assert "120 pages of 5 sites, 2.0 pages/s, 5.0 ms of CPU per page" in text
    assert "80 new, 10 changed, 5 same, 20 not modified, 2 redirected, 2 gone, 1 failed" in text
    assert "200 95x, 304 20x" in text
    assert "robots" not in text
    assert "waiting" not in text


def test_what_waits_and_what_was_refused_is_reported() -> None:
    text = summary({**REPORT, "waiting": 7, "refused_by_robots": 3})
    assert "7 known URLs that cannot be fetched now" in text
    assert "7 known URLs not fetched yet" in summary({**REPORT, "waiting": 7, "finish_reason": "max_pages"})
    assert "3 by robots.txt" in text


def test_a_crawl_that_fetched_nothing_has_a_summary() -> None:
    nothing = {key: 0 for key in REPORT if isinstance(REPORT[key], int)}
    text = summary({**REPORT, **nothing, "seconds": 0.0, "by_status": {}, "finish_reason": "shutdown"})
    assert "stopped by a signal" in text
    assert "nothing" in text


def test_places_name_store_copies_and_commands() -> None:
    text = places(store="rocksdb://x", repository=Path("x/repository"), example="http://127.0.1.1/")
    assert "webfountain cat http://127.0.1.1/ --store rocksdb://x" in text
    assert "x/repository" in text
    assert "cat" not in places(store="rocksdb://x", repository=Path("y"), example=None)
