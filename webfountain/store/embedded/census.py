"""The counts of the embedded store, in the form of the contract. This module also counts census rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.records import STATES
from webfountain.store.answers import Statistics
from webfountain.store.census_counting import CensusEntry, count_arrivals, count_outcome, period_of
from webfountain.store.embedded.counts import Counts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.records import CensusRow, Outcome, PageRecord
    from webfountain.store.answers import BucketCensus
    from webfountain.store.embedded.disk import Disk
    from webfountain.store.embedded.leases import Leases
    from webfountain.store.embedded.site_rows import SiteRows

__all__ = ["EmbeddedCensus"]


class EmbeddedCensus:
    """The `CensusReader` of the embedded store."""

    def __init__(
        self, disk: Disk, *, counts: Counts, sites: SiteRows, leases: Leases, period_s: float, fastest_s: float
    ) -> None:
        self.period_s = period_s
        self.fastest_s = fastest_s
        self._disk = disk
        self._counts = counts
        self._sites = sites
        self._leases = leases

    def count_arrivals(self, births: int, at: float) -> None:
        """Count new URLs that came from outside, not from links."""
        counted: CensusEntry = {}
        count_arrivals(counted, period_of(at, self.period_s), births)
        self._counts.count(counted)

    def count_outcomes(self, settled: Iterable[tuple[PageRecord, Outcome]], at: float) -> None:
        """Count settled fetches, each with the record before it."""
        counted: CensusEntry = {}
        period = period_of(at, self.period_s)
        for before, outcome in settled:
            count_outcome(counted, period, before, outcome)
        self._counts.count(counted)

    def counts(self) -> Counts:
        """Return the counts: those in memory or, in a store opened for reading, those that the writing process last
        wrote."""
        if not self._disk.read_only:
            return self._counts
        self._disk.refresh()
        return Counts(self._disk)

    def buckets(self) -> dict[int, BucketCensus]:
        """Return the crawled pages by bucket."""
        return self.counts().census()

    def rows(self, *, since: int) -> list[CensusRow]:
        """Return the census rows of the periods from `since`. One short scan."""
        return self.counts().census_rows(since)

    def statistics(self) -> Statistics:
        """Return the counts. Only the writing process can count leases; a reader reports 0."""
        counts = self.counts()
        active = len(self._sites.active_on_disk()) if self._disk.read_only else len(self._leases.active)
        return Statistics(
            pages=dict(zip(STATES, counts.pages, strict=True)),
            sites=counts.sites,
            active_sites=active,
            leased=len(self._leases),
            immediate=counts.immediate - self._leases.immediate_out,
            settle_lost=self._leases.settle_lost,
            fenced=self._leases.fenced,
        )
