"""A batch: what the loop thread has for the store, and what came of it. One is out at a time.

Events write into the batch that is being gathered, through its verbs; the worker thread carries it out
(`store_worker`), and the loop thread takes in the `BatchResult`. Nothing here decides.
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

    from webfountain.frontier.inbox import Letter, Returned
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.frontier.sites.hand import SharesSeen
    from webfountain.policy.files import Collection
    from webfountain.records import (
        CensusRow,
        Fetched,
        Lease,
        LeaseId,
        Link,
        Outcome,
        SiteLease,
        SiteRecord,
    )
    from webfountain.store.contract import BucketCensus, Claim, Dealt, Parked, Refill, Statistics

__all__ = ["Batch", "BatchResult", "CensusTaken", "Ended", "Learned", "NamedSitemap", "SitemapRead"]


class Ended(msgspec.Struct, frozen=True):
    """The end of a lease on its way to the store: the page was examined, refused, or acknowledged by a spider.

    `visit` is what an examined one brought besides: a body to write, links to discover. `asked`: it was handed out;
    else whoever yielded it does not know of its end.
    """

    lease: Lease
    outcome: Outcome
    visit: Visit | None = None
    asked: bool = True


class NamedSitemap(msgspec.Struct, frozen=True):
    """A sitemap that was fetched, and the site that named it."""

    site: str
    fetched: Fetched


@dataclass(slots=True)
class Batch:
    """Work for the worker thread. `at` is the time of all of its store calls, and of the events that write into it."""

    at: float
    ended: list[Ended] = field(default_factory=list)
    offers: list[Link] = field(default_factory=list)
    sitemaps: list[NamedSitemap] = field(default_factory=list)
    answers: list[Fetched] = field(default_factory=list)
    learned: dict[str, tuple[SiteLease, SiteState]] = field(default_factory=dict)
    parked: list[Parked] = field(default_factory=list)
    released: list[LeaseId] = field(default_factory=list)
    renewals: list[SiteLease] = field(default_factory=list)
    refills: list[Refill] = field(default_factory=list)
    guests: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    """Addresses that are to be this ant's, by the names of their claims."""
    freed: dict[str, float] = field(default_factory=dict)
    """Claims that others may have, and from when on."""
    letters: list[tuple[str, Letter]] = field(default_factory=list)
    """(ant, what it is told)."""
    room: int = 0
    immediate: bool = False
    holds_sites: bool = True
    """Whether any site is active."""
    inbox: bool = False
    count: bool = True
    """Whether the counts are to be taken anew, where many processes share the store; else they always are."""
    tidy: bool = False
    rank: bool = False
    count_waiting: bool = False
    price: float | None = None
    """Obsolete time, s, that a fetch of a known page must save; None: urgency decides nothing."""
    missing: int = 0
    """Pages that should be due and wait, and do not."""
    rules: bool = True
    """Whether this ant is the controller, whose price is all others'."""
    census_since: int | None = None
    plan: bytes | None = None
    shares: SharesSeen | None = None
    """What part of its domains is busy, for those who look at the store."""
    collection: Collection | None = None
    """The policy file that came into force."""
    review: bool = False
    """Whether pages are left that were not judged by it."""

    def settle(self, lease: Lease, outcome: Outcome, visit: Visit | None = None) -> None:
        """A page that was asked has ended: its body is to be written, its links discovered, its lease ended."""
        self.ended.append(Ended(lease, outcome, visit))

    def refuse(self, lease: Lease, outcome: Outcome) -> None:
        """A leased page ends unasked."""
        self.ended.append(Ended(lease, outcome, asked=False))

    def offer(self, link: Link) -> None:
        """Another project's request is to be discovered."""
        self.offers.append(link)

    def read_sitemap(self, fetched: Fetched, *, of: str) -> None:
        """A sitemap that a site named is to be read."""
        self.sitemaps.append(NamedSitemap(of, fetched))

    def record(self, fetched: Fetched) -> None:
        """An answer that is nobody's copy is to be archived."""
        self.answers.append(fetched)

    def remember(self, lease: SiteLease, state: SiteState) -> None:
        """What was learned of a site must outlive a kill, also while it stays active."""
        self.learned[lease.site] = (lease, state)

    def release(self, leases: Iterable[LeaseId]) -> None:
        """Leases go back unused."""
        self.released += leases

    def park(self, parked: Parked) -> None:
        """A site leaves the active list."""
        self.learned.pop(parked.lease.site, None)
        self.parked.append(parked)

    def refill(self, refill: Refill) -> None:
        """A site's hand runs low."""
        self.refills.append(refill)

    def has_ends(self) -> bool:
        """Whether anything in it waits to be settled, discovered or read."""
        return bool(self.ended or self.offers or self.sitemaps)

    def is_needed(self) -> bool:
        """Whether there is anything to do."""
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
        chores = (self.inbox, self.tidy, self.review, self.rank, self.count_waiting, self.census_since is not None)
        return any(news) or any(sites) or any(shared) or any(chores)


