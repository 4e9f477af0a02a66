"""The store worker: carries out the batches, against store and repository, in one worker thread.

The order is the order of durability (DESIGN.md section 3): bodies are written, then links discovered, then leases
settled; only then are sites parked and activated and new leases taken. A crash between two steps repeats fetches
and loses nothing.
"""

from __future__ import annotations

import logging
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.frontier.batch import Batch, BatchResult, CensusTaken, Ended, Learned, SitemapRead
from webfountain.frontier.pages.sitemaps import SitemapReading
from webfountain.records import STATES, Copy, Outcome
from webfountain.repository.warc import Capture
from webfountain.store.contract import ADVANCED, AT_ONCE, PLAN, PRICE, Refill

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.frontier.inbox import Inbox
    from webfountain.frontier.pages.duplicates import DuplicateEliminator
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.frontier.pages.sitemaps import SitemapShelf
    from webfountain.frontier.pages.suspects import Suspects
    from webfountain.frontier.planning.urgent_pages import UrgentPages
    from webfountain.policy.tables import ChangesTable
    from webfountain.records import Fetched, Lease, Link, PageRecord, SiteLease
    from webfountain.repository.pages import Repository
    from webfountain.store.contract import FrontierStore, Parked

__all__ = ["IMMEDIATE_BATCH", "StoreWorker"]

logger = logging.getLogger(__name__)

IMMEDIATE_BATCH: Final = 100
"""Immediate URLs of a site, and sites that have some, that one batch takes."""
_NEVER_CRAWLED, _CRAWLED = STATES.index("never-crawled"), STATES.index("crawled")
_WRITTEN = frozenset({"new", "changed", "minor", "same", "not_modified"})


