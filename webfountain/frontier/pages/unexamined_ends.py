"""End leased pages without an examination: pages that were refused, could not be written, or were ended by their
project.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import msgspec

from webfountain.frontier.planning.schedule import page_backoff
from webfountain.frontier.requests_by_url import REPLACED
from webfountain.records import Outcome

if TYPE_CHECKING:
    from webfountain.records import Lease, OutcomeKind, State

__all__ = ["acknowledged", "deferred", "refused", "unkept"]


def refused(lease: Lease, kind: OutcomeKind, error: str, *, period_s: float, at: float) -> Outcome:
    """Return the end of a leased page that may not be fetched because of robots.txt, an edited policy or a private
    address."""
    failures = lease.record.failures + 1
    due = at + page_backoff(failures, period=period_s)
    record = msgspec.structs.replace(lease.record, state="refused", error=error, failures=failures, due=due)
    return Outcome(lease.id, kind, record)


def deferred(lease: Lease, error: str, *, due: float) -> Outcome:
    """Return the end of a leased page that must not be fetched before `due`. Its copy stays."""
    record = lease.record
    state: State = "refused" if record.state == "never-crawled" else record.state
    record = msgspec.structs.replace(record, state=state, error=error, failures=max(1, record.failures), due=due)
    return Outcome(lease.id, "refused", record)


def unkept(lease: Lease, at: float, *, period_s: float) -> Outcome:
    """Return the end of a leased page for which nothing could be written, discovered or settled."""
    failures = lease.record.failures + 1
    due = at + page_backoff(failures, period=period_s)
    state: State = "failed" if lease.record.state == "never-crawled" else lease.record.state
    record = msgspec.structs.replace(lease.record, state=state, error="unkept", failures=failures, due=due)
    return Outcome(lease.id, "failed", record)


def acknowledged(lease: Lease, *, status: int | None, error: str | None, at: float, seconds: float = 0.0) -> Outcome:
    """Return the end of another project's request, or of a page of a site that was given up. It is not requested
    again.

    The error `REPLACED` means that there was an answer, which led to another request.
    """
    if error == REPLACED:
        record = msgspec.structs.replace(lease.record, state="crawled", status=status, error=error, last_crawled=at)
        return Outcome(lease.id, "new", msgspec.structs.replace(record, due=None), seconds)
    record = msgspec.structs.replace(
        lease.record,
        state="crawled" if error is None else "failed",
        status=status,
        error=error,
        last_crawled=at,
        due=None if error is None else inf,
    )
    return Outcome(lease.id, "new" if error is None else "failed", record, seconds)
