"""The store worker: carries out the batches, against store and repository, in one worker thread.

The order is the order of durability (DESIGN.md section 3): bodies are written, then links discovered, then leases
settled; only then are sites parked and activated and new leases taken. A crash between two steps repeats fetches
and loses nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from webfountain.core.resemblance import HOT
from webfountain.errors import WebfountainError
from webfountain.frontier.batch import Batch, BatchResult, CensusTaken, Ended, Learned, NamedSitemap, SitemapRead
from webfountain.frontier.colony import GUEST
from webfountain.frontier.inbox import Forget, Returned, Take, erase, letters_of
from webfountain.frontier.pages.examiner import Judged, leased
from webfountain.frontier.progress import IDLE_S
from webfountain.frontier.sites.hand import SHARES
from webfountain.frontier.sites.site import remembered
from webfountain.policy.files import CollectionInForce
from webfountain.records import STATES, Copy, Fetched, Link, Linked, Outcome, SiteRecord
from webfountain.repository.warc import Capture
from webfountain.store.contract import ADVANCED, AT_ONCE, COLLECTION, FORECAST, PLAN, PRICE, Parked, Refill
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webfountain.core.forecast import Outlook
    from webfountain.frontier.inbox import Notes
    from webfountain.frontier.pages.duplicates import DuplicateDetector, DuplicateEliminator
    from webfountain.frontier.pages.examiner import SitemapShelf, Visit
    from webfountain.frontier.pages.sweeps import Replacement, Review
    from webfountain.frontier.planning.urgent_pages import UrgentPages
    from webfountain.policy import ChangesTable
    from webfountain.policy.files import Collection
    from webfountain.ranking.live import LiveImportance, WaitingSites
    from webfountain.records import Lease, PageRecord, SiteLease
    from webfountain.repository import Repository
    from webfountain.sandbox import Suspects
    from webfountain.store.contract import Claims, FrontierStore, Statistics

__all__ = ["IMMEDIATE_BATCH", "StoreWorker"]

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

IMMEDIATE_BATCH: Final = 100
"""Immediate URLs of a site, and sites that have some, that one batch takes."""
_NEVER_CRAWLED, _CRAWLED = STATES.index("never-crawled"), STATES.index("crawled")
_WRITTEN = frozenset({"new", "changed", "minor", "same", "not_modified"})
_LINKING = frozenset({"new", "changed", "minor", "redirected", "gone"})
"""Ends after which the links of a page are others than were known."""
_SHORT: Final = (
    "The disk of the copies has %.0f MB left: nothing is fetched here below %.0f (WEBFOUNTAIN_LEAST_FREE_BYTES)"
)
_ROOM: Final = 1.1
"""Fetching goes on with so many times the room below which it stopped."""
DISCOVERED: Final = 5000
"""Links, at most, that are discovered in one step of the store: some tens of milliseconds."""
GRADED: Final = 2000
"""Waiting URLs, at most, that one batch looks up in a new ranking: some milliseconds."""
RISEN: Final = 64
"""Waiting URLs of a site, at most, that are weighed anew with a refill, for they have gained since: as many as it
has room for, for no lease takes more of them."""


class StoreWorker:
    """Runs batches against the store and the repository; used by one thread at a time."""

    def __init__(
        self,
        *,
        store: FrontierStore,
        repository: Repository | None,
        due: DuplicateEliminator,
        sitemaps: SitemapShelf,
        inbox: Notes | None,
        suspects: Suspects,
        owner: str,
        lease_s: float,
        log: ChangesTable,
        unkept: Callable[[Lease, float], Outcome],
        least_free: int,
        urgent: UrgentPages | None = None,
        claims: Claims | None = None,
        importance: LiveImportance | None = None,
        detector: DuplicateDetector | None = None,
        replacement: Replacement | None = None,
        review: Review | None = None,
    ) -> None:
        self._store = store
        self._claims = claims
        self._repository = repository
        self._due = due
        self._sitemaps = sitemaps
        self._inbox = inbox
        self._suspects = suspects
        self._owner = owner
        self._lease_s = lease_s
        self._log = log
        self._unkept = unkept
        self._least_free = least_free  # bytes of the disk of the copies
        self._lacks_room = False
        self._urgent = urgent
        self._importance = importance
        self._graded: dict[str, int] = {}  # of active sites: the ranking that their queues are in order by
        self._detector = detector
        self._replacement = replacement
        self._review = review
        self._has_forgotten = False
        self._counted_due = (0, 0, 0, 0)
        self._counted: Statistics | None = None  # what the store counted last
        self._learned: dict[str, Learned] = {}  # of active sites
        self._price: float | None = None  # as published last
        self._foretell_at = -inf
        if urgent is not None:
            urgent.resume(store.value(FORECAST))
        if importance is not None:
            importance.share_words(store, at=-inf)

    def run(self, batch: Batch) -> BatchResult:
        """Do a batch. StoreError and RepositoryError pass through: what was not done is not acknowledged."""
        result = BatchResult(batch)
        self._renew(batch, result)
        self._each(self._record, batch.answers, result)
        self._settle(batch, result)
        result.settled.update(ended.lease.site for ended in batch.ended)
        self._each(partial(self._offer, result), batch.offers, result)
        for named in batch.sitemaps:
            self._each(partial(self._read_sitemap, result), [named], result)
        if batch.inbox and self._inbox is not None:
            self._deliver(self._inbox, batch, result)
        result.counts["ant/released"] += self._store.release(batch.released)
        self._park(batch)
        if self._claims is not None:
            self._share(self._claims, batch, result)
        if batch.collection is not None:
            self._adopt(batch.collection)
        if self._review is not None and not self._review.is_done:
            self._apply_review(self._review, result)
        if self._urgent is not None and batch.price is not None:
            self._make_due(self._urgent, batch.price, batch, result)
        if self._replacement is not None:
            self._follow(self._replacement, result)
        is_asked = self._activate(batch, result)
        self._lease(batch, result)
        result.guests = self._guests(batch)
        if self._repository is not None:
            if batch.tidy or self._repository.is_untidy():
                result.counts["repository/deleted"] += self._repository.tidy(self._store).files
            self._check_disk(self._repository, result)
        self._do_chores(batch, result)
        self._publish(batch)
        if batch.census_since is not None:
            result.census = self._take_census(batch.census_since, batch.at)
        if batch.count_waiting:
            result.never_crawled_due = self._never_crawled_due(batch.at)
        self._count_due(result)
        if not is_asked or batch.refills:
            result.next_site_due = self._store.next_site_due()
        result.immediate_left |= batch.immediate and result.next_site_due == AT_ONCE
        result.statistics = self._count(batch)
        return result

    def _do_chores(self, batch: Batch, result: BatchResult) -> None:
        """What comes round by the clock, of ranking and change log."""
        if batch.rank and self._importance is not None:
            result.counts["ranking/epochs"] += self._importance.tend(batch.at, known=sum(self._known().pages.values()))
            self._importance.share_words(self._store, at=batch.at)
        if batch.tidy:
            self._store.trim_changes(before=batch.at - self._log.keep, most=self._log.max_entries)

    def _check_disk(self, repository: Repository, result: BatchResult) -> None:
        """See how much room is left, said once, and once when there is more; what is superseded makes some."""
        if repository.free_bytes() < self._least_free:
            if not self._lacks_room:
                result.counts["repository/deleted"] += repository.tidy(self._store).files
                logger.warning(_SHORT, repository.free_bytes() / 1e6, self._least_free / 1e6)
            self._lacks_room = True
        elif self._lacks_room and repository.free_bytes() >= _ROOM * self._least_free:
            logger.warning("The disk of the copies has room again: fetching goes on")
            self._lacks_room = False
        result.lacks_room = self._lacks_room

    def _each(
        self,
        act: Callable[[Sequence[_T]], object],
        items: Sequence[_T],
        result: BatchResult,
        instead: Callable[[_T], object] = lambda _: None,
    ) -> None:
        """Act on all items at once; where one of them breaks what nobody foresaw, on each alone, and without that one.

        What store and disk say for themselves is no item's fault and passes through.
        """
        if not items:
            return
        try:
            act(items)
        except WebfountainError:
            raise
        except Exception as error:
            if len(items) > 1:
                for item in items:
                    self._each(act, [item], result, instead)
                return
            logger.error("An item could not be kept (%r): %s", error, _url_of(items[0]))
            result.counts["ant/broken"] += 1
            instead(items[0])

    def _adopt(self, collection: Collection) -> None:
        """A policy file came into force."""
        self._store.put_value(COLLECTION, CollectionInForce.encode(collection))
        self._due.adopt(collection)
        if self._review is not None:
            self._review.begin(collection)

    def _apply_review(self, review: Review, result: BatchResult) -> None:
        """Some pages more are judged by the policy file in force; those refused are due for their end."""
        due = review.step(result.batch.at)
        self._forget_links(review)
        result.new_pages.update(due)
        result.counts["policy/made_due"] += sum(due.values())
        result.reviewing = not (review.is_done or review.is_waiting)

    def _forget_links(self, review: Review) -> None:
        """Links to what was moved with the page that led to it count again: other pages may vouch for it."""
        for site, key in review.moved:
            self._due.forget(site, key)
        review.moved.clear()

    def _renew(self, batch: Batch, result: BatchResult) -> None:
        """The heartbeat, before anything else: what was lost must not be settled as if it were ours."""
        if batch.renewals:
            result.renewed = self._store.renew(batch.renewals, until=batch.at + self._lease_s)
            kept = {lease.site for lease in result.renewed}
            result.lost = [lease.site for lease in batch.renewals if lease.site not in kept]
            for site in result.lost:
                self._learned.pop(site, None)
                if self._urgent is not None:
                    self._urgent.leave(site)
                    self._urgent.parts()  # who took it over has them, as they were

    def outlook(self) -> Outlook | None:
        """How large a share of the collection is believed obsolete; None where urgency decides nothing."""
        return None if self._urgent is None else self._urgent.outlook()

    # ------------------------------------------------- write, discover, settle

    def _settle(self, batch: Batch, result: BatchResult) -> None:
        kept = [ended for ended in batch.ended if not self._is_forgotten(ended)]
        if kept:
            self._each(partial(self._settle_ends, batch, result), kept, result, partial(self._fail, batch, result))
        else:
            self._settle_ends(batch, result, kept)

    def _fail(self, batch: Batch, result: BatchResult, ended: Ended) -> None:
        """The end of a page whose own end cannot be kept."""
        outcome = self._unkept(ended.lease, batch.at)
        self._settle_ends(batch, result, [Ended(ended.lease, outcome, asked=ended.asked)])

    def _settle_ends(self, batch: Batch, result: BatchResult, kept: Sequence[Ended]) -> None:
        """Write, discover and settle, and keep what was learned of sites in the same step."""
        visits = [ended.visit for ended in kept if ended.visit is not None]
        copies = self._write(visits)
        try:
            self._settle_written(batch, result, kept, visits, copies)
        finally:
            if self._repository is not None:
                self._repository.settled(copies)

    def _settle_written(
        self,
        batch: Batch,
        result: BatchResult,
        kept: Sequence[Ended],
        visits: Sequence[Visit],
        copies: Sequence[Copy | None],
    ) -> None:
        judged, outranked = self._judged(visits)
        if self._importance is not None:
            pairs = zip(visits, judged, strict=True)
            self._importance.record([_linked(visit, each.links) for visit, each in pairs if visit.kind in _LINKING])
        if self._review is not None:
            self._follow_switched(self._review, kept)
        # Links first, so that a page is settled only when nothing of it can be lost; all at once, for a step of the
        # store, and a look at the scores, cost about the same for the links of one page and of many.
        new = Counter(link.source for link in self._discover([link for _, links in judged for link in links], result))
        records = {
            id(visit): _copied(visit, each.record, copy)
            for visit, copy, each in zip(visits, copies, judged, strict=True)
        }
        outcomes = [
            ended.outcome
            if ended.visit is None
            else msgspec.structs.replace(
                ended.outcome, record=records[id(ended.visit)], links_new=new[ended.visit.fetch.url]
            )
            for ended in kept
        ]
        result.counts["repository/healed"] += sum(
            copy is not None and visit.kind == "same" for visit, copy in zip(visits, copies, strict=True)
        )
        outcomes = [self._under_policy(ended.lease, end) for ended, end in zip(kept, outcomes, strict=True)]
        learned = self._learn(visits, outcomes, batch)
        if not (outcomes or learned):
            return
        parts = [] if self._urgent is None else self._urgent.parts()
        settled = self._store.settle(outcomes, at=batch.at, learned=learned, parts=parts)
        result.counts["ant/settled"] += settled.applied
        result.counts["ant/settle_lost"] += settled.lost
        for url in outranked:
            self._store.advance(site_of(url), [fingerprint(url)], due=batch.at, at=batch.at)
            result.new_pages.add(site_of(url))

    def _under_policy(self, lease: Lease, outcome: Outcome) -> Outcome:
        """An outcome under the policy that its page was found to belong to meanwhile."""
        record = self._due.overtaken(lease, outcome.record)
        return outcome if record is outcome.record else msgspec.structs.replace(outcome, record=record)

    def _follow_switched(self, review: Review, kept: Sequence[Ended]) -> None:
        """Pages that showed to belong elsewhere, with all that was discovered through them; before they are settled."""
        visits = [(ended.lease.record, ended.visit.record) for ended in kept if ended.visit is not None]
        switched = [new for old, new in visits if new.policy != old.policy]
        switched += review.note([(old.policy, new) for old, new in visits if old.state == "never-crawled"])
        if switched:
            review.follow([record for record in switched if review.reaches_back(record.policy)])

    def _judged(self, visits: Sequence[Visit]) -> tuple[list[Judged], list[str]]:
        """Of each visit what is to be settled and followed, and the URLs that are to be fetched again now."""
        if self._detector is None:
            return [Judged(visit.record, visit.reading.links) for visit in visits], []
        return self._detector.judge(visits)

    def _learn(
        self, visits: Sequence[Visit], outcomes: Sequence[Outcome], batch: Batch
    ) -> list[tuple[SiteLease, bytes]]:
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
            for outcome in outcomes:
                if outcome.record.duplicate_of is not None:
                    self._urgent.refuse(outcome.lease.site, fingerprint(outcome.record.url))
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

    def _offer(self, result: BatchResult, links: Sequence[Link]) -> None:
        """Requests of another project are discovered."""
        known = self._due.offer(links, at=result.batch.at)
        result.known += known
        if len(known) < len(links):
            result.new_pages.update(link.site for link in links)

    def _discover(self, links: Sequence[Link], result: BatchResult) -> list[Link]:
        """Those of the links that were new."""
        new: list[Link] = []
        for first in range(0, len(links), DISCOVERED):
            new += self._due.discover(links[first : first + DISCOVERED], at=result.batch.at)
        result.new_pages.update(link.site for link in new)
        result.hot.update(link.site for link in new if link.scores and link.importance >= HOT)
        return new

    def _count_due(self, result: BatchResult) -> None:
        """What the duplicate URL eliminator counted since the last batch, and those that hold the collection small."""
        counted = self._due.statistics()
        now = (counted.new, counted.duplicates_by_cache, counted.duplicates_by_store, counted.reassigned)
        names = ("duplicates/new", "duplicates/by_cache", "duplicates/by_store", "policy/reassigned")
        before, self._counted_due = self._counted_due, now
        result.counts.update({name: n - m for name, n, m in zip(names, now, before, strict=True)})
        for of in (self._detector, self._replacement):
            if of is not None:
                result.counts.update(of.counts)
                of.counts.clear()

    def _read_sitemap(self, result: BatchResult, sitemaps: Sequence[NamedSitemap]) -> None:
        for named in sitemaps:
            site, at = named.site, result.batch.at
            read = self._sitemaps.read(named.fetched, site=site, at=at)
            result.counts.update(read.counts)
            self._discover(read.links, result)
            stale = self._older(site, read.modified)
            if stale:
                self._store.advance(site, stale, due=at, at=at)
                result.counts["sitemap/made_due"] += len(stale)
                result.new_pages.add(site)
            result.sitemaps.append(SitemapRead(site, read.children))

    def _make_due(self, urgent: UrgentPages, price: float, batch: Batch, result: BatchResult) -> None:
        """Pages that are worth the price are due now; after leases went back, for what is leased is not moved."""
        known = self._known()
        urgent.divide(known.pages["crawled"], known.sites, coming=known.pages["never-crawled"])
        for refill in batch.refills:
            if urgent.wants(refill.lease):
                learned = self._learned_of(refill.lease).urgency
                urgent.admit(refill.lease, learned, partial(self._crawled, refill.lease.site), at=batch.at)
        ended = {each.lease.site for each in batch.ended if each.outcome.kind == "changed"}
        changed = sorted(site for site in ended if site in urgent)
        room = {refill.lease.site: refill.recrawl for refill in batch.refills if refill.lease.site in urgent}
        urgent.prepare(room, changed, price, at=batch.at)
        for site, keys in urgent.outranking(changed, price, at=batch.at).items():
            self._advance(urgent, site, keys, batch.at - urgent.interval, result)
            result.hurried.add(site)
            result.new_pages.add(site)
        turned = urgent.turn(room, price, self._crawled, at=batch.at)
        self._keep(urgent, turned, batch.at)
        while room:
            due = urgent.due(room, price, at=batch.at)
            lost = {site: self._advance(urgent, site, keys, batch.at, result) for site, keys in due.items()}
            room = {site: many for site, many in lost.items() if many}
        result.ranks, result.waiting = urgent.ranks, urgent.demand(price, batch.at)
        result.top, result.level = urgent.free(batch.missing, batch.at)
        for site, keys in urgent.recalled(price, at=batch.at).items():
            self._advance(urgent, site, keys, batch.at, result)
            if site in urgent:
                result.new_pages.add(site)
        if batch.at >= self._foretell_at:
            self._foretell_at = batch.at + urgent.check_s
            urgent.look(batch.at, crawled=known.pages["crawled"], never_crawled=known.pages["never-crawled"])
            if (forecast := urgent.encode_forecast()) is not None:
                self._store.put_value(FORECAST, forecast)

    def _crawled(self, site: str) -> Iterable[PageRecord]:
        """The pages of a site that are fetched for changes; duplicates have their own time."""
        found = self._store.pages(site=site, state="crawled")
        records = (record for _, record in found if record.duplicate_of is None)
        return records if self._importance is None else self._importance.weighed(records)

    def _advance(self, urgent: UrgentPages, site: str, keys: Sequence[bytes], due: float, result: BatchResult) -> int:
        """Make pages due; how many of them are no longer known."""
        moved = self._store.advance(site, keys, due=due, at=result.batch.at)
        result.counts["controller/made_due"] += moved
        # What was forgotten since the site was taken in stands for no fetch.
        lost = [key for key in keys if self._store.page(site, key) is None] if moved < len(keys) else []
        for key in lost:
            urgent.refuse(site, key)
        return len(lost)

    def _publish(self, batch: Batch) -> None:
        """What other processes, and the next crawl, go on with."""
        if batch.plan is not None:
            self._store.put_value(PLAN, batch.plan)
        if batch.price is not None and batch.price != self._price and batch.rules:
            self._price = batch.price
            self._store.put_value(PRICE, msgspec.msgpack.encode(batch.price))
        if batch.shares is not None:
            self._store.put_value(SHARES, msgspec.msgpack.encode(batch.shares))

    def _park(self, batch: Batch) -> None:
        """Sites leave."""
        if self._urgent is not None:
            self._rest(self._urgent, batch)
        self._store.park(batch.parked, at=batch.at)
        for each in batch.parked:
            self._graded.pop(each.lease.site, None)

    def _rest(self, urgent: UrgentPages, batch: Batch) -> None:
        """Sites that are not active any more keep what was learned of them."""
        left = [(each.lease, urgent.leave(each.lease.site)) for each in batch.parked]
        self._keep(urgent, [(lease, urgency) for lease, urgency in left if urgency is not None], batch.at)
        for lease, _ in left:
            self._learned.pop(lease.site, None)

    def _keep(self, urgent: UrgentPages, urgencies: Sequence[tuple[SiteLease, bytes]], at: float) -> None:
        """What is known of sites' pages is kept with them, and windows of theirs that changed in the same step."""
        if not urgencies:
            return
        for lease, urgency in urgencies:
            self._learned[lease.site] = msgspec.structs.replace(self._learned_of(lease), urgency=urgency)
        learned = [(lease, self._learned[lease.site].encode()) for lease, _ in urgencies]
        self._store.settle([], at=at, learned=learned, parts=urgent.parts())

    def _learned_of(self, lease: SiteLease) -> Learned:
        """What is kept with an active site."""
        return self._learned.get(lease.site) or Learned.of(lease.record)

    def _older(self, site: str, modified: Mapping[bytes, float]) -> list[bytes]:
        """The pages whose copy was fetched before the time at which the sitemap says that they changed."""
        records = zip(modified.items(), self._store.records(site, list(modified)), strict=True)
        return [
            key
            for (key, at), record in records
            if record is not None and record.last_crawled is not None and record.last_crawled < at
        ]

    # ------------------------------------------------------------ sites, leases

    def _deliver(self, inbox: Notes, batch: Batch, result: BatchResult) -> None:
        """What other processes asked for: immediate URLs, pages to forget."""
        delivered = inbox.deliver(self._store, self._repository, at=batch.at)
        result.counts["ant/immediate"] += delivered.immediate
        self._has_forgotten = self._has_forgotten or delivered.forgotten > 0
        if self._claims is not None and delivered.barred:
            # Each ant erases its own copies, this one also those of ants that are gone.
            letters = [msgspec.json.encode(note) for note in delivered.barred]
            for ant in self._claims.claims("ant"):
                if ant.owner != self._owner:
                    self._claims.post(ant.owner, letters)
            if self._repository is not None and self._repository.others is not None:
                erase(self._repository.others, delivered.barred, self._store)

    def _share(self, claims: Claims, batch: Batch, result: BatchResult) -> None:
        """What ants settle among themselves once sites that leave are free: addresses, and whose sites are whose."""
        if batch.freed:
            claims.drop(batch.freed, owner=self._owner, at=batch.at)
        self.post(claims, batch)
        until = batch.at + self._lease_s
        if batch.claims:
            result.claims = claims.claim(batch.claims, owner=self._owner, until=until, at=batch.at)
        if batch.inbox and (letters := list(letters_of(claims.collect(self._owner)))):
            result.returned = [letter for letter in letters if isinstance(letter, Returned)]
            sites = sorted({letter.site for letter in letters if isinstance(letter, Take)})
            result.activated += self._store.enlist(sites, owner=self._owner, until=until, at=batch.at)
            barred = [letter for letter in letters if isinstance(letter, Forget)]
            if barred and self._repository is not None:
                self._has_forgotten = True
                erase(self._repository, barred, self._store)

    @staticmethod
    def post(claims: Claims, batch: Batch) -> None:
        """Leave a batch's letters for those that they are to."""
        for owner in sorted({owner for owner, _ in batch.letters}):
            claims.post(owner, [msgspec.json.encode(letter) for to, letter in batch.letters if to == owner])

    def _guests(self, batch: Batch) -> list[tuple[str, SiteRecord | None]]:
        """What is known of sites that are to be asked for files; one that another ant has, or has as a guest, is busy.

        The claim goes before the look at the site's owner, and who activates a site looks at the claims after it
        (`_without_guests`): of two ants one sees the other.
        """
        if self._claims is not None and batch.guests:
            until = batch.at + self._lease_s
            names = [GUEST + name for name in batch.guests]
            held = self._claims.claim(names, owner=self._owner, until=until, at=batch.at)
            free = [claim.name.removeprefix(GUEST) for claim in held if claim.owner == self._owner]
            found = [(name, self._store.site(name)) for name in free]
            owned = {
                GUEST + name: batch.at for name, record in found if record is not None and record.owner is not None
            }
            if owned:
                self._claims.drop(owned, owner=self._owner, at=batch.at)
            busy = sorted(set(batch.guests) - set(free))
            return [*found, *((name, SiteRecord(name, (), inf, batch.at, owner="another")) for name in busy)]
        return [(name, self._store.site(name)) for name in batch.guests]

    def _without_guests(self, claims: Claims, taken: list[SiteLease], at: float) -> list[SiteLease]:
        """Sites that were activated, but for those that another ant is asking for a file: they come back."""
        holders = claims.holders([GUEST + lease.site for lease in taken], at=at)
        asked = [
            (lease, claim)
            for lease, claim in zip(taken, holders, strict=True)
            if claim is not None and claim.owner != self._owner
        ]
        self._store.park([Parked(lease, claim.until, remembered(lease.record)) for lease, claim in asked], at=at)
        away = {lease.site for lease, _ in asked}
        return [lease for lease in taken if lease.site not in away]

    def _activate(self, batch: Batch, result: BatchResult) -> bool:
        """More sites: those with new immediate URLs whether there is room or not, others where there is.

        Whether the result has the next site's due time as it is now: an idle ant asks for that once.
        """
        until = batch.at + self._lease_s
        if self._importance is not None:
            self._note_waiting(self._importance.sites, batch, result)
        if batch.immediate:
            result.next_site_due = self._store.next_site_due()
        if result.next_site_due == AT_ONCE:
            result.activated += self._store.activate(IMMEDIATE_BATCH, owner=self._owner, until=until, at=AT_ONCE)
        if batch.room > 0:
            worthiest = self._worthiest_sites(batch.room, until, batch.at)
            room = batch.room - len(worthiest)
            result.activated += worthiest
            if room > 0:
                result.activated += self._store.activate(room, owner=self._owner, until=until, at=batch.at)
        is_asked = batch.immediate and not result.activated
        if self._claims is not None and result.activated:
            result.activated = self._without_guests(self._claims, result.activated, batch.at)
        if self._importance is not None:
            self._importance.sites.joined(lease.site for lease in result.activated)
        return is_asked

    def _worthiest_sites(self, room: int, until: float, at: float) -> list[SiteLease]:
        """Where more sites wait than there is room for: half of the room is the worthiest ones'.

        The rest is for those that are longest due, as everywhere else: no site waits for ever.
        """
        if self._importance is None or len(self._importance.sites) <= room:
            return []
        return self._store.enlist(self._importance.sites.take((room + 1) // 2), owner=self._owner, until=until, at=at)

    def _note_waiting(self, sites: WaitingSites, batch: Batch, result: BatchResult) -> None:
        """Which sites nobody crawls here, and which of them have pages due."""
        sites.left([*(each.lease.site for each in batch.parked), *result.lost])
        sites.wait(each.lease.site for each in batch.parked if each.due <= batch.at)
        sites.wait(result.new_pages)

    def _lease(self, batch: Batch, result: BatchResult) -> None:
        """Immediate URLs first, then what the hands have room for."""
        # A site that was activated for its immediate URLs has them now: later it might have left for want of others.
        if batch.immediate or any(lease.record.immediate for lease in result.activated):
            may_hurry = self._claims is None or batch.holds_sites or result.activated
            urgent_sites = self._store.urgent(self._owner) if may_hurry else []
            hurried = [Refill(lease, immediate=IMMEDIATE_BATCH) for lease in urgent_sites]
            for dealt in self._store.lease(hurried):
                if dealt is not None:
                    result.immediate[dealt.site] = self._without_lost_copies(dealt.immediate)
                    if self._replacement is not None:
                        self._replacement.note(dealt.immediate)
            result.immediate_left = bool(hurried) and bool(self._store.urgent(self._owner))
        urgent, next_at = self._urgent, dict[str, float]()
        if urgent is not None and batch.price is not None:
            names = [refill.lease.site for refill in batch.refills if refill.lease.site in urgent]
            next_at = urgent.next_at(names, batch.price, batch.at)
        if self._importance is not None:
            self._grade(self._importance, batch.refills, result)
        if self._replacement is None:
            leased = self._store.lease(batch.refills)
        else:
            leased = self._replacement.lease(batch.refills, at=batch.at)
        for refill, dealt in zip(batch.refills, leased, strict=True):
            if dealt is None:
                result.lost.append(refill.lease.site)
            else:
                never, recrawl, suspects = self._suspects.put_last(
                    *(self._without_mirrored(leases, batch.at) for leases in (dealt.never_crawled, dealt.recrawl))
                )
                self._store.release([lease.id for lease in suspects])
                never = self._without_overruled(dealt.site, never)
                recrawl, lanes = self._without_lost_copies(recrawl), dealt.lanes
                if dealt.site in next_at:
                    lanes = [*lanes, (ADVANCED, next_at[dealt.site])]
                result.dealt.append(msgspec.structs.replace(dealt, never_crawled=never, recrawl=recrawl, lanes=lanes))
                result.counts["ant/leased"] += len(never) + len(recrawl)

    @staticmethod
    def _follow(replacement: Replacement, result: BatchResult) -> None:
        """What a batch means for the size of the collection."""
        batch = result.batch
        replacement.ended(ended.lease.id for ended in batch.ended)
        replacement.ended(batch.released)
        replacement.left([*result.lost, *(parked.lease.site for parked in batch.parked)])
        replacement.sweep(batch.at)

    def _grade(self, importance: LiveImportance, refills: Sequence[Refill], result: BatchResult) -> None:
        """Bring what was learned of waiting URLs into the queues that are about to be leased from, a bounded part."""
        left, epoch = GRADED, importance.epoch
        for lease, room in [(refill.lease, refill.never_crawled) for refill in refills if refill.never_crawled]:
            if epoch and self._graded.get(lease.site, lease.record.epoch) != epoch and left > 0:
                graded = self._store.regrade(lease, importance.importance, epoch=epoch, n=left)
                if graded is None:
                    continue
                left -= graded.seen
                result.counts["ranking/moved"] += graded.moved
                if graded.done:
                    self._graded[lease.site] = epoch
            if keys := importance.risen(lease.site, min(room, RISEN)):
                result.counts["ranking/risen"] += self._store.reweigh(lease, keys, importance.importance) or 0

    def _without_mirrored(self, leases: list[Lease], at: float) -> list[Lease]:
        """The leases without those of a mirror's pages that the original has; they end here."""
        if self._detector is None:
            return leases
        ends = [self._detector.unasked(lease, at=at) for lease in leases]
        self._store.settle([end for end in ends if end is not None], at=at)
        return [lease for lease, end in zip(leases, ends, strict=True) if end is None]

    def _without_overruled(self, site: str, leases: list[Lease]) -> list[Lease]:
        """The leases without those of pages that are under another policy by now: they wait where that puts them."""
        overruled = {} if self._review is None else self._review.overruled([lease.record for lease in leases])
        if not overruled:
            return leases
        gone = [lease for lease in leases if lease.record.url in overruled]
        self._store.release([lease.id for lease in gone])
        self._store.reassign(site, [lease.key for lease in gone], lambda record: overruled.get(record.url))
        for lease in gone:
            self._due.forget(site, lease.key)
        return [lease for lease in leases if lease.record.url not in overruled]

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

    def _count(self, batch: Batch) -> Statistics:
        """The store's counts: of a shared one a sum over all shards, so they are taken at the looks of the process."""
        if self._claims is None or self._counted is None or batch.count:
            self._counted = self._store.statistics()
        return self._counted

    def _known(self) -> Statistics:
        """The counts, of a store that many share as they were after the last batch."""
        return self._store.statistics() if self._claims is None or self._counted is None else self._counted

    def _never_crawled_due(self, at: float) -> float:
        """When the first inactive site with never-crawled pages comes back, or one before it that is not due soon.

        inf: there is none. Sites are looked through only where what is counted does not tell.
        """
        counts = self._store.statistics()
        if not counts.pages["never-crawled"]:
            return inf
        soonest = self._store.next_site_due()
        if not counts.active_sites and soonest is not None and soonest > at + IDLE_S:
            return soonest
        first, after = inf, ""
        while sites := self._store.sites(after, 10_000):
            after = sites[-1].site
            first = min([first] + [each.due for each in sites if each.pages[_NEVER_CRAWLED]])
        return first


def _url_of(item: object) -> str:
    """Of what a batch holds, for the log."""
    match item:
        case Ended(lease=lease):
            return lease.record.url
        case NamedSitemap(fetched=fetched) | (Fetched() as fetched):
            return fetched.fetch.url
        case Link(url=url):
            return url
    return ""


def _copied(visit: Visit, record: PageRecord, copy: Copy | None) -> PageRecord:
    """What is settled of a visit, where its copy was written."""
    return record if copy is None else msgspec.structs.replace(record, copy=copy, copied=visit.fetched.at)


def _without_copy(record: PageRecord) -> PageRecord:
    return msgspec.structs.replace(record, copy=None, etag=None, last_modified=None)


def _linked(visit: Visit, links: Sequence[Link]) -> Linked:
    """A visit and what is followed of it; a page that is gone has no links."""
    again = leased(visit.fetch).last_crawled is not None
    redirected, reading, unfollowed = visit.kind == "redirected", visit.reading, visit.reading.unfollowed
    if len(links) < len(reading.links):  # it repeats another
        followed = {link.key for link in links}
        unfollowed += tuple(link for link in reading.links if link.key not in followed)
    return Linked(
        visit.record, visit.fetch.site, links, visit.fetched.at, again, redirected, reading.nofollow, unfollowed
    )


def _capture(visit: Visit) -> Capture:
    """What the repository archives of a visit; a body that repeats the known copy becomes a revisit record."""
    record = visit.record
    repeats = record.copied if visit.kind in ("same", "not_modified") and record.copy is not None else None
    return Capture(visit.fetched, digest=visit.record.digest, repeats=repeats)
