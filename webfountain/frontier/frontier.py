"""The crawler without Scrapy: what to fetch next, what became of it, and the work between loop and worker thread.

A facade over the active list (who may be asked), the examiner (what a page says), the store worker (store and
repository), the plan's follower and the progress (whether to go on). The loop thread calls `next`, `landed`, `finish`,
`take_work` and `absorb`, which are cheap and do no I/O; the worker thread calls `run`; `examine` may run anywhere.
Time comes from a `Clock`, so a year passes in a test.
"""

from __future__ import annotations

import functools
import itertools
import logging
import time
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.core.change_rate import Prior
from webfountain.formats.links import LinkExtractor
from webfountain.formats.robots import RobotsRules
from webfountain.frontier.agenda import Agenda, chores
from webfountain.frontier.batch import Batch
from webfountain.frontier.pages.duplicates import DuplicateEliminator
from webfountain.frontier.pages.examiner import Examiner, Visit, acknowledged, counts_of, old_text
from webfountain.frontier.pages.sitemaps import SitemapShelf
from webfountain.frontier.pages.suspects import Suspects
from webfountain.frontier.planning.controller import Controller
from webfountain.frontier.planning.follower import PlanFollower, plans
from webfountain.frontier.planning.plan import encode_plan
from webfountain.frontier.planning.urgent_pages import urgent_pages_of
from webfountain.frontier.progress import FrontierStatistics, Progress
from webfountain.frontier.sites.active_list import ActiveList
from webfountain.frontier.sites.hand import largest_hand
from webfountain.frontier.sites.site import PRIOR_PERIODS, SiteContext
from webfountain.frontier.store_worker import StoreWorker
from webfountain.policy.judge import Judge
from webfountain.sandbox.reader import FencedReader
from webfountain.store.contract import PLAN, PRICE

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from webfountain.clock import Clock
    from webfountain.config import FountainConfig
    from webfountain.frontier.batch import BatchResult, CensusTaken
    from webfountain.frontier.inbox import Inbox
    from webfountain.frontier.planning.plan import Plan
    from webfountain.frontier.sites.site import SiteStatistics
    from webfountain.metrics import Metrics
    from webfountain.policy.files import Collection
    from webfountain.records import Fetch, Fetched, Lease, Link
    from webfountain.repository.pages import Repository
    from webfountain.store.contract import BucketCensus, FrontierStore

__all__ = ["Frontier"]

logger = logging.getLogger(__name__)

_ROBOTS_MEMO: Final = 1024
"""Sites whose parsed rules are kept: many sites have the same robots.txt."""


