"""Find earlier visits: the pages that an edited policy makes due before their present time.

Every crawled page is either in the lane of its bucket, where the schedule decides when it is due, or has an explicit
time because of the bounds of its policy (`within_policy`). An edit of `revisit` changes explicit times and creates new
ones. The review of an edited policy file reads all crawled pages; this module returns those to make due earlier, with
the time. It moves no page itself and postpones none: a page that may now wait longer is visited once more at its old
time.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.planning.schedule import within_policy
from webfountain.store.lanes import recrawl_place
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webfountain.frontier.planning.schedule import Schedule
    from webfountain.policy.tables import RevisitTable
    from webfountain.records import PageRecord

__all__ = ["earlier_visits"]

_ROUND_S: Final = 60.0
"""Times more than an hour away are rounded up to multiples of this, seconds, so that pages can be moved together."""
_HOUR_S: Final = 3600.0


def earlier_visits(
    records: Iterable[PageRecord],
    revisit_of: Callable[[str], RevisitTable],
    schedule: Schedule,
    *,
    site: str,
    at: float,
) -> dict[float, list[bytes]]:
    """Return the keys of a site's pages to make due earlier, grouped by their new time.

    `revisit_of` returns the bounds of a policy by its name. Duplicates have a time of their own and stay.
    """
    found: dict[float, list[bytes]] = {}
    for record in records:
        if record.state != "crawled" or record.failures or record.duplicate_of is not None:
            continue
        stands_at, wanted_at = (
            _due(each, schedule, site, at)
            for each in (record, _placed_anew(record, revisit_of(record.policy), schedule, site, at))
        )
        if wanted_at < stands_at and stands_at > at:
            found.setdefault(_rounded(wanted_at, at), []).append(fingerprint(record.url))
    return found


def _placed_anew(record: PageRecord, revisit: RevisitTable, schedule: Schedule, site: str, at: float) -> PageRecord:
    """Return the record as a fetch at its last visit would leave it under these bounds."""
    return within_policy(msgspec.structs.replace(record, due=None), revisit, schedule, site=site, at=at)


def _due(record: PageRecord, schedule: Schedule, site: str, at: float) -> float:
    [due] = schedule.due_times(site, [recrawl_place(record)], at)
    return due


def _rounded(due: float, at: float) -> float:
    if due <= at:
        return at
    return due if due - at < _HOUR_S else ceil(due / _ROUND_S) * _ROUND_S
