"""The crawler without Scrapy: what to fetch next, what became of it, and the work between loop and worker thread.

A facade over the active list (who may be asked), the examiner (what a page says), the store worker (store and
repository), the plan's follower and the progress (whether to go on). The loop thread calls `next`, `landed`, `finish`,
`take_work` and `absorb`, which are cheap and do no I/O; the worker thread calls `run`; `examine` may run anywhere.
Time comes from a `Clock`, so a year passes in a test.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import time
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.core.change_rate import Prior, freshness
from webfountain.core.url_cache import entries_within
from webfountain.formats.document import LinkExtractor
from webfountain.formats.robots import MAX_ORDINARY_ROBOTS_BYTES, RobotsRules
from webfountain.formats.sitemap import MAX_SITEMAP_BYTES
from webfountain.frontier.batch import Batch
from webfountain.frontier.colony import Membership, Ruling, plan_number, steady_clock
from webfountain.frontier.pages.duplicates import DuplicateDetector, DuplicateEliminator
from webfountain.frontier.pages.examiner import Examiner, SitemapShelf, Visit, acknowledged, counts_of, old_text
from webfountain.frontier.pages.sweeps import Replacement, Review
from webfountain.frontier.planning.plan import Controller, bounds_of, encode_plan
from webfountain.frontier.planning.schedule import PlanFollower, plans
from webfountain.frontier.planning.urgent_pages import urgent_pages_of
from webfountain.frontier.progress import COUNTS, LOOKS, Agenda, FrontierStatistics, Looks, Progress, chores
from webfountain.frontier.sites.active_list import ActiveList
from webfountain.frontier.sites.hand import DomainShares, largest_hand
from webfountain.frontier.sites.site import PRIOR_PERIODS, SiteContext
from webfountain.frontier.store_worker import StoreWorker
from webfountain.policy.files import CollectionInForce
from webfountain.policy.judge import Judge
from webfountain.sandbox import FencedReader, Suspects
from webfountain.store.contract import COLLECTION, PLAN, PRICE

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from webfountain.clock import Clock
    from webfountain.config import FountainConfig
    from webfountain.frontier.batch import BatchResult, CensusTaken
    from webfountain.frontier.colony import Beaten
    from webfountain.frontier.inbox import Notes
    from webfountain.frontier.planning.plan import Plan
    from webfountain.frontier.sites.site import SiteStatistics
    from webfountain.metrics import Metrics
    from webfountain.policy.files import Collection
    from webfountain.ranking.duplicate_index import DuplicateIndex
    from webfountain.ranking.live import LiveImportance
    from webfountain.records import Fetch, Fetched, Lease, Link, PageRecord
    from webfountain.repository import Repository
    from webfountain.store.contract import Feed, FeedForm, FrontierStore

__all__ = ["Frontier"]

logger = logging.getLogger(__name__)

_ROBOTS_MEMO: Final = 1024
"""Sites whose parsed rules are kept: many sites have the same robots.txt."""
_END_S: Final = 6.0
"""A stop takes no longer than ten seconds: some for what is under way, so many where the store is away."""
_UNEVEN: Final = 1.25
"""An ant that has so many times the mean number of sites, and a few more, lets some go to the others."""
_FEW: Final = 2


class Frontier:
    """One crawling process. Built with an open store (and repository); `close` closes them.

    `owner` names this process in leases. `recrawl` False asks every page once; `obey_robots` False is for a project
    that chose so, `ignores_robots` tells it of one of its requests (`Link.request`), `robot` is the name, or the whole
    User-Agent, by which it looks up the groups of robots.txt. Seeds are loaded by the caller (`inbox.load_seeds`).
    """

    def __init__(
        self,
        *,
        store: FrontierStore,
        repository: Repository | None,
        collection: Collection,
        config: FountainConfig,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics,
        owner: str,
        inbox: Notes | None = None,
        suspects: Suspects | None = None,
        importance: LiveImportance | None = None,
        duplicates: DuplicateIndex | None = None,
        recrawl: bool = True,
        obey_robots: bool = True,
        robot: str | None = None,
        ignores_robots: Callable[[bytes], bool] = lambda _: False,
        steady: Callable[[], float] = steady_clock,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self.owner = owner
        self._clock = clock
        self._store = store
        self._repository = repository
        self._metrics = metrics
        self._config = config
        start, cycle = clock.now(), collection.cycle
        plans_here = plans(collection, recrawl=recrawl)
        reaches = None if repository is None else repository.reaches
        self._others = _membership(
            store, config, owner=owner, start=start, plans=plans_here, reaches=reaches, steady=steady, cpu=cpu
        )
        lease_s = config.lease_seconds if self._others is None else self._others.lease_s
        self._plan_number = plan_number(store.value(PLAN))
        self.judge = Judge(collection, year=time.gmtime(start).tm_year)
        self._follower = PlanFollower(collection, metrics=metrics, start=start, recrawl=recrawl)
        last = self._follower.resume(store.value(PLAN), store.value(PRICE))
        review = _review(collection, store, self.judge)
        self._reviewing = review is not None and not review.is_done
        self._controller = Controller(collection, start=start, last=last) if plans_here else None
        self._suspects = _told(Suspects(None) if suspects is None else suspects, metrics)
        self._reader = FencedReader(
            LinkExtractor(nofollow=collection.discovery.nofollow, robot=collection.politeness.robots_token)
        )
        text_of = partial(old_text, repository, self._reader)
        self._detector = None if duplicates is None else _detector(collection, duplicates, store, text_of)
        self._examiner = Examiner(
            collection=collection,
            judge=self.judge,
            reader=self._reader,
            old_text=text_of,
            duplicates=(lambda _: 0.0) if self._detector is None else self._detector.share_of,
            sketches=(lambda: False) if self._others is None else self._others.is_apart,
            topics=None if importance is None else importance.topics,
        )
        self._replacement = _replacement(collection, store, importance)
        self._shares = _domain_shares(collection, start=start, metrics=metrics)
        most_ahead = largest_hand(cycle.capacity_pages_per_period, cycle.period_s)
        if importance is not None:
            most_ahead = min(most_ahead, config.hand)  # a larger hand would hold what has been outranked since
        self._robot = robot or collection.politeness.robots_token
        context = SiteContext(
            collection=collection,
            judge=self.judge,
            examiner=self._examiner,
            follower=self._follower,
            metrics=metrics,
            clock=clock,
            rng=rng,
            numbers=itertools.count(1),
            parse_robots=functools.lru_cache(_ROBOTS_MEMO)(partial(RobotsRules.parse, token=self._robot)),
            hand=min(config.hand, most_ahead),
            largest_hand=most_ahead,
            believed=Prior(PRIOR_PERIODS * cycle.period_s),
            patient=recrawl,
            obey_robots=obey_robots,
            by_worth=importance is not None,
            ignores_robots=ignores_robots,
            shares=self._shares,
        )
        self._sites = ActiveList(context, size=config.active_sites, others=self._others)
        self._importance = importance
        self.due = DuplicateEliminator(
            store,
            size=entries_within(config.cache_bytes),
            collection=collection,
            weigh=None if importance is None else importance.weigh,
        )
        self._worker = StoreWorker(
            store=store,
            repository=repository,
            due=self.due,
            sitemaps=SitemapShelf(
                self.judge, believe_dates=collection.signals.lastmod, read_file=self._reader.read_sitemap
            ),
            inbox=inbox,
            suspects=self._suspects,
            owner=owner,
            lease_s=lease_s,
            claims=store.claims,
            log=collection.changes,
            unkept=self._examiner.unkept,
            least_free=config.least_free_bytes,
            urgent=urgent_pages_of(collection, recrawl=recrawl, shelf=store),
            importance=importance,
            detector=self._detector,
            replacement=self._replacement,
            review=review,
        )
        # Elsewhere what is learned of a site's pages, beside their records, has one writer (`colony`).
        self._lends = collection.politeness.concurrency > 1 and not (
            self._others is None or cycle.capacity_pages_per_period or importance or self._replacement
        )
        self._agenda = Agenda(chores(lease_s, cycle.period_s), start=start)
        self._chores = ("robots", "tidy") if self._others is not None else ("robots", "tidy", "renew")
        self._looks, self._counts = Looks(LOOKS, rng=rng, start=start), Looks(COUNTS, rng=rng, start=start)
        self._progress = Progress(config, cycle, stored=store.statistics(), start=start)
        self._batch = Batch(start)
        self._sites_due = -inf  # when the first site that is not active is due, as the store said last
        self._taken: CensusTaken | None = None
        self._short = 0  # ants without room, as this one said last

    # ---------------------------------------------------------- loop thread

    def next(self) -> Fetch | None:
        """What to request now: a page, a robots.txt or a sitemap. None when nothing may be asked at this moment."""
        at = self._clock.now()
        if self._progress.open_at() > at or not self.may_send():
            return None
        fetch = self._sites.next(at)
        if fetch is not None:
            self._metrics.inc("fetch/started")
            if fetch.kind == "page":
                self._spend(fetch, at)
        return fetch

    def now(self) -> float:
        """The clock, UTC seconds."""
        return self._clock.now()

    def may_send(self) -> bool:
        """Whether what this process holds is its own: to be asked once more right before a request is sent."""
        return self._others is None or self._others.may_send()

    def _spend(self, fetch: Fetch, at: float) -> None:
        """One page of the budget goes out."""
        self._progress.spend(at)
        known = fetch.lease is not None and fetch.lease.record.state != "never-crawled"
        self._follower.count()
        self._metrics.inc("sequencer/recrawl" if known else "sequencer/never_crawled")

    def wake_at(self) -> float | None:
        """When `next` may have something by time alone; None: only after a landing or work."""
        due = min(max(self._sites.wake_at(), self._progress.open_at()), self._follower.check_at())
        return None if due == inf else due

    async def read_file(self, fetched: Fetched) -> Fetched:
        """With what a robots.txt or a sitemap says, read where that holds up nobody but its own site.

        It comes before the landing. Once the crawl is cut short there may be nobody left to read it.
        """
        if fetched.fetch.kind == "page" or fetched.status is None or not 200 <= fetched.status < 300:
            return fetched
        if fetched.fetch.kind == "robots":
            if len(fetched.body) <= MAX_ORDINARY_ROBOTS_BYTES:
                return fetched
            read: Callable[[], Any] = partial(self._reader.read_robots, fetched.body, self._robot)
        else:
            read = partial(self._reader.read_sitemap, fetched.body)
        with contextlib.suppress(RuntimeError):
            # Any of them may take seconds, small as it is: they wait for each other and for large pages.
            return msgspec.structs.replace(fetched, reading=await self._reader.run(read, size=MAX_SITEMAP_BYTES))
        return fetched

    def landed(self, fetched: Fetched) -> None:
        """A download ended, whatever its end. Exactly once for each fetch that `next` gave."""
        batch = self._gathered()
        self._sites.landed(fetched, batch)
        if fetched.fetch.kind != "page" and self._repository is not None and self._repository.keep_answers:
            batch.record(fetched)

    def unasked(self, fetch: Fetch) -> None:
        """A page that `next` gave is not requested after all, instead of `landed`: nobody has to wait for it."""
        self._sites.unasked(fetch, self._clock.now())

    def keep(self, lease: Lease) -> None:
        """The lease of a page that has landed is not settled for a while, or in this run. The crawl does not wait
        for it, and its site takes nobody's place on the active list."""
        self._sites.keep(lease.id)

    def unkeep(self, lease: Lease) -> None:
        """The lease is settled now."""
        self._sites.unkeep(lease.id)

    def examine(self, fetched: Fetched) -> Visit:
        """What a fetch means for its page. Any thread but the loop's, for it may take seconds; changes nothing."""
        url = fetched.fetch.url
        if self._suspects.has_crashed(url):
            return self._examiner.unreadable(fetched, "crashed")
        try:
            with self._suspects.examining(url):
                return self._examiner.examine(fetched, self._sites.prior(fetched.fetch.site))
        except Exception as error:
            return self._broken(fetched, error)

    def examine_at_once(self, fetched: Fetched) -> Visit | None:
        """As `examine`, where that takes some milliseconds whatever the body holds; else None."""
        url = fetched.fetch.url
        if not self._suspects.may_examine_at_once(url):
            return None
        try:
            with self._suspects.examining(url):
                return self._examiner.examine_at_once(fetched, self._sites.prior(fetched.fetch.site))
        except Exception as error:
            return self._broken(fetched, error)

    async def examine_apart(self, fetched: Fetched) -> Visit:
        """As `examine`, in a thread that is kept for it."""
        with self._progress.examining(fetched):
            if fetched.fetch.url in self._suspects:
                # Its death would be the end of what others brought, and of its site's other pages each time.
                await self._progress.all_written(within_s=2.0)
            return await self._reader.run(partial(self.examine, fetched), size=len(fetched.body))

    def cut_short(self) -> None:
        """Whatever is examined now need not be: the crawl ends, and what was not examined is asked for again."""
        self._reader.close()

    def _broken(self, fetched: Fetched, error: Exception) -> Visit:
        """One page that nobody foresaw is one failed page, and a line for whoever mends it."""
        logger.error("A page could not be examined (%r): %s", error, fetched.fetch.url)
        return self._examiner.unreadable(fetched, "parse-crash")

    def finish(self, visit: Visit) -> None:
        """The spider is done with a page. Exactly once for each page fetch: queued to be written and settled."""
        if self._sites.finished(visit, self._gathered()):
            self._progress.wait_for_worker(visit)
            self._metrics.add(counts_of(visit))

    def give_back(self, fetch: Fetch) -> None:
        """A page's fetch that has landed was none: its lease may be another's (instead of `examine`, `finish`)."""
        assert fetch.lease is not None
        self._sites.given_back(fetch.lease, self._gathered())
        self._metrics.inc("ant/lapsed")

    def acknowledge(self, fetch: Fetch, *, status: int | None, error: str | None, seconds: float = 0.0) -> None:
        """Another project's spider is done with its request (instead of `examine` and `finish`)."""
        assert fetch.lease is not None
        batch = self._gathered()
        outcome = acknowledged(fetch.lease, status=status, error=error, at=batch.at, seconds=seconds)
        batch.settle(fetch.lease, outcome)
        self._metrics.inc(f"outcome/{outcome.kind}")

    def unresolved(self) -> list[str]:
        """Host names whose addresses are needed; each is named once until `resolved`."""
        return self._sites.unresolved()

    def resolved(self, host: str, addresses: Sequence[str], *, error: str | None = None) -> None:
        """The addresses of a host name, or none and why."""
        self._sites.resolved(host, addresses, error or "dns", self._gathered())

    def detour(self, fetch: Fetch, address: str) -> float:
        """A fetch under way has no answer at its address and would go on at another one of its host.

        Returns the seconds that it must wait before it asks again, 0.0 when it may go on there.
        """
        return self._sites.detour(fetch, address, self._clock.now())

    def offer(self, link: Link) -> None:
        """Another project's request on its way to the store."""
        self._gathered().offer(link)

    def take_known(self) -> list[Link]:
        """Of the requests that were offered those that turned out to be known; each is told once."""
        return self._progress.take_known()

    def put_first(self, links: Sequence[Link]) -> None:
        """Put another project's requests on the immediate queues of their sites; for the worker thread."""
        self._store.immediate(links, at=self._clock.now())

    def feed(self, key: str | None = None, form: FeedForm = "list") -> Feed | None:
        """See `store.contract.Feeds`."""
        return self._store.feed(key, form)

    def adopt_collection(self, collection: Collection) -> None:
        """Go on under an edited policy file: what its judge refuses is not asked from the next request on.

        Its seeds are loaded by the caller, as at the start.
        """
        self.judge.adopt(collection)
        if self._importance is not None:
            self._importance.adopt(collection)
        batch = self._gathered()
        batch.collection = collection
        self._sites.judge_again(batch)

    def stop(self) -> None:
        """Hand out nothing more; what is in flight may still land and be finished."""
        if self._others is not None and not self._progress.stopped:
            self._others.end_within(_END_S)
        self._progress.stopped = True

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._progress.stopped

    def has_pending(self) -> bool:
        """Whether any URL is left to ask once: never-crawled, leased or offered."""
        return self._progress.has_pending(self._sites, self._batch)

    def finish_reason(self) -> str | None:
        """Why the crawl should close now; None: it goes on."""
        idle_since = None if self._others is None else self._others.idle_since()
        is_alone = self._others is None
        return self._progress.finish_reason(
            self._clock.now(), self._sites, self._batch, all_idle=-inf if is_alone else idle_since
        )

    @property
    def price(self) -> float | None:
        """Obsolete time, s, that a fetch of a known page must save; None where urgency decides nothing."""
        return self._follower.schedule.price

    @property
    def plan(self) -> Plan | None:
        """The plan in force; None before the first."""
        return self._follower.plan

    def statistics(self) -> FrontierStatistics:
        """A frozen snapshot."""
        return self._progress.statistics(self._sites)

    def statistics_of(self, site: str) -> SiteStatistics | None:
        """A frozen snapshot of one site; None when it is not active."""
        return self._sites.statistics_of(site)

    def _gathered(self) -> Batch:
        """The batch that events write into now."""
        self._batch.at = self._clock.now()
        return self._batch

    # ------------------------------------------------- between the two threads

    def take_work(self) -> Batch | None:
        """The next batch for the worker; None when there is nothing to do or one is out."""
        if self._progress.working:
            return None
        batch = self._gathered()
        if not self._progress.stopped and self.may_send():
            self._order(batch)
        back = self._sites.let_leave(batch, others_wait=self._sites_due <= batch.at)
        self._sites_due = min(self._sites_due, back)
        if not batch.is_needed():
            return None
        self._batch = Batch(batch.at)
        self._progress.working = True
        return batch

    def _order(self, batch: Batch) -> None:
        """What is wanted of the store: leases, sites, and the chores that have come round."""
        at, sites, agenda = batch.at, self._sites, self._agenda
        idling = self._config.until_idle and self._progress.is_resting(at, sites, batch)
        sites.ripen(batch)
        if self._shares is not None:
            sites.divide(self._shares, at)
            if agenda.take(at, "shares"):
                batch.shares = self._shares.published()
        chores = agenda.take(at, *self._chores)
        if "robots" in chores:
            sites.renew_robots(batch)
        if "renew" in chores:
            sites.renew_leases(batch)
        self._follow_plan(batch)
        if not self._progress.congested():
            sites.refill(batch)
        sites.invite(batch)
        if self._others is not None:
            sites.claim(batch)
        idle = self._others is not None and not batch.holds_sites and not self._progress.is_busy(sites, batch)
        processes = 1 if self._others is None else self._others.colony.ants
        batch.inbox = self._looks.due(at, idle=idle, processes=processes)
        batch.count = batch.inbox and self._counts.due(at, idle=idle, processes=processes)
        batch.tidy = "tidy" in chores
        # An idle ant's chore waits for its next look.
        batch.rank = self._importance is not None and (batch.inbox or not idle) and bool(agenda.take(at, "importance"))
        batch.review = self._reviewing
        batch.immediate = batch.inbox or bool(self._progress.stored.immediate)
        if self._sites_due <= at:
            batch.room = self._room()
        if idling and (self._others is None or self._others.idle_since() is not None):
            batch.count_waiting = bool(agenda.take(at, "waiting"))

    def _room(self) -> int:
        """How many sites more: where there are other ants, not many more than their part."""
        others, room = self._others, self._sites.room()
        if self._progress.lacks_room:
            return 0
        if others is None or others.colony.ants < 2:
            return room
        part = max(others.fair(), self._progress.stored.sites / others.colony.takers)
        return max(min(room, int(part * _UNEVEN) + _FEW - len(self._sites.leases())), 0)

    def _follow_plan(self, batch: Batch) -> None:
        """The price, more pages where too few were due, and the census when it is time to plan."""
        starved = self._sites.is_starved()
        batch.price = self._follower.schedule.price
        if short := self._follower.check(batch.at, starved=starved):
            self._sites.refresh_soonest(short + 1, batch.at)
        batch.missing = self._follower.missing()
        batch.rules = self._others is None or self._others.rules
        if self._controller is not None and batch.rules:
            batch.census_since = self._controller.census_since(batch.at)

    def run(self, batch: Batch) -> BatchResult:
        """Carry out a batch; the worker thread's only call. Store and repository errors pass through."""
        return self._worker.run(batch)

    def absorb(self, result: BatchResult) -> None:
        """Take in what a batch brought about."""
        self._progress.absorb(result)
        self._metrics.add(result.counts)
        self._sites_due = inf if result.next_site_due is None else result.next_site_due
        self._taken = result.census or self._taken
        self._reviewing = result.reviewing
        self._follower.hand_over(ranks=result.ranks, waiting=result.waiting, top=result.top, level=result.level)
        self._sites.take_in(result, self._gathered())
        if self._others is not None:
            resting = self._progress.is_resting(self._clock.now(), self._sites, self._batch)
            self._others.rest(resting=resting, at=self._clock.now())

    def beat_at(self) -> float | None:
        """When the next heartbeat is due; None where there are no others to hear it."""
        return None if self._others is None else self._others.next_at()

    def beat(self) -> Callable[[], Beaten] | None:
        """A heartbeat that is due, as a call for a thread of its own. Its result goes to `heard`."""
        others = self._others
        if others is None:
            return None
        at = self._clock.now()
        if not others.is_due(at):
            return None
        beat = others.beat(
            at,
            leases=self._sites.leases(),
            claimed=self._sites.claimed(),
            sites=len(self._sites.leases()),
            in_flight=self._sites.in_flight,
            counts=self._metrics.snapshot(),
            ruling=Ruling(self._follower.schedule.price, self._plan_number),
            spent=None if self._shares is None else self._shares.spent(),
            loans=self._sites.loans(at + others.lease_s) if self._lends else (),
            parts=self._sites.parts() if self._lends else None,
            lacks_room=self._progress.lacks_room,
        )
        return partial(others.carry_out, beat)

    def heard(self, beaten: Beaten) -> None:
        """A heartbeat is through: drop what is others' now, and only then go on sending."""
        others = self._others
        assert others is not None
        batch = self._gathered()
        self._sites.heard(beaten, batch)
        others.take_in(beaten)
        if self._lends:
            self._sites.borrow(beaten.borrowed, batch)
            if borrowers := others.borrowers():
                ends_at = others.loan_end(batch.at)
                until = batch.at + others.lease_s
                self._sites.lend(borrowers, unused_s=others.unused_s(), at=batch.at, until=until, ends_at=ends_at)
        if self._shares is not None and beaten.beat.spent is not None:
            self._sites.wake(self._shares.take_in(beaten.colony.spent, beaten.beat.spent))
        self._follower.share = self._progress.share = others.share()
        if beaten.plan is not None:
            self._plan_number = plan_number(beaten.plan)
        self._follower.obey(beaten.plan, None if beaten.ruling is None else beaten.ruling.price)
        mine = len(self._sites.leases())
        if others.counts and others.colony.short != self._short:
            self._short = others.colony.short
            logger.warning("Of %d ants %d have no room left on their disks", others.colony.ants, self._short)
        if self._progress.lacks_room and others.colony.short < others.colony.ants:
            self.share_out(mine)
        elif mine > others.fair() * _UNEVEN + _FEW:
            self.share_out(mine - int(others.fair()))

    def share_out(self, surplus: int) -> None:
        """Leave whole addresses with about so many sites to the other ants."""
        self._sites.shed(surplus)

    def freshness(self) -> float | None:
        """Estimated share of the known pages whose copy is as they are, None when not known; for the worker thread.

        As what the fetches found makes one believe, else by the buckets of the census.
        """
        if (believed := self._worker.outlook()) is not None:
            return 1.0 - believed.share
        never_crawled = self._progress.stored.pages["never-crawled"]
        at, census = self._clock.now(), self._store.census()
        return freshness(census, never_crawled=never_crawled, at=at, fastest_s=self._store.fastest_s)

    def planning(self) -> Callable[[], Plan | None] | None:
        """A plan to be made, as a call for a thread of its own; told once. Its result goes to `adopt`."""
        taken, self._taken = self._taken, None
        return None if taken is None or self._controller is None else partial(self._controller.plan_from, taken)

    def adopt(self, plan: Plan | None) -> None:
        """Put a plan in force, and into the store with the next batch; None, when planning failed, keeps the last."""
        self._follower.adopt(plan)
        if self._controller is not None:
            self._controller.planned(plan)
        if plan is not None:
            self._batch.plan = encode_plan(plan)
            self._plan_number = plan_number(self._batch.plan)

    def close(self) -> None:
        """Park the sites, give leases back, close repository and store. After the last `absorb`."""
        self._reader.close()
        self._suspects.close()
        batch = self._gathered()
        claimed = self._sites.open_times(batch.at)
        self._sites.leave_all(batch)
        self._store.release(batch.released)
        self._store.park(batch.parked, at=batch.at)
        if self._store.claims is not None:
            self._worker.post(self._store.claims, batch)
        if self._others is not None:
            self._others.leave(claimed, at=batch.at)
        if self._importance is not None:
            self._importance.share_words(self._store, at=inf)
            self._importance.close()
        if self._detector is not None:
            self._detector.close()
        if self._replacement is not None:
            self._replacement.close()
        if self._repository is not None:
            self._repository.close()
        self._store.close()


