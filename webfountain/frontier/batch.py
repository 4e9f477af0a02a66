"""A batch: work that the loop thread sends to the worker thread.

Events of the loop thread write into the open batch (`orders.OpenBatch`). The worker thread carries out one batch at a
time (`store_worker`), and the loop thread applies the `BatchResult`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

import msgspec

from webfountain.records import SiteState  # noqa: TC001  (msgspec reads the types of fields)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.frontier.inbox.blocks import UrlBlock
    from webfountain.frontier.inbox.notes import Letter, SlotReturn
    from webfountain.frontier.planning.schedule import Schedule
    from webfountain.frontier.sites.domain_shares import ShareSnapshot
    from webfountain.frontier.visit import Visit
    from webfountain.policy.collection import Collection
    from webfountain.records import (
        CensusRow,
        FetchResult,
        Lease,
        LeaseId,
        Link,
        Outcome,
        SiteLease,
        SiteRecord,
    )
    from webfountain.store.answers import BucketCensus, Claim, LeaseBatch, ParkRequest, Refill, Statistics

__all__ = [
    "Batch",
    "BatchResult",
    "CensusSnapshot",
    "LeaseEnd",
    "NamedSitemap",
    "ReadSitemap",
    "SavedSiteData",
    "remembered",
]


class LeaseEnd(msgspec.Struct, frozen=True):
    """The end of a lease: the page was examined, refused, or acknowledged by a spider.

    `visit` is set only for an examined page. `asked` is False if the page was not requested.
    """

    lease: Lease
    outcome: Outcome
    visit: Visit | None = None
    asked: bool = True


class NamedSitemap(msgspec.Struct, frozen=True):
    """A fetched sitemap, and the site that lists it."""

    site: str
    fetched: FetchResult


@dataclass(slots=True)
class Batch:
    """Work that is sent to the worker thread in one batch. All store calls of a batch get `at` as the current time."""

    at: float
    ended: list[LeaseEnd] = field(default_factory=list)
    offers: list[Link] = field(default_factory=list)
    sitemaps: list[NamedSitemap] = field(default_factory=list)
    answers: list[FetchResult] = field(default_factory=list)
    learned: dict[str, tuple[SiteLease, SiteState]] = field(default_factory=dict)
    parked: list[ParkRequest] = field(default_factory=list)
    released: list[LeaseId] = field(default_factory=list)
    renewals: list[SiteLease] = field(default_factory=list)
    refills: list[Refill] = field(default_factory=list)
    guests: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    """Names of the addresses that this ant wants to claim."""
    freed: dict[str, float] = field(default_factory=dict)
    """Names of claims to drop, each with the time from which other ants may claim the name."""
    letters: list[tuple[str, Letter]] = field(default_factory=list)
    """Letters to other ants, as (ant, letter)."""
    room: int = 0
    immediate: bool = False
    """True if some sites may have immediate URLs."""
    holds_sites: bool = True
    """True if this ant has an active site."""
    inbox: bool = False
    count: bool = True
    """True if the counts of a shared store must be read again."""
    tidy: bool = False
    rank: bool = False
    count_waiting: bool = False
    price: float | None = None
    """Price of a fetch, in seconds. A known page is fetched if the fetch shortens the expected time with an obsolete
    copy by at least the price. If the price is None, urgency does not decide which pages are fetched.
    """
    budget: float | None = None
    """Number of fetches per period that the plan allows all ants together; None without a plan."""
    missing: int = 0
    """Number of pages to make due, so that the crawl uses its whole budget."""
    rules: bool = True
    """True if this ant is the controller."""
    census_since: int | None = None
    plan: bytes | None = None
    shares: ShareSnapshot | None = None
    """For each domain, the used part of the domain's share of fetches."""
    limit: str | None = None
    """What limits the rate of fetches now, in words."""
    collection: Collection | None = None
    """An edited policy file."""
    schedule: Schedule | None = None
    """The schedule by which known pages become due."""
    hastened: bool = False
    """True if some pages were made due earlier, so that the stored due times of parked sites may be too late."""
    unfinished: bool = False
    """True if a stage has not finished its pass over the store, so that a batch must be sent even without other work.
    """

    def settle(self, lease: Lease, outcome: Outcome, visit: Visit | None = None) -> None:
        """Record that a lease ended after its page was requested."""
        self.ended.append(LeaseEnd(lease, outcome, visit))

    def refuse(self, lease: Lease, outcome: Outcome) -> None:
        """Record that a lease ended without a request for its page."""
        self.ended.append(LeaseEnd(lease, outcome, asked=False))

    def read_sitemap(self, fetched: FetchResult, *, of: str) -> None:
        """Add a fetched sitemap that the worker must read. `of` is the site whose robots.txt or sitemap index lists the
        sitemap.
        """
        self.sitemaps.append(NamedSitemap(of, fetched))

    def remember(self, lease: SiteLease, state: SiteState) -> None:
        """Save the state of an active site, so that the state survives a kill."""
        self.learned[lease.site] = (lease, state)

    def release(self, leases: Iterable[LeaseId]) -> None:
        """Give leases back to the store because their pages were not requested."""
        self.released += leases

    def park(self, parked: ParkRequest) -> None:
        """Add to the batch a site that leaves the active list."""
        self.learned.pop(parked.lease.site, None)
        self.parked.append(parked)

    def has_ends(self) -> bool:
        """Return whether the batch has leases to settle, links to discover, or sitemaps to read."""
        return bool(self.ended or self.offers or self.sitemaps)

    def is_needed(self) -> bool:
        """Return whether the batch contains any work."""
        news = (
            self.ended,
            self.offers,
            self.sitemaps,
            self.answers,
            self.learned,
            self.plan,
            self.collection,
        )
        sites = (self.parked, self.released, self.renewals, self.refills, self.guests, self.room)
        shared = (self.claims, self.freed, self.letters)
        chores = (self.inbox, self.tidy, self.rank, self.count_waiting, self.census_since is not None)
        passes = (self.hastened, self.unfinished)
        return any(news) or any(sites) or any(shared) or any(chores) or any(passes)


