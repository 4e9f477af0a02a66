"""A batch: work that the loop thread sends to the worker thread. Only one batch is with the worker at a time.

Events of the loop thread write into the open batch (`orders.OpenBatch`). The worker thread carries it out
(`store_worker`). The loop thread applies the `BatchResult`. This module makes no decisions.
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
    """The end of a lease on its way to the store: the page was examined, refused, or acknowledged by a spider.

    `visit` is set for an examined page: it has a body to write and links to discover. `asked` is True if the fetch was
    handed out. If it is False, the spider that yielded the request does not know yet that the request has ended.
    """

    lease: Lease
    outcome: Outcome
    visit: Visit | None = None
    asked: bool = True


class NamedSitemap(msgspec.Struct, frozen=True):
    """A fetched sitemap, and the site that named it."""

    site: str
    fetched: FetchResult


@dataclass(slots=True)
class Batch:
    """Work for the worker thread. `at` is the time of all its store calls and of the events that write into it."""

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
    """Claims to drop, each with the time from which other ants may use the name."""
    letters: list[tuple[str, Letter]] = field(default_factory=list)
    """Letters (messages) to other ants: (ant, letter)."""
    room: int = 0
    immediate: bool = False
    """True if some sites may have immediate URLs."""
    holds_sites: bool = True
    """True if any site is active."""
    inbox: bool = False
    count: bool = True
    """True if the counts of a shared store must be read again. The counts of other stores are always read."""
    tidy: bool = False
    rank: bool = False
    count_waiting: bool = False
    price: float | None = None
    """The least obsolete time, s, that a fetch of a known page must save; None: urgency is not used."""
    budget: float | None = None
    """Fetches per period that the plan provides, for all ants; None before the first plan."""
    missing: int = 0
    """How many more pages are needed, because too few are due or waiting."""
    rules: bool = True
    """True if this ant is the controller, whose price all ants use."""
    census_since: int | None = None
    plan: bytes | None = None
    shares: ShareSnapshot | None = None
    """How much of its share each domain has used; published for readers of the store."""
    limit: str | None = None
    """What limits the rate; published for readers of the store."""
    collection: Collection | None = None
    """The policy file that was adopted."""
    schedule: Schedule | None = None
    """The schedule by which known pages become due. The next batches keep this value until it is set again."""
    hastened: bool = False
    """True if the schedule has moved pages to earlier times. The stored times of parked sites may then be too late."""
    unfinished: bool = False
    """True if the last result was `unfinished`, so that the worker needs a batch even if there is nothing else to
    do."""

    def settle(self, lease: Lease, outcome: Outcome, visit: Visit | None = None) -> None:
        """Add the end of a requested page. The worker then writes its body, discovers its links and settles its
        lease.
        """
        self.ended.append(LeaseEnd(lease, outcome, visit))

    def refuse(self, lease: Lease, outcome: Outcome) -> None:
        """Add the end of a leased page that was not requested."""
        self.ended.append(LeaseEnd(lease, outcome, asked=False))

    def read_sitemap(self, fetched: FetchResult, *, of: str) -> None:
        """Add a sitemap to be read. The site `of` named it."""
        self.sitemaps.append(NamedSitemap(of, fetched))

    def remember(self, lease: SiteLease, state: SiteState) -> None:
        """Add the state of an active site that must survive a kill."""
        self.learned[lease.site] = (lease, state)

    def release(self, leases: Iterable[LeaseId]) -> None:
        """Add leases that are given back unused."""
        self.released += leases

    def park(self, parked: ParkRequest) -> None:
        """Add a site that leaves the active list."""
        self.learned.pop(parked.lease.site, None)
        self.parked.append(parked)

    def has_ends(self) -> bool:
        """Return whether the batch has anything to settle, discover or read."""
        return bool(self.ended or self.offers or self.sitemaps)

    def is_needed(self) -> bool:
        """Return whether there is anything to do."""
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
    """The data stored with an active site: its state, if that must survive a kill, and the urgency of its pages."""

    state: SiteState | None = None
    urgency: bytes = b""

    @classmethod
    def of(cls, record: SiteRecord) -> SavedSiteData:
        """Return the stored data from a site's record."""
        return msgspec.msgpack.decode(record.learned, type=cls) if record.learned else cls()

    def encode(self) -> bytes:
        """Return the bytes for `SiteRecord.learned`."""
        return msgspec.msgpack.encode(self)


class ReadSitemap(msgspec.Struct, frozen=True):
    """A sitemap that was read: the site that named it, and the sitemaps listed in it if it is an index."""

    site: str
    children: list[str]


class CensusSnapshot(msgspec.Struct, frozen=True):
    """The store's census at one time: the input of a plan."""

    at: float
    buckets: dict[int, BucketCensus]
    rows: list[CensusRow]
    waiting: int
    found: float | None = None
    """Obsolete share that the fetches of the last complete cycle found; None before the first."""


@dataclass(slots=True)
class BatchResult:
    """What the worker thread returns for a batch."""

    batch: Batch
    settled: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Number of settled leases, by site and token of the site lease."""
    known: list[Link] = field(default_factory=list)
    """Another project's requests that were already known."""
    new_pages: set[str] = field(default_factory=set)
    """Sites that have more URLs to lease: new ones, or known ones that were made due."""
    hot: set[str] = field(default_factory=set)
    """Sites with new pages that are on topic. These come before all pages off topic, including those in the hand."""
    hurried: set[str] = field(default_factory=set)
    """Sites with known pages that come before those in their hand."""
    dealt: list[LeaseBatch] = field(default_factory=list)
    activated: list[SiteLease] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    """The requested claims on addresses, with their owners."""
    renewed: list[SiteLease] = field(default_factory=list)
    returned: list[SlotReturn] = field(default_factory=list)
    """Letters of ants that give borrowed slots back."""
    lost: list[str] = field(default_factory=list)
    """Sites whose lease another ant took over."""
    voided: frozenset[tuple[str, int]] = frozenset()
    """Site and token of each lease that ended because the store's server went back in time."""
    set_backs: int = 0
    """Number of times that the server was found to have gone back in time."""
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
    """True if known pages become due by their urgency."""
    is_paused: bool = False
    """True if a note has paused the crawl."""
    blocks: tuple[UrlBlock, ...] | None = None
    """The prefixes that are not fetched; None if no inbox is read."""
    is_drained: bool = False
    """True if a note tells this process to give up its sites and end."""
    lacks_room: bool = False
    """True if the disk with the copies has too little free space."""
    unfinished: bool = False
    """True if a stage has not ended its pass over the store, which it continues with each batch."""
    waiting: int = 0
    """Number of unfetched pages of active sites whose urgency reaches the price."""
    top: float = inf
    """Upper bound on the urgency, s, of all other pages; inf if unknown."""
    level: float = 0.0
    """Urgency, s, of the n-th most urgent other page, where n is the number of missing pages; 0 if there are fewer
    pages.
    """


def remembered(record: SiteRecord) -> SiteState:
    """Return the newest known state of a site: the state stored when it was parked, or a later one in `learned`."""
    learned = SavedSiteData.of(record).state
    return record.state if learned is None else max(record.state, learned, key=lambda state: state.next_at)
