"""The rules for counting fetches in census rows, which are the same in all stores.

The rows contain the measured constants of the model (DESIGN.md section 4). A fetch of a crawled page is counted under
the bucket that the page had before the fetch. The fetch of a page whose state is not "crawled" is counted under bucket
None. The first copy of a page is also counted as a birth, under the page's new bucket. A refused fetch is not counted,
because no request was sent to the site.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from webfountain.records import FETCHED, CensusRow, PageRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.records import Outcome

__all__ = [
    "MILLISECONDS",
    "CensusCounts",
    "count_arrivals",
    "count_outcome",
    "in_order",
    "last_crawled_ms",
    "period_of",
    "rows_of",
]

MILLISECONDS = 1000
"""Sums of times are stored in whole milliseconds, so that the order of addition does not change a sum."""

CensusCounts = dict[tuple[int, int | None], list[float]]
"""Maps (period, bucket) to a list: fetches, changes, seconds of fetching, new links, births, milliseconds between
checks.
"""


def period_of(at: float, period_s: float) -> int:
    """Return the number of the time period that contains `at`."""
    return math.floor(at / period_s)


def last_crawled_ms(record: PageRecord) -> int:
    """Return the record's `last_crawled` in whole milliseconds."""
    return round((record.last_crawled or 0.0) * MILLISECONDS)


def count_arrivals(counted: CensusCounts, period: int, births: int) -> None:
    """Count new URLs that were not found through links (the model's `nconst`)."""
    if births:
        _row(counted, period, None)[4] += births


def count_outcome(counted: CensusCounts, period: int, before: PageRecord, outcome: Outcome) -> None:
    """Count one settled fetch. `before` is the page's record before the fetch."""
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
    """Return the rows in order of period, then of bucket; bucket None comes first."""
    return [
        CensusRow(
            period, bucket, int(fetches), int(changes), seconds, int(links), int(births), observed_time / MILLISECONDS
        )
        for (period, bucket), (fetches, changes, seconds, links, births, observed_time) in in_order(counted)
    ]


def in_order(
    counted: Iterable[tuple[tuple[int, int | None], list[float]]],
) -> list[tuple[tuple[int, int | None], list[float]]]:
    return sorted(counted, key=lambda item: (item[0][0], -1 if item[0][1] is None else item[0][1]))


def _row(counted: CensusCounts, period: int, bucket: int | None) -> list[float]:
    return counted.setdefault((period, bucket), [0, 0, 0.0, 0, 0, 0])
