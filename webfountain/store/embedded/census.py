"""The counts of the embedded store: count new URLs and fetches for the census, and return the counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.records import STATES
from webfountain.store.answers import Statistics
from webfountain.store.census_counting import CensusCounts, count_arrivals, count_outcome, period_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.records import CensusRow, Outcome, PageRecord
    from webfountain.store.answers import BucketCensus
    from webfountain.store.embedded.steps import Steps

__all__ = ["EmbeddedCensus"]


class EmbeddedCensus:
    """Implementation of `CensusReader` in the embedded store."""

    def __init__(self, steps: Steps, *, period_s: float, fastest_s: float) -> None:
        self.period_s = period_s
        self.fastest_s = fastest_s
        self._steps = steps

    def count_arrivals(self, births: int, at: float) -> None:
        """Count new URLs that were not found through links."""
        counted: CensusCounts = {}
        count_arrivals(counted, period_of(at, self.period_s), births)
        self._steps.counts.count(counted)

    def count_outcomes(self, settled: Iterable[tuple[PageRecord, Outcome]], at: float) -> None:
        """Count settled fetches. `settled` contains, for each fetch, the page's record before the fetch and the
        outcome.
        """
        counted: CensusCounts = {}
        period = period_of(at, self.period_s)
        for before, outcome in settled:
            count_outcome(counted, period, before, outcome)
        self._steps.counts.count(counted)

    def buckets(self) -> dict[int, BucketCensus]:
        return self._steps.counts.present().census()

    def rows(self, *, since: int) -> list[CensusRow]:
        """Return the census rows of period `since` and of later periods, by one short scan."""
        return self._steps.counts.present().census_rows(since)

    def statistics(self) -> Statistics:
        """Return the counts. A store opened for reading reports 0 leases, because leases are in the memory of the
        writing process.
        """
        steps, counts = self._steps, self._steps.counts.present()
        active = len(steps.sites.active_on_disk()) if steps.disk.read_only else len(steps.leases.active)
        return Statistics(
            pages=dict(zip(STATES, counts.pages, strict=True)),
            sites=counts.sites,
            active_sites=active,
            leased=len(self._steps.leases),
            immediate=counts.immediate - self._steps.leases.immediate_out,
            settle_lost=self._steps.leases.settle_lost,
            fenced=self._steps.leases.fenced,
        )