class SavedSiteData(msgspec.Struct, frozen=True, array_like=True):
    """The data to store with an active site: the urgencies of its pages, and its state if the state must survive a
    kill.
    """

    state: SiteState | None = None
    urgency: bytes = b""

    @classmethod
    def of(cls, record: SiteRecord) -> SavedSiteData:
        """Decode the data stored in a site's record."""
        return msgspec.msgpack.decode(record.learned, type=cls) if record.learned else cls()

    def encode(self) -> bytes:
        """Encode the data for `SiteRecord.learned`."""
        return msgspec.msgpack.encode(self)


class ReadSitemap(msgspec.Struct, frozen=True):
    """A sitemap that was read: the site that lists the sitemap, its URL, and the further sitemaps in it."""

    site: str
    url: str
    children: list[str]


class CensusSnapshot(msgspec.Struct, frozen=True):
    """Counts of the store's pages, from which a plan is made."""

    at: float
    buckets: dict[int, BucketCensus]
    rows: list[CensusRow]
    waiting: int
    found: float | None = None
    """Measured share of time for which copies were obsolete in the last complete cycle, or None."""


@dataclass(slots=True)
class BatchResult:
    """What the worker thread returns for a batch."""

    batch: Batch
    settled: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Number of settled leases, by site and token of the site lease."""
    known: list[Link] = field(default_factory=list)
    """Requests of a Scrapy project's spider that were already in the store."""
    new_pages: set[str] = field(default_factory=set)
    """Sites for which more pages can be leased, because URLs were added or made due."""
    hot: set[str] = field(default_factory=set)
    """Sites with new pages on the policy's topic."""
    hurried: set[str] = field(default_factory=set)
    """Sites with a known page that is so urgent that it must be fetched before pages that are already leased."""
    dealt: list[LeaseBatch] = field(default_factory=list)
    activated: list[SiteLease] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    """The claim on each address that this ant wanted to claim; another ant may be the owner."""
    renewed: list[SiteLease] = field(default_factory=list)
    returned: list[SlotReturn] = field(default_factory=list)
    """Letters by which other ants return slots that they borrowed from this ant."""
    lost: list[str] = field(default_factory=list)
    """Sites that another ant has taken over from this ant."""
    voided: frozenset[tuple[str, int]] = frozenset()
    """Site and token of each site lease that ended because the store's server lost data."""
    set_backs: int = 0
    """Number of known data losses of the store's server."""
    immediate: dict[str, list[Lease]] = field(default_factory=dict)
    immediate_left: bool = False
    guests: list[tuple[str, SiteRecord | None]] = field(default_factory=list)
    sitemaps: list[ReadSitemap] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    next_site_due: float | None = None
    never_crawled_due: float | None = None
    statistics: Statistics | None = None
    census: CensusSnapshot | None = None
    ranks: bool = False
    """True if known pages become due when they are urgent enough, rather than by a schedule."""
    is_paused: bool = False
    """True if a note has paused the crawl."""
    blocks: tuple[UrlBlock, ...] | None = None
    """The URL prefixes whose pages must not be fetched, or None if the inbox was not read."""
    is_drained: bool = False
    """True if a note tells this process to end."""
    lacks_room: bool = False
    """True if the disk with the copies has too little free space."""
    unfinished: bool = False
    """True if a stage must continue its pass over the store with the next batch."""
    waiting: int = 0
    """Number of unfetched pages that are due, or urgent enough to be made due."""
    top: float = inf
    """Upper bound of the urgencies of pages that are not due, in seconds."""
    level: float = 0.0
    """Urgency, in seconds, of the n-th most urgent page on sites where no page is due; n is `Batch.missing`."""


def remembered(record: SiteRecord) -> SiteState:
    """Return the newer of a site's two stored states: the state from its last parking, or the state in `learned`."""
    learned = SavedSiteData.of(record).state
    return record.state if learned is None else max(record.state, learned, key=lambda state: state.next_at)
