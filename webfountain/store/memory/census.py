"""The counts of the reference store. Only census rows are stored; other counts are computed on request."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from webfountain.records import STATES
from webfountain.store.answers import BucketCensus, Statistics
from webfountain.store.census_counting import (
    MILLISECONDS,
    CensusCounts,
    count_arrivals,
    count_outcome,
    last_crawled_ms,
    period_of,
    rows_of,
)

if TYPE_CHECKING:
    from webfountain.records import CensusRow, Outcome, PageRecord
    from webfountain.store.memory.sites import MemorySites

__all__ = ["MemoryCensus"]

_STATE: Final = attrgetter("state")


class MemoryCensus:
    """Implementation of `CensusReader` in the reference store; it also counts fetches and new URLs."""

    def __init__(self, sites: MemorySites, *, period_s: float, fastest_s: float) -> None:
        self.period_s = period_s
        self.fastest_s = fastest_s
        self.counted: CensusCounts = {}
        self._sites = sites
        self._lost = 0

    def count_arrivals(self, births: int, at: float) -> None:
        count_arrivals(self.counted, period_of(at, self.period_s), births)

    def count_outcome(self, before: PageRecord, outcome: Outcome, at: float) -> None:
        count_outcome(self.counted, period_of(at, self.period_s), before, outcome)

    def count_lost(self, outcomes: int) -> None:
        self._lost += outcomes

    def buckets(self) -> dict[int, BucketCensus]:
        sums: dict[int, tuple[int, int]] = {}
        for home in self._sites:
            for record in home.pages.values():
                if record.state == "crawled":
                    pages, total = sums.get(record.bucket, (0, 0))
                    sums[record.bucket] = pages + 1, total + last_crawled_ms(record)
        return {bucket: BucketCensus(n, total / MILLISECONDS) for bucket, (n, total) in sorted(sums.items())}

    def rows(self, *, since: int) -> list[CensusRow]:
        return rows_of(item for item in self.counted.items() if item[0][0] >= since)

    def statistics(self) -> Statistics:
        """Return the counts, in linear time."""
        homes, pages = list(self._sites), Counter(dict.fromkeys(STATES, 0))
        for home in homes:
            pages.update(map(_STATE, home.pages.values()))
        return Statistics(
            pages=dict(pages),
            sites=len(homes),
            active_sites=sum(home.holder is not None for home in homes),
            leased=sum(len(home.leases) for home in homes),
            immediate=sum(len(home.first_immediate(len(home.pages))) for home in homes),
            settle_lost=self._lost,
            fenced=self._sites.fenced,
        )