class StoreWorker:
    """Runs batches against the store and the repository; used by one thread at a time."""

    def __init__(
        self,
        *,
        store: FrontierStore,
        repository: Repository | None,
        due: DuplicateEliminator,
        sitemaps: SitemapShelf,
        inbox: Inbox | None,
        suspects: Suspects,
        owner: str,
        lease_s: float,
        log: ChangesTable,
        urgent: UrgentPages | None = None,
    ) -> None:
        self._store = store
        self._repository = repository
        self._due = due
        self._sitemaps = sitemaps
        self._inbox = inbox
        self._suspects = suspects
        self._owner = owner
        self._lease_s = lease_s
        self._log = log
        self._urgent = urgent
        self._has_forgotten = False
        self._counted_due = (0, 0, 0)
        self._learned: dict[str, Learned] = {}  # of active sites
        self._price: float | None = None  # as published last

    def run(self, batch: Batch) -> BatchResult:
        """Do a batch. StoreError and RepositoryError pass through: what was not done is not acknowledged."""
        result = BatchResult(batch)
        self._renew(batch, result)
        self._record(batch.answers)
        self._settle(batch, result)
        result.settled.update(ended.lease.site for ended in batch.ended)
        self._discover(batch.offers, result, batch.at)
        self._read_sitemaps(batch, result)
        if batch.inbox and self._inbox is not None:
            self._deliver(self._inbox, batch, result)
        result.counts["ant/released"] += self._store.release(batch.released)
        if self._urgent is not None:
            self._rest(self._urgent, batch.parked, batch.at)
        self._store.park(batch.parked, at=batch.at)
        if self._urgent is not None and batch.price is not None:
            self._make_due(self._urgent, batch.price, batch, result)
        self._activate(batch, result)
        self._lease(batch, result)
        result.guests = [(name, self._store.site(name)) for name in batch.guests]
        if self._repository is not None and (batch.tidy or self._repository.is_untidy()):
            result.counts["repository/deleted"] += self._repository.tidy(self._store).files
        if batch.tidy:
            self._store.trim_changes(before=batch.at - self._log.keep, most=self._log.max_entries)
        if batch.plan is not None:
            self._store.put_value(PLAN, batch.plan)
        if batch.price is not None and batch.price != self._price:
            self._price = batch.price
            self._store.put_value(PRICE, msgspec.msgpack.encode(batch.price))
        if batch.census_since is not None:
            result.census = self._take_census(batch.census_since, batch.at)
        if batch.look_for_waiting:
            result.never_crawled_due = self._never_crawled_due()
        self._count_due(result)
        result.next_site_due = self._store.next_site_due()
        result.statistics = self._store.statistics()
        return result

    def _renew(self, batch: Batch, result: BatchResult) -> None:
        """The heartbeat, before anything else: what was lost must not be settled as if it were ours."""
        if batch.renewals:
            result.renewed = self._store.renew(batch.renewals, until=batch.at + self._lease_s)
            kept = {lease.site for lease in result.renewed}
            result.lost = [lease.site for lease in batch.renewals if lease.site not in kept]
            for site in result.lost:
                self._learned.pop(site, None)
                if self._urgent is not None:
                    self._urgent.leave(site, batch.at)

    # ------------------------------------------------- write, discover, settle

    def _settle(self, batch: Batch, result: BatchResult) -> None:
        kept = [ended for ended in batch.ended if not self._is_forgotten(ended)]
        visits = [ended.visit for ended in kept if ended.visit is not None]
        copies = self._write(visits)
        copy_of = {id(visit): copy for visit, copy in zip(visits, copies, strict=True)}
        outcomes = [
            ended.outcome
            if ended.visit is None
            else self._completed(ended.outcome, ended.visit, copy_of[id(ended.visit)], result, batch.at)
            for ended in kept
        ]
        learned = self._learn(visits, batch)
        if not (outcomes or learned):
            return
        settled = self._store.settle(outcomes, at=batch.at, learned=learned)
        if self._repository is not None:
            self._repository.settled(copies)
        result.counts["ant/settled"] += settled.applied
        result.counts["ant/settle_lost"] += settled.lost

    def _learn(self, visits: Sequence[Visit], batch: Batch) -> list[tuple[SiteLease, bytes]]:
        """What is to be kept with sites in the same step: their state where it changed, what visits told of pages."""
        leases = {name: lease for name, (lease, _) in batch.learned.items()}
        for name, (lease, state) in batch.learned.items():
            self._learned[name] = msgspec.structs.replace(self._learned_of(lease), state=state)
        if self._urgent is not None:
            for ended in batch.ended:
                if ended.visit is None:
                    self._urgent.refuse(ended.lease.site, ended.lease.key)
            for lease, urgency in self._urgent.observe(visits, at=batch.at):
                leases[lease.site] = lease
                self._learned[lease.site] = msgspec.structs.replace(self._learned_of(lease), urgency=urgency)
        return [(lease, self._learned[name].encode()) for name, lease in leases.items()]

    def _is_forgotten(self, ended: Ended) -> bool:
        """A page that was taken down while it was fetched: its body must not reach the disk again."""
        lease = ended.lease
        known = ended.visit is None or not self._has_forgotten or self._store.page(lease.site, lease.key) is not None
        return not known

    def _write(self, visits: Sequence[Visit]) -> Sequence[Copy | None]:
        """Where each visit's body lies now; None where it brought none."""
        if self._repository is None or not visits:
            return [None] * len(visits)
        written = [i for i, visit in enumerate(visits) if visit.kind in _WRITTEN]
        homes = self._repository.write([_capture(visits[i]) for i in written])
        copies: list[Copy | None] = [None] * len(visits)
        for i, home in zip(written, homes, strict=True):
            copies[i] = home
        if self._repository.keep_answers:
            self._record([visit.fetched for visit in visits if visit.kind not in _WRITTEN])
        return copies

    def _record(self, answers: Sequence[Fetched]) -> None:
        """Archive answers that are nobody's copy: redirects, what is gone, errors, robots.txt, sitemaps."""
        if answers and self._repository is not None:
            self._repository.settled(self._repository.write([Capture(fetched) for fetched in answers]))

    def _completed(self, outcome: Outcome, visit: Visit, copy: Copy | None, result: BatchResult, at: float) -> Outcome:
        """Links first, so that a page is settled only when nothing of it can be lost."""
        links_new = self._discover(visit.reading.links, result, at)
        record = outcome.record
        if copy is not None:
            record = msgspec.structs.replace(record, copy=copy, copied=visit.fetched.at)
            result.counts["repository/healed"] += visit.kind == "same"
        return msgspec.structs.replace(outcome, record=record, links_new=links_new)

    def _discover(self, links: Sequence[Link], result: BatchResult, at: float) -> int:
        if not links:
            return 0
        new = self._due.discover(links, at=at).new
        if new:
            result.new_pages.update(link.site for link in links)
        return new

    def _count_due(self, result: BatchResult) -> None:
        """What the duplicate URL eliminator counted since the last batch."""
        counted = self._due.statistics()
        now = (counted.new, counted.duplicates_by_cache, counted.duplicates_by_store)
        new, by_cache, by_store = (count - told for count, told in zip(now, self._counted_due, strict=True))
        self._counted_due = now
        result.counts.update({"due/new": new, "due/duplicate_by_cache": by_cache, "due/duplicate_by_store": by_store})

    def _read_sitemaps(self, batch: Batch, result: BatchResult) -> None:
        for named in batch.sitemaps:
            site = named.site
            try:
                read = self._sitemaps.read(named.fetched, site=site, at=batch.at)
            except Exception as error:  # one file that nobody foresaw
                logger.error("A sitemap could not be read (%r): %s", error, named.fetched.fetch.url)
                read = SitemapReading([], {}, [], {"sitemap/error/parse-crash": 1})
            result.counts.update(read.counts)
            self._discover(read.links, result, batch.at)
            stale = [key for key, modified in read.modified.items() if self._is_older(site, key, modified)]
            if stale:
                self._store.advance(site, stale, due=batch.at, at=batch.at)
                result.counts["sitemap/made_due"] += len(stale)
                result.new_pages.add(site)
            result.sitemaps.append(SitemapRead(site, read.children))

    def _make_due(self, urgent: UrgentPages, price: float, batch: Batch, result: BatchResult) -> None:
        """Pages that are worth the price are due now; after leases went back, for what is leased is not moved."""
        known = self._store.statistics()
        urgent.divide(known.pages["crawled"], known.sites)
        for refill in batch.refills:
            if urgent.wants(refill.lease):
                learned = self._learned_of(refill.lease).urgency
                urgent.admit(refill.lease, learned, partial(self._crawled, refill.lease.site), at=batch.at)
        for site in sorted({ended.lease.site for ended in batch.ended if ended.outcome.kind == "changed"}):
            if site in urgent and (keys := urgent.outranking(site, price, at=batch.at)):
                self._advance(urgent, site, keys, batch.at - urgent.interval, result)
                result.hurried.add(site)
                result.new_pages.add(site)
        for refill in batch.refills:
            if (site := refill.lease.site) in urgent:
                room = refill.recrawl
                while room and (keys := urgent.due(site, price, most=room, at=batch.at)):
                    room = self._advance(urgent, site, keys, batch.at, result)
        result.ranks, result.waiting = urgent.ranks, urgent.demand(price, batch.at)

    def _crawled(self, site: str) -> Iterator[PageRecord]:
        return (record for _, record in self._store.pages(site=site, state="crawled"))

    def _advance(self, urgent: UrgentPages, site: str, keys: Sequence[bytes], due: float, result: BatchResult) -> int:
        """Make pages due; how many of them are no longer known."""
        moved = self._store.advance(site, keys, due=due, at=result.batch.at)
        result.counts["controller/made_due"] += moved
        # What was forgotten since the site was taken in stands for no fetch.
        lost = [key for key in keys if self._store.page(site, key) is None] if moved < len(keys) else []
        for key in lost:
            urgent.refuse(site, key)
        return len(lost)

    def _rest(self, urgent: UrgentPages, parked: Sequence[Parked], at: float) -> None:
        """Sites that are not active any more keep what was learned of them."""
        learned = []
        for each in parked:
            urgency = urgent.leave(each.lease.site, at)
            if urgency is not None:
                learned.append((each.lease, msgspec.structs.replace(self._learned_of(each.lease), urgency=urgency)))
            self._learned.pop(each.lease.site, None)
        if learned:
            self._store.settle([], at=at, learned=[(lease, kept.encode()) for lease, kept in learned])

    def _learned_of(self, lease: SiteLease) -> Learned:
        """What is kept with an active site."""
        return self._learned.get(lease.site) or Learned.of(lease.record)

    def _is_older(self, site: str, key: bytes, modified: float) -> bool:
        """Whether our copy was fetched before the time at which the sitemap says that the page changed."""
        record = self._store.page(site, key)
        return record is not None and record.last_crawled is not None and record.last_crawled < modified

    # ------------------------------------------------------------ sites, leases

    def _deliver(self, inbox: Inbox, batch: Batch, result: BatchResult) -> None:
        """What other processes asked for: immediate URLs, pages to forget."""
        delivered = inbox.deliver(self._store, self._repository, at=batch.at)
        result.counts["ant/immediate"] += delivered.immediate
        self._has_forgotten = self._has_forgotten or delivered.forgotten > 0

    def _activate(self, batch: Batch, result: BatchResult) -> None:
        """More sites: those with new immediate URLs whether there is room or not, others where there is."""
        until = batch.at + self._lease_s
        if batch.immediate:
            result.activated += self._store.activate(IMMEDIATE_BATCH, owner=self._owner, until=until, at=AT_ONCE)
        if batch.room > 0:
            result.activated += self._store.activate(batch.room, owner=self._owner, until=until, at=batch.at)

    def _lease(self, batch: Batch, result: BatchResult) -> None:
        """Immediate URLs first, then what the hands have room for."""
        if batch.immediate:
            urgent = [Refill(lease, immediate=IMMEDIATE_BATCH) for lease in self._store.urgent(self._owner)]
            for dealt in self._store.lease(urgent):
                if dealt is not None:
                    result.immediate[dealt.site] = self._without_lost_copies(dealt.immediate)
            result.immediate_left = self._store.next_site_due() == AT_ONCE or bool(self._store.urgent(self._owner))
        for refill, dealt in zip(batch.refills, self._store.lease(batch.refills), strict=True):
            if dealt is None:
                result.lost.append(refill.lease.site)
            else:
                never, recrawl, suspects = self._suspects.put_last(dealt.never_crawled, dealt.recrawl)
                self._store.release([lease.id for lease in suspects])
                recrawl, lanes = self._without_lost_copies(recrawl), dealt.lanes
                if batch.price is not None and self._urgent is not None and dealt.site in self._urgent:
                    lanes = [*lanes, (ADVANCED, self._urgent.next_at(dealt.site, batch.price, batch.at))]
                result.dealt.append(msgspec.structs.replace(dealt, never_crawled=never, recrawl=recrawl, lanes=lanes))
                result.counts["ant/leased"] += len(never) + len(recrawl)

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