class Frontier:
    """One crawling process. Built with an open store (and repository); `close` closes them.

    `owner` names this process in leases. `recrawl` False asks every page once; `obey_robots` False is for a project
    that chose so, `ignores_robots` tells it of one of its requests (`Link.request`), `robot` is the name, or the whole
    User-Agent, by which it looks up the groups of robots.txt. Seeds are loaded by the caller (`seeds`).
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
        inbox: Inbox | None = None,
        suspects: Suspects | None = None,
        recrawl: bool = True,
        obey_robots: bool = True,
        robot: str | None = None,
        ignores_robots: Callable[[bytes], bool] = lambda _: False,
    ) -> None:
        self._clock = clock
        self._store = store
        self._repository = repository
        self._metrics = metrics
        self._config = config
        start, cycle = clock.now(), collection.cycle
        self.judge = Judge(collection, year=time.gmtime(start).tm_year)
        self._follower = PlanFollower(collection, metrics=metrics, start=start, recrawl=recrawl)
        last = self._follower.resume(store.value(PLAN), store.value(PRICE))
        self._controller = (
            Controller(collection, start=start, last=last) if plans(collection, recrawl=recrawl) else None
        )
        self._suspects = Suspects(None) if suspects is None else suspects
        if found := self._suspects.found:
            metrics.inc("suspects/found", len(found))
            logger.warning("The last process died over %d pages; they go last in their sites: %s", len(found), found[0])
        self._reader = FencedReader(
            LinkExtractor(nofollow=collection.discovery.nofollow, robot=collection.politeness.robots_token)
        )
        self._examiner = Examiner(
            collection=collection,
            judge=self.judge,
            reader=self._reader,
            old_text=partial(old_text, repository, self._reader),
        )
        most_ahead = largest_hand(cycle.capacity_pages_per_period, cycle.period_s)
        context = SiteContext(
            collection=collection,
            judge=self.judge,
            examiner=self._examiner,
            follower=self._follower,
            metrics=metrics,
            clock=clock,
            rng=rng,
            numbers=itertools.count(1),
            parse_robots=functools.lru_cache(_ROBOTS_MEMO)(
                partial(RobotsRules.parse, token=robot or collection.politeness.robots_token)
            ),
            hand=min(config.hand, most_ahead),
            largest_hand=most_ahead,
            patient=recrawl,
            obey_robots=obey_robots,
            ignores_robots=ignores_robots,
        )
        self._sites = ActiveList(context, size=config.active_sites)
        self._believed = Prior(PRIOR_PERIODS * cycle.period_s)
        self.due = DuplicateEliminator(store, size=config.cache_urls)
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
            lease_s=config.lease_seconds,
            log=collection.changes,
            urgent=urgent_pages_of(collection, recrawl=recrawl),
        )
        self._agenda = Agenda(chores(config.lease_seconds, cycle.period_s), start=start)
        self._progress = Progress(config, cycle, stored=store.statistics(), start=start)
        self._batch = Batch(start)
        self._sites_due = -inf  # when the first site that is not active is due, as the store said last
        self._taken: CensusTaken | None = None

    # ---------------------------------------------------------- loop thread

    def next(self) -> Fetch | None:
        """What to request now: a page, a robots.txt or a sitemap. None when nothing may be asked at this moment."""
        at = self._clock.now()
        if self._progress.open_at() > at:
            return None
        fetch = self._sites.next(at)
        if fetch is not None:
            self._metrics.inc("fetch/started")
            if fetch.kind == "page":
                self._spend(fetch, at)
        return fetch

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
                return self._examiner.examine(fetched, self._prior(fetched.fetch.site))
        except Exception as error:
            return self._broken(fetched, error)

    def examine_at_once(self, fetched: Fetched) -> Visit | None:
        """As `examine`, where that takes some milliseconds whatever the body holds; else None."""
        url = fetched.fetch.url
        if not self._suspects.may_examine_at_once(url):
            return None
        try:
            with self._suspects.examining(url):
                return self._examiner.examine_at_once(fetched, self._prior(fetched.fetch.site))
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

    def _prior(self, site: str) -> Prior:
        """What is believed of the change rates of a site's pages."""
        return self._sites.prior(site) or self._believed

    def finish(self, visit: Visit) -> None:
        """The spider is done with a page. Exactly once for each page fetch: queued to be written and settled."""
        if self._sites.finished(visit, self._gathered()):
            self._progress.wait_for_worker(visit)
            for name, many in counts_of(visit):
                self._metrics.inc(name, many)

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

    def adopt_collection(self, collection: Collection) -> None:
        """Go on under an edited policy file: what its judge refuses is not asked from the next request on.

        Its seeds are loaded by the caller, as at the start.
        """
        self.judge.adopt(collection)
        self._sites.judge_again(self._gathered())

    def stop(self) -> None:
        """Hand out nothing more; what is in flight may still land and be finished."""
        self._progress.stopped = True

    def has_pending(self) -> bool:
        """Whether any URL is left to ask once: never-crawled, leased or offered."""
        return self._progress.has_pending(self._sites, self._batch)

    def finish_reason(self) -> str | None:
        """Why the crawl should close now; None: it goes on."""
        return self._progress.finish_reason(self._clock.now(), self._sites, self._batch)

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
        if not self._progress.stopped:
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
        idling = self._config.until_idle and not self._progress.is_busy(sites, batch)
        sites.ripen(batch)
        if agenda.due("robots", at):
            sites.renew_robots(batch)
        if agenda.due("renew", at):
            sites.renew_leases(batch)
        self._follow_plan(batch)
        if not self._progress.congested():
            sites.refill(batch)
        sites.invite(batch)
        batch.inbox = agenda.due("inbox", at)
        batch.tidy = agenda.due("tidy", at)
        batch.immediate = batch.inbox or bool(self._progress.stored.immediate)
        if self._sites_due <= at:
            batch.room = sites.room()
        if idling:
            batch.look_for_waiting = agenda.due("waiting", at)

    def _follow_plan(self, batch: Batch) -> None:
        """The price, more pages where too few were due, and the census when it is time to plan."""
        starved = self._sites.is_starved()
        batch.price = self._follower.schedule.price
        if short := self._follower.check(batch.at, starved=starved):
            self._sites.refresh_soonest(short + 1, batch.at)
        if self._controller is not None:
            batch.census_since = self._controller.census_since(batch.at)

    def run(self, batch: Batch) -> BatchResult:
        """Carry out a batch; the worker thread's only call. Store and repository errors pass through."""
        return self._worker.run(batch)

    def absorb(self, result: BatchResult) -> None:
        """Take in what a batch brought about."""
        self._progress.absorb(result)
        for name, many in result.counts.items():
            self._metrics.inc(name, many)
        self._sites_due = inf if result.next_site_due is None else result.next_site_due
        self._taken = result.census or self._taken
        self._follower.hand_over(ranks=result.ranks, waiting=result.waiting)
        self._sites.take_in(result, self._gathered())

    def census(self) -> dict[int, BucketCensus]:
        """Crawled pages by bucket, as the store counts them now; for the worker thread."""
        return self._store.census()

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

    def close(self) -> None:
        """Park the sites, give leases back, close repository and store. After the last `absorb`."""
        self._reader.close()
        self._suspects.close()
        batch = self._gathered()
        self._sites.leave_all(batch)
        self._store.release(batch.released)
        self._store.park(batch.parked, at=batch.at)
        if self._repository is not None:
            self._repository.close()
        self._store.close()
