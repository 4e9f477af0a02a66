"""A revision: one rule that changes all pages and sites of a store, while no process crawls.

A revision runs when a store is opened for writing. `UnitConversion` changes the unit of the bucket bytes
(`cycle.fastest`). `ClockCorrection` corrects times after a run whose clock was ahead. Each batch of changed pages is
written together with the position that the revision has reached. If the process is killed, the next process that opens
the store continues the revision.
"""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from webfountain.store.contract import FORECAST, PLAN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.records import PageRecord, SiteRecord, SiteState

__all__ = ["TOLERANCE_S", "ClockCorrection", "Revisable", "Revision", "UnitConversion", "revise", "seconds_ahead"]

PAGES_AT_ONCE: Final = 500
"""Number of pages that a revision replaces in one step."""
_SITES_AT_ONCE: Final = 100

TOLERANCE_S: Final = 60.0
"""Differences up to this many seconds between the clocks of two runs are ignored."""


class Revision(Protocol):
    """The rule by which a revision changes sites and pages."""

    @property
    def values(self) -> tuple[str, ...]:
        """Names of the published values that the revision makes meaningless."""
        ...

    @property
    def moves_sites(self) -> bool:
        """True if the revision also changes the records of sites, and deletes the numbered parts of their learned
        data."""
        ...

    def site(self, site: SiteRecord) -> SiteRecord:
        """Return the new record of a site, with other times, state or learned data."""
        ...

    def page(self, state: SiteState, record: PageRecord) -> PageRecord:
        """Return the new record of a page. The page state must stay the same."""
        ...


class Revisable(Protocol):
    """A store, or a part of it, whose sites and pages are being revised."""

    @property
    def place(self) -> tuple[str, bytes]:
        """The site that an interrupted revision had reached, and the key of the last processed page; ("", b"") at the
        start.
        """
        ...

    def get(self, site: str) -> SiteRecord | None:
        """Return a site, or None if it is unknown."""
        ...

    def after(self, name: str, n: int) -> list[SiteRecord]:
        """Return the next `n` sites after `name`, in order of name."""
        ...

    def keys(self, site: str, after: bytes, n: int) -> list[bytes]:
        """Return the keys of the next `n` pages of a site after the key `after`, in order."""
        ...

    def move(self, site: SiteRecord) -> None:
        """Replace a site's times, state and learned data by those of a record, and delete its numbered parts."""
        ...

    def replace(self, site: str, keys: Sequence[bytes], rule: Callable[[PageRecord], PageRecord]) -> None: ...


def revise(store: Revisable, revision: Revision) -> None:
    """Apply a revision to all sites and pages, in order of name and key, or continue an interrupted revision."""
    name, key = store.place
    begun = store.get(name) if name else None
    if begun is not None:
        _revise_pages(store, revision, begun, key)
    while found := store.after(name, _SITES_AT_ONCE):
        for site in found:
            if revision.moves_sites:
                store.move(revision.site(site))
            _revise_pages(store, revision, site, b"")
        name = found[-1].site


def _revise_pages(store: Revisable, revision: Revision, site: SiteRecord, after: bytes) -> None:
    while keys := store.keys(site.site, after, PAGES_AT_ONCE):
        store.replace(site.site, keys, partial(revision.page, site.state))
        after = keys[-1]


class UnitConversion:
    """Revision that converts the bucket bytes of all pages to another unit.

    A page's new bucket byte is computed from the history of its checks, as after a fetch. If a page has no history, the
    conversion keeps the page's mean change interval.

    Parameters
    ----------
    before_s, now_s : the mean change interval of bucket 0, s
    """

    values = (PLAN,)
    moves_sites = False

    def __init__(self, before_s: float, now_s: float) -> None:
        from webfountain.core.buckets import bucket_of, interval_of  # noqa: PLC0415  imports numpy, 0.1 s, only here
        from webfountain.core.change_rate import Prior, Totals, estimate_interval  # noqa: PLC0415

        interval = functools.cache(lambda bucket: interval_of(bucket, before_s))

        def converted(state: SiteState, record: PageRecord) -> PageRecord:
            if record.state == "never-crawled":  # its byte has no meaning yet
                return record
            believed = interval(record.bucket)
            if not record.history:
                return msgspec.structs.replace(record, bucket=bucket_of(believed, now_s))
            totals = Totals(record.checks, record.changes, (record.last_crawled or 0.0) - record.first_seen)
            prior = Prior(state.observed_time / state.changes if state.changes else believed)
            estimate = estimate_interval(record.history, totals=totals, prior=prior)
            return msgspec.structs.replace(record, bucket=bucket_of(estimate, now_s))

        self.page = converted

    def site(self, site: SiteRecord) -> SiteRecord:
        """Return the site unchanged."""
        return site


def seconds_ahead(latest: float | None, at: float) -> float:
    """Return how many seconds after `at` the latest write to a store was made. Differences of at most `TOLERANCE_S`
    count as 0."""
    ahead = 0.0 if latest is None else latest - at
    return ahead if ahead > TOLERANCE_S else 0.0


class ClockCorrection(msgspec.Struct, frozen=True):
    """Revision that corrects times after a run whose clock was ahead. Times of past events that are later than `at`
    become `at`. Due times after `at` become `ahead` seconds earlier."""

    at: float
    ahead: float
    values = (PLAN, FORECAST)
    moves_sites = True

    def site(self, site: SiteRecord) -> SiteRecord:
        """Return the record of a site with corrected times.

        What was learned about the site is deleted, because it contains times that the store cannot decode.
        """
        state = site.state
        return msgspec.structs.replace(
            site,
            first_seen=min(site.first_seen, self.at),
            due=self._sooner(site.due),
            state=msgspec.structs.replace(
                state,
                next_at=self._sooner(state.next_at),
                robots_at=self._past(state.robots_at),
                sitemaps=tuple((url, min(read, self.at)) for url, read in state.sitemaps),
            ),
            learned=b"",
            changed=min(site.changed, self.at),
        )

    def page(self, state: SiteState, record: PageRecord) -> PageRecord:
        """Return the record of a page with corrected times."""
        return msgspec.structs.replace(
            record,
            first_seen=min(record.first_seen, self.at),
            last_crawled=self._past(record.last_crawled),
            last_changed=self._past(record.last_changed),
            copied=self._past(record.copied),
            due=None if record.due is None else self._sooner(record.due),
        )

    def _past(self, time: float | None) -> float | None:
        return None if time is None else min(time, self.at)

    def _sooner(self, due: float) -> float:
        return max(self.at, due - self.ahead) if due > self.at else due
