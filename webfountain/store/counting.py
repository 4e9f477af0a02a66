"""What the census counts: one rule for all stores, applied where a step is committed.

The rows are the measured constants of the model (DESIGN.md section 4). A check of a crawled page counts for
the bucket it was in; every other fetch counts for bucket None, and a first copy is a birth in its new bucket.
A refusal asked nothing of the site and counts nowhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from webfountain.records import FETCHED, CensusRow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.records import Outcome, PageRecord

__all__ = ["MILLISECONDS", "Counted", "count_arrivals", "count_outcome", "last_crawled_ms", "period_of", "rows_of"]

MILLISECONDS = 1000
"""Sums of times are kept as whole milliseconds: integers add up the same in any order and never drift."""

Counted = dict[tuple[int, int | None], list[float]]
"""(period, bucket) -> fetches, changes, seconds, links, births, milliseconds watched."""


def period_of(at: float, period_s: float) -> int:
    """The number of the time period that holds `at`."""
    return math.floor(at / period_s)


def last_crawled_ms(record: PageRecord) -> int:
    """The record's term in its bucket's sum of `last_crawled`, in whole milliseconds."""
    return round((record.last_crawled or 0.0) * MILLISECONDS)


def count_arrivals(counted: Counted, period: int, births: int) -> None:
    """Count never-seen URLs that came from outside (nconst of the model)."""
    if births:
        _row(counted, period, None)[4] += births


def count_outcome(counted: Counted, period: int, before: PageRecord, outcome: Outcome) -> None:
    """Count one settled fetch of a page whose record was `before`."""
    if outcome.kind not in FETCHED:
        return
    row = _row(counted, period, before.bucket if before.state == "crawled" else None)
    row[0] += 1
    row[1] += outcome.kind == "changed"
    row[2] += outcome.seconds
    row[3] += outcome.links_new
    if before.last_crawled is not None and outcome.record.last_crawled is not None and before.state == "crawled":
        row[5] += last_crawled_ms(outcome.record) - last_crawled_ms(before)
    if outcome.kind == "new":
        _row(counted, period, outcome.record.bucket)[4] += 1


def rows_of(counted: Iterable[tuple[tuple[int, int | None], list[float]]]) -> list[CensusRow]:
    """The rows in order of period, bucket None first."""
    ordered = sorted(counted, key=lambda item: (item[0][0], -1 if item[0][1] is None else item[0][1]))
    return [
        CensusRow(period, bucket, int(fetches), int(changes), seconds, int(links), int(births), watched / MILLISECONDS)
        for (period, bucket), (fetches, changes, seconds, links, births, watched) in ordered
    ]


def _row(counted: Counted, period: int, bucket: int | None) -> list[float]:
    return counted.setdefault((period, bucket), [0, 0, 0.0, 0, 0, 0])
