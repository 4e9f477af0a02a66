"""The crawler without Scrapy: what to fetch next, what became of it, and the work between loop and worker thread.

A facade over the ant (who may be asked), the errands (robots.txt, sitemaps), the examiner (what a page says), the
clerk (store and repository) and the progress (whether to go on). The loop thread calls `next`, `landed`, `finish`,
`take_work` and `absorb`, which are cheap and do no I/O; the worker thread calls `run`; `examine` may run anywhere.
Time comes from a `Clock`, so a year passes in a test.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.core.change_rate import Prior
from webfountain.formats.links import LinkExtractor
from webfountain.frontier.agenda import Agenda, chores
from webfountain.frontier.pages.duplicates import DuplicateEliminator
from webfountain.frontier.pages.examiner import Examiner, Visit, acknowledged, counts_of, leased, old_text
from webfountain.frontier.pages.sitemaps import SitemapShelf
from webfountain.frontier.planning.controller import Controller
from webfountain.frontier.planning.follower import PlanFollower, plans
from webfountain.frontier.planning.plan import encode_plan
from webfountain.frontier.planning.urgent_pages import urgent_pages_of
from webfountain.frontier.progress import Progress
from webfountain.frontier.sites.ant import Ant
from webfountain.frontier.sites.arrivals import Arrivals
from webfountain.frontier.sites.errands import Errands
from webfountain.frontier.sites.orders import Orders
from webfountain.frontier.sites.site import largest_hand
from webfountain.frontier.store_worker import Clerk, Done, Refusal, Work
from webfountain.policy.judge import Judge
from webfountain.sandbox.reader import FencedReader
from webfountain.store.contract import PLAN

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from webfountain.clock import Clock
    from webfountain.config import FountainConfig
    from webfountain.frontier.inbox import Inbox
    from webfountain.frontier.planning.plan import Plan
    from webfountain.frontier.progress import FrontierStatistics
    from webfountain.frontier.store_worker import CensusTaken
    from webfountain.metrics import Metrics
    from webfountain.policy.files import Collection
    from webfountain.records import Fetch, Fetched, Lease, Link, OutcomeKind
    from webfountain.repository.pages import Repository
    from webfountain.store.contract import BucketCensus, FrontierStore

__all__ = ["Frontier"]

logger = logging.getLogger(__name__)

PRIOR_PERIODS: Final = 10.0
"""Believed mean change interval, in periods, of the pages of a site that nothing is known of."""


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
        self._prior_s = PRIOR_PERIODS * collection.cycle.period_s
        self.judge = Judge(collection, year=time.gmtime(clock.now()).tm_year)
        self._follower = PlanFollower(collection, metrics=metrics, start=clock.now(), recrawl=recrawl)
        last = self._follower.resume(store.value(PLAN))
        planning = plans(collection, recrawl=recrawl)
        self._controller = Controller(collection, start=clock.now(), last=last) if planning else None
        most_ahead = largest_hand(collection.cycle.capacity_pages_per_period, collection.cycle.period_s)
        self._ant = Ant(
            politeness=collection.politeness,
            schedule=lambda: self._follower.schedule,
            now=clock.now,
            rng=rng,
            metrics=metrics,
            active_sites=config.active_sites,
            hand=min(config.hand, most_ahead),
            largest_hand=most_ahead,
        )
        self._errands = Errands(
            ant=self._ant,
            collection=collection,
            judge=self.judge,
            metrics=metrics,
            rng=rng,
            obey_robots=obey_robots,
            robot=robot,
        )
        self._reader = FencedReader(
            LinkExtractor(nofollow=collection.discovery.nofollow, robot=collection.politeness.robots_token)
        )
        self._examiner = Examiner(
            collection=collection,
            judge=self.judge,
            reader=self._reader,
            old_text=partial(old_text, repository, self._reader),
        )
        self.due = DuplicateEliminator(store, size=config.cache_urls)
        self._clerk = Clerk(
            store=store,
            repository=repository,
            due=self.due,
            sitemaps=SitemapShelf(
                self.judge, believe_dates=collection.signals.lastmod, read_file=self._reader.read_sitemap
            ),
            inbox=inbox,
            owner=owner,
            lease_s=config.lease_seconds,
            urgent=urgent_pages_of(collection, recrawl=recrawl),
        )
        self._next_work = Work(clock.now())
        self._arrivals = Arrivals(
            ant=self._ant,
            errands=self._errands,
            examiner=self._examiner,
            judge=self.judge,
            follower=self._follower,
            collection=collection,
            metrics=metrics,
            clock=clock,
            gather=lambda: self._next_work,
            patient=recrawl,
            ignores_robots=ignores_robots,
        )
        self._agenda = Agenda(chores(config.lease_seconds, collection.cycle.period_s), start=clock.now())
        self._orders = Orders(
            ant=self._ant,
            errands=self._errands,
            follower=self._follower,
            controller=self._controller,
            agenda=self._agenda,
        )
        self._progress = Progress(
            ant=self._ant,
            gather=lambda: self._next_work,
            config=config,
            cycle=collection.cycle,
            stored=store.statistics(),
            start=clock.now(),
        )
        self._taken: CensusTaken | None = None

    # ---------------------------------------------------------- loop thread

    def next(self) -> Fetch | None:
        """What to request now: a page, a robots.txt or a sitemap. None when nothing may be asked at this moment."""
        at = self._clock.now()
        if self._progress.open_at() > at:
            return None
        fetch = self._ant.next(at)
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
        due = max(self._ant.wake_at(), self._progress.open_at())
        return None if due == inf else due

    def landed(self, fetched: Fetched) -> None:
        """A download ended, whatever its end. Exactly once for each fetch that `next` gave."""
        site = self._ant.landed(fetched)
        kind = fetched.fetch.kind
        if kind == "page":
            self._arrivals.landed(site, fetched)
            return
        site.expected -= 1
        if self._repository is not None and self._repository.keep_answers:
            self._next_work.answers.append(fetched)
        if kind == "robots":
            self._metrics.inc("robots/fetched")
            self._errands.robots_landed(site, fetched)
            self._arrivals.let_go(site)
        elif fetched.status == 200:
            self._next_work.sitemaps.append(fetched)
        else:
            self._metrics.inc("sitemap/failed")
        self._arrivals.landed(site, fetched)
        self._ant.look(site)

    def unasked(self, fetch: Fetch) -> None:
        """A page that `next` gave is not requested after all, instead of `landed`: nobody has to wait for it."""
        self._ant.unasked(fetch, self._clock.now())

    def keep(self, lease: Lease) -> None:
        """The lease of a page that has landed is not settled for a while, or in this run. The crawl does not wait
        for it, and its site takes nobody's place on the active list."""
        self._ant.kept[lease.id] = lease.site

    def unkeep(self, lease: Lease) -> None:
        """The lease is settled now."""
        del self._ant.kept[lease.id]

    def examine(self, fetched: Fetched) -> Visit:
        """What a fetch means for its page. Any thread but the loop's, for it may take seconds; changes nothing."""
        try:
            return self._examiner.examine(fetched, self._prior(fetched.fetch.site))
        except Exception as error:
            return self._broken(fetched, error)

    def examine_at_once(self, fetched: Fetched) -> Visit | None:
        """As `examine`, where that takes some milliseconds whatever the body holds; else None."""
        try:
            return self._examiner.examine_at_once(fetched, self._prior(fetched.fetch.site))
        except Exception as error:
            return self._broken(fetched, error)

    async def examine_apart(self, fetched: Fetched) -> Visit:
        """As `examine`, in a thread that is kept for it."""
        return await self._reader.run(partial(self.examine, fetched), size=len(fetched.body))

    def cut_short(self) -> None:
        """Whatever is examined now need not be: the crawl ends, and what was not examined is asked for again."""
        self._reader.close()

    def _broken(self, fetched: Fetched, error: Exception) -> Visit:
        """One page that nobody foresaw is one failed page, and a line for whoever mends it."""
        logger.error("A page could not be examined (%r): %s", error, fetched.fetch.url)
        return self._examiner.broken(fetched)

    def finish(self, visit: Visit) -> None:
        """The spider is done with a page. Exactly once for each page fetch: queued to be written and settled."""
        site = self._ant.sites[visit.fetch.site]
        if visit.record.checks > leased(visit.fetch).checks:
            site.changes += visit.kind == "changed"
            site.watched += visit.watched
        self._arrivals.due_again(site, visit.record)
        self._next_work.visits.append(visit)
        self._progress.wait_for_worker(visit)
        for name, many in counts_of(visit):
            self._metrics.inc(name, many)

    def acknowledge(self, fetch: Fetch, *, status: int | None, error: str | None, seconds: float = 0.0) -> None:
        """Another project's spider is done with its request (instead of `examine` and `finish`)."""
        assert fetch.lease is not None
        record = acknowledged(fetch.lease.record, status=status, error=error, at=self._clock.now())
        kind: OutcomeKind = "new" if error is None else "failed"
        self._next_work.refusals.append(Refusal(fetch.lease, kind, record, seconds, asked=True))
        self._metrics.inc(f"outcome/{kind}")

    def unresolved(self) -> list[str]:
        """Host names whose addresses are needed; each is told once until `resolved`."""
        return self._ant.unresolved()

    def resolved(self, host: str, addresses: Sequence[str], *, error: str | None = None) -> None:
        """The addresses of a host name, or none and why."""
        self._arrivals.resolved(host, addresses, error=error or "dns")

    def detour(self, fetch: Fetch, address: str) -> float:
        """A fetch under way has no answer at its address and would go on at another one of its host.

        Returns the seconds that it must wait before it asks again, 0.0 when it may go on there.
        """
        return self._ant.detour(fetch, address, self._clock.now())

    def offer(self, link: Link) -> None:
        """Another project's request on its way to the store."""
        self._next_work.offers.append(link)

    def stop(self) -> None:
        """Hand out nothing more; what is in flight may still land and be finished."""
        self._progress.stopped = True

    def has_pending(self) -> bool:
        """Whether any URL is left to ask once: never-crawled, leased or offered."""
        return self._progress.has_pending()

    def finish_reason(self) -> str | None:
        """Why the crawl should close now; None: it goes on."""
        return self._progress.finish_reason(self._clock.now())

    @property
    def plan(self) -> Plan | None:
        """The plan in force; None before the first."""
        return self._follower.plan

    def statistics(self) -> FrontierStatistics:
        """A frozen snapshot."""
        return self._progress.statistics()

    # ------------------------------------------------- between the two threads

    def take_work(self) -> Work | None:
        """The next batch for the worker; None when there is nothing to do or one is out."""
        if self._progress.working:
            return None
        at = self._clock.now()
        work = self._next_work
        work.at = at
        if not self._progress.stopped:
            self._orders.write(
                work,
                at,
                congested=self._progress.congested(),
                immediate=bool(self._progress.stored.immediate),
                idling=self._config.until_idle and not self._progress.busy(),
            )
        self._orders.let_leave(work, at)
        if not work.is_needed():
            return None
        self._next_work = Work(at)
        self._progress.working = True
        return work

    def run(self, work: Work) -> Done:
        """Carry out a batch; the worker thread's only call. Store and repository errors pass through."""
        return self._clerk.run(work)

    def absorb(self, done: Done) -> None:
        """Take in what a batch brought about."""
        self._progress.absorb(done)
        work, at = done.work, self._clock.now()
        for name, many in done.counts.items():
            self._metrics.inc(name, many)
        self._orders.sites_due = inf if done.next_site_due is None else done.next_site_due
        self._taken = done.census or self._taken
        self._follower.rank(done.ranked)
        for name, many in done.settled.items():
            if (site := self._ant.sites.get(name)) is not None:
                site.expected -= many
                self._ant.look(site)
        for site in self._ant.admit(done.activated):
            self._arrivals.greet(site, at)
        for lease in done.renewed:
            if (site := self._ant.sites.get(lease.site)) is not None:
                site.lease = lease
        for urgent in done.immediate:
            self._arrivals.hurry(urgent)
        for deal in done.deals:
            self._metrics.inc("ant/leased", len(deal.never_crawled) + len(deal.recrawl))
            self._arrivals.take_deal(deal, at)
        self._metrics.inc("ant/released", len(work.released))
        self._recall(done)
        self._ant.freshen(done.fresh)
        for read in done.sitemaps:
            if (site := self._ant.sites.get(read.site)) is not None:
                self._errands.send_for_sitemaps(site, read.children, at)
                self._ant.look(site)

    def _recall(self, done: Done) -> None:
        """Give back the hands in which others go before what was leased, or something leased is immediate now."""
        for name in sorted({*done.hurried, *done.overtaken} & self._ant.sites.keys()):
            site = self._ant.sites[name]
            self._next_work.released += self._ant.recall(site)
            if name in done.overtaken:
                self._next_work.released += self._ant.empty_hand(site)

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
            self._next_work.plan = encode_plan(plan)

    def close(self) -> None:
        """Park the sites, give leases back, close repository and store. After the last `absorb`."""
        at = self._clock.now()
        self._reader.close()
        parted = [self._ant.leave(site, at) for site in list(self._ant.sites.values())]
        self._store.release([lease for left in parted for lease in left.unused])
        self._store.park([left.parked for left in parted], at=at)
        if self._repository is not None:
            self._repository.close()
        self._store.close()

    def _prior(self, name: str) -> Prior:
        """What is believed of the change rates of a site's pages."""
        site = self._ant.sites.get(name)
        return Prior(self._prior_s) if site is None else site.prior(self._prior_s)
