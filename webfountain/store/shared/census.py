"""The counts of the shared store: sums over its shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.records import STATES
from webfountain.store.answers import BucketCensus, Statistics
from webfountain.store.census_counting import MILLISECONDS, CensusCounts, rows_of
from webfountain.store.shared.scripts import pairs

if TYPE_CHECKING:
    from webfountain.records import CensusRow
    from webfountain.store.shared.scripts import Shards

__all__ = ["SharedCensus", "counted_rows"]


class SharedCensus:
    """Implementation of `CensusReader` in the shared store."""

    def __init__(self, shards: Shards, *, period_s: float, fastest_s: float) -> None:
        self.period_s = period_s
        self.fastest_s = fastest_s
        self._shards = shards

    def buckets(self) -> dict[int, BucketCensus]:
        """Return the number of crawled pages in each bucket, in one round trip."""
        sums: dict[int, list[int]] = {}
        for fields in self._shards.ask("HGETALL", "buckets"):
            for name, value in pairs(fields):
                sums.setdefault(int(name[:-1]), [0, 0])[name[-1:] == b"s"] += int(value)
        return {bucket: BucketCensus(n, total / MILLISECONDS) for bucket, (n, total) in sorted(sums.items()) if n}

    def rows(self, *, since: int) -> list[CensusRow]:
        """Return the counts of period `since` and of later periods, in one round trip."""
        return rows_of(item for item in counted_rows(self._shards).items() if item[0][0] >= since)

    def statistics(self) -> Statistics:
        """Return the counts, in one round trip."""
        sums: dict[str, int] = {}
        for fields in self._shards.ask("HGETALL", "counts"):
            for name, value in pairs(fields):
                sums[name.decode()] = sums.get(name.decode(), 0) + int(value)
        return Statistics(
            pages={state: sums.get(f"state{i}", 0) for i, state in enumerate(STATES)},
            sites=sums.get("sites", 0),
            active_sites=sums.get("active", 0),
            leased=sums.get("leased", 0),
            immediate=sums.get("immediate", 0),
            settle_lost=sums.get("settle_lost", 0),
            fenced=sums.get("fenced", 0),
        )


def counted_rows(shards: Shards) -> CensusCounts:
    """Return the sums of all census rows, in one round trip."""
    counted: CensusCounts = {}
    for fields in shards.ask("HGETALL", "rows"):
        for name, value in pairs(fields):
            period, bucket, column = name.decode().rsplit(":", 2)
            row = counted.setdefault((int(period), None if bucket == "-" else int(bucket)), [0.0] * 6)
            row[int(column)] += float(value)
    return counted