class Learned(msgspec.Struct, frozen=True, array_like=True):
    """What is kept with a site while it is active: its state, if that must outlive a kill, and its pages' urgency."""

    state: SiteState | None = None
    urgency: bytes = b""

    @classmethod
    def of(cls, record: SiteRecord) -> Learned:
        """Of a site as the store has it."""
        return msgspec.msgpack.decode(record.learned, type=cls) if record.learned else cls()

    def encode(self) -> bytes:
        """For `SiteRecord.learned`."""
        return msgspec.msgpack.encode(self)


class SitemapRead(msgspec.Struct, frozen=True):
    """A sitemap that was read: who named it, and the sitemaps that it names (an index)."""

    site: str
    children: list[str]


class CensusTaken(msgspec.Struct, frozen=True):
    """What the store knew at a moment: the input of a plan."""

    at: float
    buckets: dict[int, BucketCensus]
    rows: list[CensusRow]
    waiting: int


@dataclass(slots=True)
class BatchResult:
    """What a batch brought about."""

    batch: Batch
    settled: Counter[str] = field(default_factory=Counter)
    known: list[Link] = field(default_factory=list)
    """Requests of another project that were known before."""
    new_pages: set[str] = field(default_factory=set)
    """Sites that got URLs to be leased: new ones, or known ones made due."""
    hot: set[str] = field(default_factory=set)
    """Sites that got new pages which go before all that are not on topic, also before those in their hand."""
    hurried: set[str] = field(default_factory=set)
    """Sites some of whose known pages go before those in their hand."""
    dealt: list[Dealt] = field(default_factory=list)
    activated: list[SiteLease] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    """Whose the addresses are that were asked for."""
    renewed: list[SiteLease] = field(default_factory=list)
    returned: list[Returned] = field(default_factory=list)
    """What borrowers wrote."""
    lost: list[str] = field(default_factory=list)
    """Sites whose lease somebody took over."""
    immediate: dict[str, list[Lease]] = field(default_factory=dict)
    immediate_left: bool = False
    guests: list[tuple[str, SiteRecord | None]] = field(default_factory=list)
    sitemaps: list[SitemapRead] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    next_site_due: float | None = None
    never_crawled_due: float | None = None
    statistics: Statistics | None = None
    census: CensusTaken | None = None
    ranks: bool = False
    """Whether known pages are due by their urgency."""
    lacks_room: bool = False
    """Whether the disk of the copies has too little room for more."""
    reviewing: bool = False
    """Whether pages are left that were not judged by the policy file in force."""
    waiting: int = 0
    """Pages of active sites that are worth the price and not fetched yet."""
    top: float = inf
    """What no other page is worth, s, as far as is known."""
    level: float = 0.0
    """What so many others are worth as are missing, s; 0 where there are not so many."""
