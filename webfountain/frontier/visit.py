"""A visit: one fetch on its way from the hand to the store, with what was read from its body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import msgspec

from webfountain.formats.document import ReadError
from webfountain.metrics import observed
from webfountain.records import Link, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.records import Fetch, FetchResult, OutcomeKind, PageRecord

__all__ = ["NOTHING", "PageContent", "Visit", "counts_of", "leased"]

_UNREADABLE: frozenset[str] = frozenset({*get_args(ReadError), "crashed"})

_ITEMS = frozenset({"new", "changed", "gone"})


class PageContent(msgspec.Struct, frozen=True):
    """The content of a body: its title, its visible text, its links, and counts of
    the links that the policy refused.
    """

    title: str | None = None
    text: str = ""
    links: tuple[Link, ...] = ()
    links_seen: int = 0
    refused: Mapping[str, int] = {}
    canonical: str | None = None
    """URL that the page names as its canonical form, if it is not its own."""
    nofollow: tuple[Link, ...] = ()
    """The links that the page marks as nofollow. This field and the next are for the link log, if there is one."""
    unfollowed: tuple[Link, ...] = ()
    """The links that the policy refused."""


NOTHING = PageContent()


class Visit(msgspec.Struct, frozen=True):
    """The end of one leased fetch: all that must be written, reported and stored.

    `record` is the page's new record without `copy`, which the repository sets. `observed_time` is the time in seconds
    since the previous check (0 if there was none). Three fields are for the change log: `resemblance` and `diff` (if
    the collection requests one) compare the text of the new copy with the old one; `target` is the target of a
    redirect.
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
    """The site that replaces a seed's site in scope, because the seed redirects there (`policy.scope`)."""

    @property
    def fetch(self) -> Fetch:
        """The fetch that ended."""
        return self.fetched.fetch

    @property
    def outcome(self) -> Outcome:
        """The outcome for the store, without the copy and the number of new links."""
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
        """Return the item that the spider yields: a plain item for each new, changed or gone page, None for all
        others.

        A page that was already gone yields no item.
        """
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
    """Return the page record that a fetch carries."""
    assert fetch.lease is not None, f"{fetch.url} was fetched without a lease"
    return fetch.lease.record
