"""Convert bucket bytes to another unit (`cycle.fastest`).

Place in the walk: when a store is opened with a time period or unit other than its own. The rule is the same for every
kind of store.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import msgspec

from webfountain.store.contract import PLAN

if TYPE_CHECKING:
    from webfountain.records import PageRecord, SiteRecord, SiteState

__all__ = ["UnitConversion"]


class UnitConversion:
    """The `Revision` that gives each page its byte in another unit.

    The history and the mean change interval of the site decide, as after a fetch. A page without a history keeps the
    interval of its old byte.

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
        """Return the site unchanged: it has no bucket."""
        return site
