"""A visit: a finished fetch on its way to the store, with what was read from its body.

A lease that ends without an examined page has only an `Outcome` (`refused`, `deferred`, `put_off`, `unkept`,
`acknowledged`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from webfountain.formats.document import ReadError
from webfountain.frontier.planning.schedule import page_backoff
from webfountain.frontier.requests_by_url import REPLACED
from webfountain.metrics import observed
from webfountain.records import Link, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.records import Fetch, FetchResult, Lease, OutcomeKind, PageRecord, State

__all__ = [
    "NOTHING",
    "PageContent",
    "Visit",
    "acknowledged",
    "counts_of",
    "deferred",
    "leased",
    "put_off",
    "refused",
    "unkept",
]

_UNREADABLE: frozenset[str] = frozenset({*get_args(ReadError), "crashed"})
_ITEMS = frozenset({"new", "changed", "gone"})


class PageContent(msgspec.Struct, frozen=True):
    """The content of a body: title, visible text, links, and counts of the links that the policy refused."""

    title: str | None = None
    text: str = ""
    links: tuple[Link, ...] = ()
    links_seen: int = 0
    refused: Mapping[str, int] = {}
    canonical: str | None = None
    """URL that the page declares to be its canonical form, if it is another URL."""
    nofollow: tuple[Link, ...] = ()
    """The links that the page marks as nofollow, for the link log."""
    unfollowed: tuple[Link, ...] = ()
    """The links that the policy refused, for the link log."""


NOTHING = PageContent()


class Visit(msgspec.Struct, frozen=True):
    """One examined fetch: everything that must be written, reported and stored.

    `record` is the page's new record, to which the repository later adds `copy`. `observed_time` is the time since the
    previous check, in seconds, or 0 if there was none. For the change log, `resemblance` and `diff` compare the text of
    the new copy with that of the old copy. `target` is the URL to which the page redirects.
    """

    fetched: FetchResult
    kind: OutcomeKind
    record: PageRecord
    reading: PageContent = NOTHING
    observed_time: float = 0.0
    resemblance: float | None = None
    diff: str | None = None
    target: str | None = None
    form: str | None = None
    """The site to which a seed redirects; the scope of the crawl treats this site like the seed's own site
    (`policy.scope`).
    """

    @property
    def fetch(self) -> Fetch:
        """The fetch that led to this visit."""
        return self.fetched.fetch

    @property
    def outcome(self) -> Outcome:
        """The outcome to store, still without the copy and the number of new links."""
        lease = self.fetched.fetch.lease
        assert lease is not None
        return Outcome(
            lease.id,
            self.kind,
            self.record,
            self.fetched.seconds,
            title=self.reading.title,
            resemblance=self.resemblance,
            target=self.target,
            diff=self.diff,
        )

    def item(self) -> dict[str, Any] | None:
        """Return the item that the spider yields for a new, changed or newly gone page, or None."""
        if self.kind not in _ITEMS or (self.kind == "gone" and leased(self.fetch).state == "gone"):
            return None
        record = self.record
        return {
            "url": record.url,
            "site": self.fetch.site,
            "verdict": self.kind,
            "fetched": self.fetched.at,
            "status": record.status,
            "depth": record.depth,
            "digest": None if self.kind == "gone" else record.digest,
            "title": self.reading.title,
            "text": self.reading.text,
        }


def counts_of(visit: Visit) -> dict[str, float]:
    """Return the counts of a visit for the stats, by name."""
    fetched = visit.fetched
    counts: dict[str, float] = {
        f"outcome/{visit.kind}": 1,
        "fetch/bytes": len(fetched.body),
        "fetch/seconds": fetched.seconds,
        **observed("fetch/duration", fetched.seconds),
        "links/seen": visit.reading.links_seen,
        **visit.reading.refused,
    }
    if visit.form is not None:
        counts["seeds/moved"] = 1
    if visit.record.hint is not None:
        counts[f"pages/hint/{visit.record.hint}"] = 1
    if fetched.status is not None:
        counts[f"fetch/status/{fetched.status}"] = 1
    if fetched.error is not None or visit.record.error in _UNREADABLE:
        counts[f"fetch/error/{visit.record.error}"] = 1
    if visit.kind in ("changed", "minor"):
        counts["change/compared"] = 1
    return counts


def leased(fetch: Fetch) -> PageRecord:
    """Return the page record in a fetch's lease."""
    assert fetch.lease is not None, f"{fetch.url} was fetched without a lease"
    return fetch.lease.record


def refused(lease: Lease, kind: OutcomeKind, error: str, *, period_s: float, at: float) -> Outcome:
    """Return the outcome of a page that must not be fetched because of robots.txt, an edited policy or a private
    address.
    """
    failures = lease.record.failures + 1
    due = at + page_backoff(failures, period=period_s)
    record = msgspec.structs.replace(lease.record, state="refused", error=error, failures=failures, due=due)
    return Outcome(lease.id, kind, record)


def deferred(lease: Lease, error: str, *, due: float) -> Outcome:
    """Return the outcome of a page that must not be fetched before `due`. A stored copy of the page is kept."""
    record = lease.record
    state: State = "refused" if record.state == "never-crawled" else record.state
    record = msgspec.structs.replace(record, state=state, error=error, failures=max(1, record.failures), due=due)
    return Outcome(lease.id, "refused", record)


def put_off(lease: Lease, *, due: float) -> Outcome:
    """Return the outcome of a leased page that is not worth a fetch before `due`. Only the due time in the page's
    record changes.
    """
    return Outcome(lease.id, "refused", msgspec.structs.replace(lease.record, due=due))


def unkept(lease: Lease, at: float, *, period_s: float) -> Outcome:
    """Return the outcome of a visit that could not be stored because of an unexpected error."""
    failures = lease.record.failures + 1
    due = at + page_backoff(failures, period=period_s)
    state: State = "failed" if lease.record.state == "never-crawled" else lease.record.state
    record = msgspec.structs.replace(lease.record, state=state, error="unkept", failures=failures, due=due)
    return Outcome(lease.id, "failed", record)


def acknowledged(
    lease: Lease,
    *,
    status: int | None,
    error: str | None,
    at: float,
    seconds: float = 0.0,
    due: float | None = None,
) -> Outcome:
    """Return the outcome of a request whose answer is not examined: a Scrapy project's spider handled the answer, or
    the site was given up.

    An acknowledged request is sent again at `due`, or as the store decides; a failed request is not sent again without
    `due`. The error `REPLACED` means that a retry or redirect replaced the request.
    """
    is_failed = error not in (None, REPLACED)
    record = msgspec.structs.replace(
        lease.record,
        state="failed" if is_failed else "crawled",
        status=status,
        error=error,
        last_crawled=at,
        due=inf if is_failed and due is None else due,
    )
    return Outcome(lease.id, "failed" if is_failed else "new", record, seconds)
