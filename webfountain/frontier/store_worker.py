"""What the ant asks of store and repository, and what comes back: one batch each way, run in one worker thread.

The order is the order of durability (DESIGN.md section 3): bodies are written, then links discovered, then leases
settled; only then are sites parked and activated and new leases taken. A crash between two steps repeats fetches
and loses nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.records import STATES, Copy, Lease, LeaseId, Link, Outcome, PageRecord, SiteLease
from webfountain.repository.warc import Capture
from webfountain.store.contract import AT_ONCE, PLAN, Dealt, Refill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.inbox import Inbox
    from webfountain.frontier.pages.duplicates import DuplicateEliminator
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.frontier.pages.sitemaps import SitemapShelf
    from webfountain.frontier.planning.schedule import Wanted
    from webfountain.frontier.planning.urgent_pages import UrgentPages
    from webfountain.records import CensusRow, Fetched, OutcomeKind
    from webfountain.repository.pages import Repository
    from webfountain.store.contract import BucketCensus, FrontierStore, Parked, Statistics

_NEVER_CRAWLED, _CRAWLED = STATES.index("never-crawled"), STATES.index("crawled")
_WRITTEN = frozenset({"new", "changed", "minor", "same", "not_modified"})

__all__ = ["IMMEDIATE_BATCH", "Clerk", "Done", "Refusal", "Work"]

IMMEDIATE_BATCH: Final = 100
"""Immediate URLs of a site, and sites that have some, that one batch takes."""


class Refusal(msgspec.Struct, frozen=True):
    """A leased page that is settled without a visit: refused by robots.txt or policy, or acknowledged by a spider.

    `asked`: it was handed out; else whoever yielded it does not know of its end.
    """

    lease: Lease
    kind: OutcomeKind
    record: PageRecord
    seconds: float = 0.0
    asked: bool = False


@dataclass(slots=True)
class Work:
    """One batch for the worker thread. `at` is the time of all of its store calls."""

    at: float
    visits: list[Visit] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    offers: list[Link] = field(default_factory=list)
    sitemaps: list[Fetched] = field(default_factory=list)
    answers: list[Fetched] = field(default_factory=list)
    parked: list[Parked] = field(default_factory=list)
    released: list[LeaseId] = field(default_factory=list)
    renewals: list[SiteLease] = field(default_factory=list)
    orders: list[Refill] = field(default_factory=list)
    room: int = 0
    immediate: bool = False
    inbox: bool = False
    tidy: bool = False
    look_for_waiting: bool = False
    wanted: Wanted | None = None
    census_since: int | None = None
    plan: bytes | None = None

    def is_needed(self) -> bool:
        """Whether there is anything to do."""
        news = (self.visits, self.refusals, self.offers, self.sitemaps, self.answers, self.plan, self.wanted)
        sites = (self.parked, self.released, self.renewals, self.orders, self.room)
        chores = (self.inbox, self.tidy, self.look_for_waiting, self.census_since is not None)
        return any(news) or any(sites) or any(chores)


class SitemapRead(msgspec.Struct, frozen=True):
    """A sitemap that was read: the sitemaps it names (an index), and whether it could be read at all."""

    site: str
    url: str
    children: list[str]


class CensusTaken(msgspec.Struct, frozen=True):
    """What the store knew at a moment: the input of a plan."""

    at: float
    buckets: dict[int, BucketCensus]
    rows: list[CensusRow]
    waiting: int


@dataclass(slots=True)
class Done:
    """What a batch brought about."""

    work: Work
    settled: Counter[str] = field(default_factory=Counter)
    fresh: set[str] = field(default_factory=set)
    hurried: set[str] = field(default_factory=set)
    deals: list[Dealt] = field(default_factory=list)
    activated: list[SiteLease] = field(default_factory=list)
    renewed: list[SiteLease] = field(default_factory=list)
    immediate: list[Lease] = field(default_factory=list)
    overtaken: list[str] = field(default_factory=list)
    immediate_left: bool = False
    sitemaps: list[SitemapRead] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    next_site_due: float | None = None
    never_crawled_due: float | None = None
    statistics: Statistics | None = None
    census: CensusTaken | None = None
    ranked: frozenset[str] = frozenset()


class Clerk:
    """Runs batches against the store and the repository; used by one thread at a time."""

    def __init__(
        self,
        *,
        store: FrontierStore,
        repository: Repository | None,
        due: DuplicateEliminator,
        sitemaps: SitemapShelf,
        inbox: Inbox | None,
        owner: str,
        lease_s: float,
        urgent: UrgentPages | None = None,
    ) -> None:
        self._store = store
        self._repository = repository
        self._due = due
        self._sitemaps = sitemaps
        self._inbox = inbox
        self._owner = owner
        self._lease_s = lease_s
        self._urgent = urgent
        self._has_forgotten = False
        self._told = (0, 0, 0)

    def run(self, work: Work) -> Done:
        """Do a batch. StoreError and RepositoryError pass through: what was not done is not acknowledged."""
        done = Done(work)
        done.renewed = self._store.renew(work.renewals, until=work.at + self._lease_s)
        self._record(work.answers)
        self._settle(work, done)
        done.settled.update(visit.fetch.site for visit in work.visits)
        done.settled.update(refusal.lease.site for refusal in work.refusals)
        self._discover_offers(work, done)
        self._read_sitemaps(work, done)
        if work.inbox and self._inbox is not None:
            self._deliver(self._inbox, work, done)
        self._store.release(work.released)
        self._store.park(work.parked, at=work.at)
        self._make_due(work, done)
        if self._urgent is not None:
            done.ranked = self._urgent.sites
        self._activate(work, done)
        done.deals = [self._answer(*each) for each in zip(work.orders, self._store.lease(work.orders), strict=True)]
        if self._repository is not None and (work.tidy or self._repository.is_untidy()):
            done.counts["repository/deleted"] += self._repository.tidy(self._store).files
        if work.plan is not None:
            self._store.put_value(PLAN, work.plan)
        if work.census_since is not None:
            done.census = self._take_census(work.census_since, work.at)
        if work.look_for_waiting:
            done.never_crawled_due = self._never_crawled_due()
        self._tell_due(done)
        done.next_site_due = self._store.next_site_due()
        done.statistics = self._store.statistics()
        return done

    # ------------------------------------------------- write, discover, settle

    def _settle(self, work: Work, done: Done) -> None:
        visits = [visit for visit in work.visits if not self._is_forgotten(visit)]
        copies = self._write(visits)
        outcomes = [self._outcome(visit, copy, done, work.at) for visit, copy in zip(visits, copies, strict=True)]
        outcomes += [Outcome(each.lease.id, each.kind, each.record, each.seconds) for each in work.refusals]
        if not outcomes:
            return
        settled = self._store.settle(outcomes, at=work.at)
        if self._repository is not None:
            self._repository.settled(copies)
        done.counts["ant/settled"] += settled.applied
        done.counts["ant/settle_lost"] += settled.lost
        if self._urgent is not None:
            self._observe(self._urgent, visits, work)

    def _observe(self, urgent: UrgentPages, visits: Sequence[Visit], work: Work) -> None:
        """What was settled teaches how urgent pages are; sites that should be ranked are taken in."""
        for name in dict.fromkeys(visit.fetch.site for visit in visits):
            site = None if name in urgent else self._store.site(name)
            if site is not None and urgent.wants(name, site.pages[_CRAWLED]):
                urgent.admit(name, (record for _, record in self._store.pages(site=name, state="crawled")), at=work.at)
        urgent.observe(visits)
        for refusal in work.refusals:
            urgent.refuse(refusal.lease.site, refusal.lease.key)

    def _is_forgotten(self, visit: Visit) -> bool:
        """A page that was taken down while it was fetched: its body must not reach the disk again."""
        lease = visit.fetch.lease
        return self._has_forgotten and lease is not None and self._store.page(lease.site, lease.key) is None

    def _write(self, visits: Sequence[Visit]) -> Sequence[Copy | None]:
        """Where each visit's body lies now; None where it brought none."""
        if self._repository is None or not visits:
            return [None] * len(visits)
        if self._repository.keep_answers:
            self._record([visit.fetched for visit in visits if visit.kind not in _WRITTEN])
        written = [i for i, visit in enumerate(visits) if visit.kind in _WRITTEN]
        homes = self._repository.write([_capture(visits[i]) for i in written])
        copies: list[Copy | None] = [None] * len(visits)
        for i, home in zip(written, homes, strict=True):
            copies[i] = home
        return copies

    def _record(self, answers: Sequence[Fetched]) -> None:
        """Archive answers that are nobody's copy: redirects, what is gone, errors, robots.txt, sitemaps."""
        if answers and self._repository is not None:
            self._repository.settled(self._repository.write([Capture(fetched) for fetched in answers]))

    def _outcome(self, visit: Visit, copy: Copy | None, done: Done, at: float) -> Outcome:
        """Links first, so that a page is settled only when nothing of it can be lost."""
        links_new = self._discover(visit.reading.links, done, at)
        record = (
            visit.record if copy is None else msgspec.structs.replace(visit.record, copy=copy, copied=visit.fetched.at)
        )
        if copy is not None and visit.kind == "same":
            done.counts["repository/healed"] += 1
        lease = visit.fetch.lease
        assert lease is not None
        return Outcome(lease.id, visit.kind, record, visit.fetched.seconds, links_new)

    def _discover(self, links: Sequence[Link], done: Done, at: float) -> int:
        if not links:
            return 0
        new = self._due.discover(links, at=at).new
        if new:
            done.fresh.update(link.site for link in links)
        return new

    def _tell_due(self, done: Done) -> None:
        """What the duplicate URL eliminator counted since the last batch."""
        counted = self._due.statistics()
        now = (counted.new, counted.duplicates_by_cache, counted.duplicates_by_store)
        new, by_cache, by_store = (count - told for count, told in zip(now, self._told, strict=True))
        self._told = now
        done.counts.update({"due/new": new, "due/duplicate_by_cache": by_cache, "due/duplicate_by_store": by_store})

    def _discover_offers(self, work: Work, done: Done) -> None:
        self._discover(work.offers, done, work.at)

    def _read_sitemaps(self, work: Work, done: Done) -> None:
        for fetched in work.sitemaps:
            read = self._sitemaps.read(fetched, at=work.at)
            done.counts.update(read.counts)
            self._discover(read.links, done, work.at)
            stale = [
                key for key, modified in read.modified.items() if self._is_older(fetched.fetch.site, key, modified)
            ]
            if stale:
                self._store.advance(fetched.fetch.site, stale, due=work.at, at=work.at)
                done.counts["sitemap/made_due"] += len(stale)
                done.fresh.add(fetched.fetch.site)
            done.sitemaps.append(SitemapRead(fetched.fetch.site, fetched.fetch.url, read.children))

    def _make_due(self, work: Work, done: Done) -> None:
        """The most urgent pages are due now; after leases went back, for what is leased is not moved."""
        if self._urgent is None or work.wanted is None:
            return
        pages = self._store.statistics().pages
        wanted = work.wanted.beside_new if pages["never-crawled"] else work.wanted.alone
        chosen = self._urgent.choose(wanted, at=work.at, known=pages["crawled"], ahead_s=work.wanted.ahead_s)
        for site, keys, due, before in chosen:
            moved = self._store.advance(site, keys, due=due, at=work.at)
            done.counts["controller/made_due"] += moved
            for key in keys if moved < len(keys) else ():
                if self._store.page(site, key) is None:  # forgotten since the site was taken in
                    self._urgent.refuse(site, key)
            done.fresh.add(site)
            if before:
                done.hurried.add(site)

    def _is_older(self, site: str, key: bytes, modified: float) -> bool:
        """Whether our copy was fetched before the time at which the sitemap says that the page changed."""
        record = self._store.page(site, key)
        return record is not None and record.last_crawled is not None and record.last_crawled < modified

    # ------------------------------------------------------------ sites, leases

    def _deliver(self, inbox: Inbox, work: Work, done: Done) -> None:
        """What other processes asked for: immediate URLs, pages to forget."""
        delivered = inbox.deliver(self._store, self._repository, at=work.at)
        done.counts["ant/immediate"] += delivered.immediate
        self._has_forgotten = self._has_forgotten or delivered.forgotten > 0

    def _activate(self, work: Work, done: Done) -> None:
        """More sites: those with new immediate URLs whether there is room or not, others where there is."""
        until = work.at + self._lease_s
        if work.immediate:
            done.activated += self._store.activate(IMMEDIATE_BATCH, owner=self._owner, until=until, at=AT_ONCE)
        if work.room > 0:
            done.activated += self._store.activate(work.room, owner=self._owner, until=until, at=work.at)
        if work.immediate:
            refills = [Refill(lease, immediate=IMMEDIATE_BATCH) for lease in self._store.urgent(self._owner)]
            for dealt in self._store.lease(refills):
                if dealt is not None:
                    done.immediate += self._without_lost_copies(dealt.immediate)
                    done.overtaken += [dealt.site] if dealt.overtaken else []
            done.immediate_left = self._store.next_site_due() == AT_ONCE or bool(self._store.urgent(self._owner))

    def _answer(self, order: Refill, dealt: Dealt | None) -> Dealt:
        """What a site got; nothing where its lease was lost."""
        if dealt is None:
            return Dealt(order.lease.site, [], [], [], [])
        return msgspec.structs.replace(dealt, recrawl=self._without_lost_copies(dealt.recrawl))

    def _without_lost_copies(self, leases: list[Lease]) -> list[Lease]:
        """The leases, whose records name no copy that is gone, nor what would make the fetch conditional on it."""
        repository = self._repository
        if repository is None:
            return leases
        return [
            lease
            if lease.record.digest is None or (lease.record.copy is not None and repository.holds(lease.record.copy))
            else msgspec.structs.replace(lease, record=_without_copy(lease.record))
            for lease in leases
        ]

    def _take_census(self, since: int, at: float) -> CensusTaken:
        """The store keeps it incrementally: this costs what a few hundred rows cost, at any size."""
        waiting = self._store.statistics().pages["never-crawled"]
        return CensusTaken(at, self._store.census(), self._store.census_rows(since=since), waiting)

    def _never_crawled_due(self) -> float:
        """When the first inactive site with never-crawled pages comes back; inf: there is none."""
        first, after = inf, ""
        while sites := self._store.sites(after, 10_000):
            after = sites[-1].site
            first = min([first] + [each.due for each in sites if each.pages[_NEVER_CRAWLED]])
        return first


def _without_copy(record: PageRecord) -> PageRecord:
    return msgspec.structs.replace(record, copy=None, etag=None, last_modified=None)


def _capture(visit: Visit) -> Capture:
    """What the repository archives of a visit; a body that repeats the known copy becomes a revisit record."""
    record = visit.record
    repeats = record.copied if visit.kind in ("same", "not_modified") and record.copy is not None else None
    return Capture(visit.fetched, digest=visit.record.digest, repeats=repeats)
