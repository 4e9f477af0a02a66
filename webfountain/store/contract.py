"""The store contract: where the frontier's URLs, queues, leases, sites and census live.

One Protocol, batch first. Times are arguments (UTC seconds); a store never reads a clock. `memory` is the
reference; `embedded` (RocksDB) is the default. A URL is always in exactly one place: a queue of its site,
the immediate queue, or a lease. Every step below is atomic: after a crash it has happened
wholly or not at all, and what a call returned is kept.

**The recrawl queue of a site** has lanes. A crawled page stands in the lane of its bucket (0..255), ordered by
`last_crawled`, oldest first. Two more lanes are ordered by an explicit time, `record.due`: ADVANCED holds
crawled pages that something made due (a sitemap, a sibling's change), RETRY holds gone, failed, refused and
redirected pages, and crawled ones whose last tries failed. What is due is not stored: a caller passes a
*horizon*, one time per lane, and a page is due when its order is not after its lane's horizon. So a change of plan
rewrites no queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webfountain.records import (
        CensusRow,
        Discovered,
        Lease,
        Link,
        Move,
        Outcome,
        PageRecord,
        Queue,
        Settled,
        SiteRecord,
        SiteState,
        State,
    )

__all__ = [
    "ADVANCED",
    "LANES",
    "RETRY",
    "RETRY_SHARE",
    "BucketCensus",
    "FrontierStore",
    "Parked",
    "Statistics",
    "lane_of",
    "order_of",
]

ADVANCED: Final = 256
RETRY: Final = 257
LANES: Final = 258
RETRY_SHARE: Final = 10
"""Of a recrawl lease of n at most max(1, n // RETRY_SHARE) come from RETRY while other lanes are due."""


def lane_of(record: PageRecord) -> int:
    """The recrawl lane of a page that was tried at least once."""
    if record.state != "crawled" or record.failures:
        return RETRY
    return record.bucket if record.due is None else ADVANCED


def order_of(record: PageRecord) -> float:
    """The page's place within its lane, earliest first: `last_crawled` in a bucket's lane, `due` in the two others."""
    order = record.last_crawled if record.due is None else record.due
    return 0.0 if order is None else order


class Parked(msgspec.Struct, frozen=True, gc=False):
    """A site that leaves an ant's active list: when to come back (inf: when a URL is discovered), what to remember."""

    site: str
    due: float
    state: SiteState


class BucketCensus(msgspec.Struct, frozen=True, gc=False):
    """Crawled pages of one bucket as they stand now: how many, and the sum of their `last_crawled` (mean age)."""

    pages: int
    sum_last_crawled: float


class Statistics(msgspec.Struct, frozen=True, gc=False):
    """A frozen snapshot: pages by state, sites, leases out, immediate URLs waiting, settles that came too late."""

    pages: Mapping[State, int]
    sites: int
    active_sites: int
    leased: int
    immediate: int
    settle_lost: int


class FrontierStore(Protocol):
    """The contract that every store keeps; `tests/store/test_contract.py` is its specification."""

    @property
    def period_s(self) -> float:
        """Length of a census period, s: period number p runs from p x period_s."""
        ...

    def discover(self, links: Sequence[Link], *, at: float) -> Discovered:
        """Make URLs known: each unknown one joins its site's never-crawled queue.

        Atomic for the batch. A link known before (also earlier in the batch) or forgotten (`forget`) has no
        effect and counts as known.
        The queue serves greatest importance first, then first come. An inactive site becomes due `at`.
        """
        ...

    def known(self, site: str, keys: Sequence[bytes]) -> list[bool]:
        """For each key of the site, whether it is known (or forgotten); no effect."""
        ...

    def immediate(self, links: Sequence[Link], *, at: float) -> int:
        """Put URLs on the immediate queue, in order, discovering the unknown; returns how many were put.

        A URL that is leased or already there is left out (it is about to be fetched). Atomic for the batch.
        """
        ...

    def lease(
        self,
        site: str,
        n: int,
        *,
        queue: Queue,
        owner: str,
        until: float,
        at: float,
        horizon: Sequence[float] | None = None,
    ) -> list[Lease]:
        """Up to `n` URLs of one queue of one site, to be settled before `until`.

        For "recrawl" `horizon` has LANES times and is required: ADVANCED first, then the bucket lanes by how
        long their page is overdue (horizon - order), RETRY at most a RETRY_SHARE'th while others are due. A URL
        on the immediate queue is not leased here.
        """
        ...

    def lease_immediate(self, n: int, *, owner: str, until: float, at: float) -> list[Lease]:
        """Up to `n` URLs of the immediate queue, in order, of any site."""
        ...

    def settle(self, outcomes: Sequence[Outcome], *, at: float) -> Settled:
        """End leases: each record replaces the page's and decides its lane (`lane_of`), the census counts it.

        Atomic for the batch. A token that is unknown, expired and reclaimed, or settled before has no effect and
        is counted as lost.
        """
        ...

    def release(self, tokens: Sequence[int]) -> None:
        """Give leases back unused: each URL returns to the queue and place it had. Unknown tokens have no effect."""
        ...

    def reclaim(self, *, at: float) -> int:
        """Return URLs and sites whose lease ran out at or before `at` to their queues; how many URLs."""
        ...

    def activate(self, n: int, *, owner: str, until: float, at: float) -> list[SiteRecord]:
        """Up to `n` inactive sites due at or before `at`, longest due first; active until parked or `until`."""
        ...

    def activate_site(self, site: str, *, owner: str, until: float, at: float) -> SiteRecord | None:
        """Make one known inactive site active, due or not (an immediate URL waits); None when unknown or active."""
        ...

    def park(self, parked: Sequence[Parked], *, at: float) -> None:
        """Take sites off the active list, atomically for the batch; one that is not active is left as it is.

        A site that got a new URL while it was active comes back at the earlier of `due` and that time, unless a
        never-crawled lease came back short since. One with leases out is due when they run out at the latest.
        """
        ...

    def next_site_due(self) -> float | None:
        """The earliest time at which an inactive site is due; None when none ever is."""
        ...

    def recrawl_due(self, site: str) -> list[tuple[int, float]]:
        """For each non-empty recrawl lane of the site its first order: (lane, time), unleased URLs only."""
        ...

    def advance(self, site: str, keys: Sequence[bytes], *, due: float, at: float) -> int:
        """Make crawled pages due at `due` (lane ADVANCED) unless they are sooner there or leased; how many moved."""
        ...

    def page(self, site: str, key: bytes) -> PageRecord | None:
        """The record of one URL, None when unknown."""
        ...

    def pages(self, *, site: str | None = None, state: State | None = None) -> Iterator[tuple[str, PageRecord]]:
        """(site, record) of every known URL, sites together; lazily, a consistent view is not promised."""
        ...

    def site(self, site: str) -> SiteRecord | None:
        """One site, None when unknown."""
        ...

    def sites(self, after: str, n: int) -> list[SiteRecord]:
        """Up to `n` sites whose name sorts after `after` ("" for the first), in order of name."""
        ...

    def census(self) -> dict[int, BucketCensus]:
        """Crawled pages now, by non-empty bucket."""
        ...

    def census_rows(self, *, since: int) -> list[CensusRow]:
        """What was counted in the periods numbered `since` and later; a period's number is floor(at / period)."""
        ...

    def copies(self) -> dict[int, int]:
        """WARC file number -> how many page records name it as home of their newest copy."""
        ...

    def relocate(self, moves: Sequence[Move]) -> int:
        """Let page records follow copies that moved, where they still name the old place; how many did. Atomic."""
        ...

    def plan(self) -> bytes | None:
        """The plan in force as `put_plan` wrote it, None before the first."""
        ...

    def put_plan(self, plan: bytes) -> None:
        """Replace the plan in force."""
        ...

    def forget(self, site: str, key: bytes | None = None, *, at: float) -> int:
        """Remove a page, or with no key a whole site, for good: links to it are refused from then on.

        Returns the number of records removed. Leases on them are lost. Forgetting what is unknown only bars it.
        """
        ...

    def statistics(self) -> Statistics:
        """A frozen snapshot of the counts, in constant time."""
        ...

    def close(self) -> None:
        """Write what is buffered and let go of files and locks. A second call has no effect."""
        ...