def _membership(
    store: FrontierStore,
    config: FountainConfig,
    *,
    owner: str,
    start: float,
    plans: bool,
    reaches: Callable[[int], bool] | None,
    steady: Callable[[], float],
    cpu: Callable[[], float],
) -> Membership | None:
    """This process as one of several ants; None where the store is its alone."""
    if store.claims is None:
        return None
    return Membership(
        store,
        store.claims,
        owner=owner,
        heartbeat_s=config.heartbeat_seconds,
        start=start,
        plans=plans,
        reaches=reaches,
        steady=steady,
        cpu=cpu,
    )


def _review(collection: Collection, store: FrontierStore, judge: Judge) -> Review | None:
    """The review of what is known under an edited policy file, begun; None for a collection without a file."""
    if not collection.text:
        return None
    store.put_value(COLLECTION, CollectionInForce.encode(collection))
    review = Review(store, judge)
    review.begin(collection)
    return review


def _told(suspects: Suspects, metrics: Metrics) -> Suspects:
    """The suspects, once the log and the counts say of those that the last process left."""
    if found := suspects.found:
        metrics.inc("suspects/found", len(found))
        logger.warning("The last process died over %d pages; they go last in their sites: %s", len(found), found[0])
    return suspects


def _replacement(collection: Collection, store: FrontierStore, importance: LiveImportance | None) -> Replacement | None:
    """What keeps a collection at its fixed size; None for one that grows."""
    most = collection.limits.pages
    if most is None:
        return None
    weigh = None if importance is None else importance.worth_of_holding
    return Replacement(store, most=most, period_s=collection.cycle.period_s, weigh=weigh)


def _domain_shares(collection: Collection, *, start: float, metrics: Metrics) -> DomainShares | None:
    """What bounds the shares of domains; None where nothing does."""
    share, cycle = collection.limits.domain_share, collection.cycle
    if share is None:
        return None
    capacity = cycle.capacity_pages_per_period
    return DomainShares(share, period_s=cycle.period_s, capacity=capacity, start=start, metrics=metrics)


def _detector(
    collection: Collection,
    index: DuplicateIndex,
    store: FrontierStore,
    text_of: Callable[[PageRecord], str | None],
) -> DuplicateDetector:
    """The duplicate detector of a collection."""
    return DuplicateDetector(
        index,
        store=store,
        text_of=text_of,
        resemblance=collection.duplicates.resemblance,
        revisit_s=min(collection.duplicates_revisit_s, bounds_of(collection).longest),
    )
