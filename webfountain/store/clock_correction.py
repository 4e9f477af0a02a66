"""Correct a store's times after a run whose clock was ahead.

Place in the walk: the opening of a store for writing. Each step stores the time of the latest one. If that is later
than now, the crawl would wait for times that its clock wrote by mistake. Restored backups and imports may contain such
times, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.store.contract import FORECAST, PLAN

if TYPE_CHECKING:
    from webfountain.records import PageRecord, SiteRecord, SiteState

__all__ = ["TOLERANCE_S", "ClockCorrection", "seconds_ahead"]

TOLERANCE_S: Final = 60.0
"""Difference of the clocks of two runs that is ignored, s."""


def seconds_ahead(latest: float | None, at: float) -> float:
    """Return by how many seconds the latest step of a store is later than `at`, or 0.0 within the tolerance."""
    ahead = 0.0 if latest is None else latest - at
    return ahead if ahead > TOLERANCE_S else 0.0


class ClockCorrection(msgspec.Struct, frozen=True):
    """The `Revision` that replaces past times after `at` by `at`, and moves due times after it `ahead` s earlier."""

    at: float
    ahead: float
    values = (PLAN, FORECAST)
    moves_sites = True

    def site(self, site: SiteRecord) -> SiteRecord:
        """Return a site whose delays end sooner.

        What was learned about it is deleted: the store cannot decode the times in it, and its reader would wait for
        them.
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
        """Return a record whose past times are at most `at`. The time of a delayed next attempt moves earlier."""
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
