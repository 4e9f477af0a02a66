"""Build the frontier of a crawl: decide which parts a crawl has, and in which order they work.

`FrontierAssembly._orders` makes the list of orders, and `worker_assembly` makes the list of stages.
"""

from __future__ import annotations

import functools
import itertools
import logging
import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from webfountain.core.change_rate import Prior
from webfountain.core.url_cache import entries_within
from webfountain.duplicates.detector import detector_of
from webfountain.duplicates.url_dedup import DuplicateEliminator
from webfountain.formats.links import LinkExtractor
from webfountain.formats.robots import RobotsRules
from webfountain.frontier.cluster.heart import Heart
from webfountain.frontier.cluster.membership import LoneAnt, join_ants
from webfountain.frontier.cluster.term import steady_clock
from webfountain.frontier.frontier import Frontier
from webfountain.frontier.inbox.seeds import Entrance
from webfountain.frontier.orders import (
    Chores,
    IdleCheck,
    LimitReport,
    OpenBatch,
    Polls,
    RankTurns,
    ShareCheck,
    SiteSupply,
    WorkExchange,
    chores_of,
)
from webfountain.frontier.pages.examiner import Examiner
from webfountain.frontier.pages.extra_visits import extra_visits_of
from webfountain.frontier.pages.fixed_size import replacement_of
from webfountain.frontier.pages.guarded_examiner import GuardedExaminer
from webfountain.frontier.pages.page_comparison import comparison_of, old_text
from webfountain.frontier.pages.policy_review import review_of
from webfountain.frontier.pages.sitemap_reader import SitemapParser
from webfountain.frontier.planning.earlier_due_times import EarlierDueTimes
from webfountain.frontier.planning.plan import plan_number
from webfountain.frontier.planning.plan_follower import PlanFollower, plans
from webfountain.frontier.planning.planner import Controller, Planner
from webfountain.frontier.planning.urgent_pages import urgent_pages_of
from webfountain.frontier.progress import Progress
from webfountain.frontier.sites.active_list import ActiveList
from webfountain.frontier.sites.domain_shares import shares_of
from webfountain.frontier.sites.hand import largest_hand
from webfountain.frontier.sites.politeness import SitePace
from webfountain.frontier.sites.site_changes import PRIOR_PERIODS
from webfountain.frontier.sites.site_context import SiteContext
from webfountain.frontier.stage import Order, Orders
from webfountain.frontier.worker_assembly import WorkerAssembly
from webfountain.policy.judge import Judge
from webfountain.policy.scope import kept_forms
from webfountain.sandbox.crash_guard import CrashSuspects
from webfountain.sandbox.reader import FencedReader
from webfountain.store.contract import PLAN, PRICE

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from typing import Self

    from webfountain.clock import Clock
    from webfountain.config import FountainConfig
    from webfountain.duplicates.detector import DuplicateDetector
    from webfountain.duplicates.index import DuplicateIndex
    from webfountain.frontier.cluster.membership import Membership
    from webfountain.frontier.inbox.notes import Notes
    from webfountain.frontier.pages.extra_visits import ExtraVisits
    from webfountain.frontier.pages.fixed_size import Replacement
    from webfountain.frontier.pages.policy_review import Review
    from webfountain.frontier.sites.domain_shares import DomainShares
    from webfountain.frontier.worker.store_worker import StoreWorker
    from webfountain.metrics import Metrics
    from webfountain.policy.collection import Collection
    from webfountain.ranking.link_importance import LiveImportance
    from webfountain.repository.repository import Repository
    from webfountain.store.contract import FrontierStore

__all__ = ["FrontierAssembly"]

logger = logging.getLogger(__name__)

_ROBOTS_MEMO: Final = 1024
"""Largest number of parsed robots.txt files in memory."""
_SHORTEST_CHORE_S: Final = 60.0


class FrontierAssembly:
    """Builder of the parts of one crawling process. Each part is made when it is first needed.

    `Frontier.close` also closes the store and the repository. `owner` names this process in leases. The caller loads
    the seeds (`inbox.load_seeds`).
    """

    def __init__(
        self,
        store: FrontierStore,
        repository: Repository | None,
        collection: Collection,
        config: FountainConfig,
        *,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics,
        owner: str,
    ) -> None:
        self._store = store
        self._repository = repository
        self._collection = collection
        self._config = config
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._owner = owner
        self._start = clock.now()
        self._batches = OpenBatch(clock)
        self._steady: Callable[[], float] = steady_clock
        self._cpu: Callable[[], float] = time.process_time
        self._inbox: Notes | None = None
        self._suspects = CrashSuspects(None)
        self._importance: LiveImportance | None = None
        self._duplicates: DuplicateIndex | None = None
        self._recrawl = self._obeys_robots = True
        self._robot = collection.politeness.robots_token
        self._ignores_robots: Callable[[bytes], bool] = lambda _: False
        self._pace = SitePace()

    # -------------------------------------------------- what differs between crawls

    def with_features(
        self,
        *,
        inbox: Notes | None = None,
        suspects: CrashSuspects | None = None,
        importance: LiveImportance | None = None,
        duplicates: DuplicateIndex | None = None,
    ) -> Self:
        """Switch optional features on."""
        self._inbox = inbox
        self._importance = importance
        self._duplicates = duplicates
        if suspects is not None:
            self._suspects = suspects
        return self

    def for_project(
        self,
        *,
        recrawl: bool = True,
        obey_robots: bool = True,
        robot: str | None = None,
        ignores_robots: Callable[[bytes], bool] = lambda _: False,
        pace: SitePace | None = None,
    ) -> Self:
        """Set the options of a crawl that a Scrapy project's spider drives.

        Parameters
        ----------
        recrawl : False if every page is requested only once
        obey_robots : False if the project chose so
        robot : the name or User-Agent that selects the groups of robots.txt; by default the policy file's name
        ignores_robots : returns whether a request (`Link.request`) ignores robots.txt
        pace : delays and limits of sites; by default those of the policy file
        """
        self._recrawl = recrawl
        self._obeys_robots = obey_robots
        self._robot = robot or self._robot
        self._ignores_robots = ignores_robots
        self._pace = pace or self._pace
        return self

    def build(self) -> Frontier:
        """Return the frontier."""
        _report(self._suspects, self._metrics)
        sites, progress, others, metrics = self._sites, self._progress, self._others, self._metrics
        worker, orders = self._worker, Orders(self._orders())
        guards = (self._examiner, self._reader, self._suspects)
        return Frontier(
            WorkExchange(
                self._batches,
                sites=sites,
                progress=progress,
                others=others,
                orders=orders,
                metrics=metrics,
                judge=self._judge,
                is_unfinished=self._review is not None and not self._review.is_done,
            ),
            sites=sites,
            progress=progress,
            others=others,
            planner=self._planner,
            examiner=GuardedExaminer(*guards, sites=sites, progress=progress, robot=self._robot),
            worker=worker,
            heart=self._heart,
        )

    # -------------------------------------------------- the loop thread

    def _orders(self) -> list[Order]:
        """Return the loop-thread parts of all features, in the order in which they work."""
        sites, progress, others, start = self._sites, self._progress, self._others, self._start
        period_s = max(self._collection.cycle.period_s, _SHORTEST_CHORE_S)
        follower, polls = self._planner.follower, Polls(others, progress, rng=self._rng, start=start)
        orders: list[Order] = [sites.sites]
        if self._shares is not None:
            orders.append(ShareCheck(self._shares, sites))
        orders.append(Chores(chores_of(sites, others, self._shares, period_s), start=start))
        orders.append(LimitReport(progress, start=start))
        if plans(self._collection, recrawl=self._recrawl):
            orders.append(self._planner)
        orders.append(SiteSupply(sites, progress, others))
        if sites.claims is not None:
            orders.append(sites.claims)
        orders.append(polls)
        if self._importance is not None:
            orders.append(RankTurns(self._importance.weights, polls))
        if self._config.until_idle:
            orders.append(IdleCheck(progress, others))
        orders.append(EarlierDueTimes(follower, sites, others, every_s=period_s, start=start))
        if self._heart is not None:
            orders.append(self._heart)
        return orders

    @cached_property
    def _membership(self) -> Membership | None:
        """This process as one ant among several, or None if no other process can use the store."""
        if self._store.claims is None:
            return None
        return join_ants(
            self._store,
            self._store.claims,
            owner=self._owner,
            heartbeat_s=self._config.heartbeat_seconds,
            start=self._start,
            plans=plans(self._collection, recrawl=self._recrawl),
            reaches=None if self._repository is None else self._repository.reaches,
            steady=self._steady,
            cpu=self._cpu,
        )

    @cached_property
    def _others(self) -> Membership | LoneAnt:
        return self._membership or LoneAnt(self._owner, lease_s=self._config.lease_seconds)

    @cached_property
    def _heart(self) -> Heart | None:
        """The heartbeats, or None if no other process can use the store."""
        if self._membership is None:
            return None
        return Heart(
            self._membership,
            sites=self._sites,
            progress=self._progress,
            planner=self._planner,
            batches=self._batches,
            metrics=self._metrics,
            shares=self._shares,
            collection=self._collection,
        )

    @cached_property
    def _progress(self) -> Progress:
        stored = self._store.census.statistics()
        return Progress(self._config, self._collection.cycle, self._sites, stored=stored, start=self._start)

    @cached_property
    def _planner(self) -> Planner:
        """The planner, which starts from the plan in the store."""
        board, follower = self._store.board, self._context.follower
        last = follower.resume(board.value(PLAN), board.value(PRICE))
        controller = Controller(self._collection, start=self._start, last=last)
        number = plan_number(board.value(PLAN))
        return Planner(
            follower, controller, sites=self._sites, others=self._others, batches=self._batches, number=number
        )

    @cached_property
    def _sites(self) -> ActiveList:
        # With a budget, a ranking or a fixed size, a site needs a single writer (`cluster.loans`).
        is_single = self._collection.cycle.capacity_pages_per_period or self._importance or self._fixed_size
        lends = self._pace.lends and self._collection.politeness.concurrency > 1 and not is_single
        return ActiveList(self._context, size=self._config.active_sites, others=self._membership, lends=lends)

    @cached_property
    def _context(self) -> SiteContext:
        collection, cycle = self._collection, self._collection.cycle
        most_ahead = largest_hand(cycle.capacity_pages_per_period, cycle.period_s)
        if self._importance is not None:
            # Pages in a larger hand would be less important than newer ones.
            most_ahead = min(most_ahead, self._config.hand)
        return SiteContext(
            collection=collection,
            judge=self._judge,
            follower=PlanFollower(collection, metrics=self._metrics, start=self._start, recrawl=self._recrawl),
            metrics=self._metrics,
            clock=self._clock,
            rng=self._rng,
            numbers=itertools.count(1),
            parse_robots=functools.lru_cache(_ROBOTS_MEMO)(partial(RobotsRules.parse, token=self._robot)),
            hand=min(self._config.hand, most_ahead),
            largest_hand=most_ahead,
            believed=Prior(PRIOR_PERIODS * cycle.period_s),
            fastest_s=cycle.fastest_s,
            patient=self._recrawl,
            obey_robots=self._obeys_robots,
            importance=self._importance,
            ignores_robots=self._ignores_robots,
            shares=self._shares,
            pace=self._pace,
            keeps_answers=self._repository is not None and self._repository.keep_answers,
        )

    @cached_property
    def _shares(self) -> DomainShares | None:
        return shares_of(self._collection, start=self._start, metrics=self._metrics)

    # -------------------------------------------------- what both threads use

    @cached_property
    def _judge(self) -> Judge:
        year = time.gmtime(self._start).tm_year
        return Judge(self._collection, year=year, forms=kept_forms(self._store.board))

    @cached_property
    def _reader(self) -> FencedReader:
        nofollow, robot = self._collection.discovery.nofollow, self._collection.politeness.robots_token
        return FencedReader(LinkExtractor(nofollow=nofollow, robot=robot))

    @cached_property
    def _detector(self) -> DuplicateDetector | None:
        text_of = partial(old_text, self._repository, self._reader, self._judge)
        return detector_of(self._collection, self._duplicates, self._store, text_of)

    @cached_property
    def _extra_visits(self) -> ExtraVisits | None:
        return extra_visits_of(self._store, self._judge)

    @cached_property
    def _examiner(self) -> Examiner:
        order = None if self._extra_visits is None else self._extra_visits.order
        return Examiner(
            collection=self._collection,
            judge=self._judge,
            reader=self._reader,
            comparison=comparison_of(self._collection, self._repository, self._reader, order),
            **_examiner_features(self._detector, self._membership, self._importance),
        )

    # -------------------------------------------------- the worker thread

    @cached_property
    def _review(self) -> Review | None:
        return review_of(self._collection, self._store, self._judge)

    @cached_property
    def _fixed_size(self) -> Replacement | None:
        return replacement_of(self._collection, self._store, self._importance)

    @cached_property
    def _worker(self) -> StoreWorker:
        collection, importance, judge = self._collection, self._importance, self._judge
        urgent = urgent_pages_of(collection, recrawl=self._recrawl, windows=self._store)
        due = DuplicateEliminator(
            self._store,
            size=entries_within(self._config.cache_bytes),
            collection=collection,
            weigh=None if importance is None else importance.weigh,
        )
        entrance, lease_s = Entrance(judge, due), self._others.lease_s
        assembly = WorkerAssembly(
            self._store, self._repository, entrance=entrance, owner=self._owner, lease_s=lease_s
        ).with_features(
            inbox=self._inbox,
            importance=importance,
            detector=self._detector,
            review=self._review,
            urgent=urgent,
            fixed_size=self._fixed_size,
            extra_visits=self._extra_visits,
        )
        sitemaps = SitemapParser(judge, believe_dates=collection.signals.lastmod, read_file=self._reader.read_sitemap)
        return assembly.worker(collection, self._config, self._suspects, sitemaps)


def _report(suspects: CrashSuspects, metrics: Metrics) -> None:
    """Log and count the pages that a crashed process was reading."""
    if found := suspects.found:
        metrics.inc("suspects/found", len(found))
        logger.warning(
            "The last process crashed while it read %d pages; they are fetched after all other pages of their sites: "
            "%s",
            len(found),
            found[0],
        )


def _examiner_features(
    detector: DuplicateDetector | None, others: Membership | None, importance: LiveImportance | None
) -> dict[str, Any]:
    """Return the examiner's optional functions, one for each feature that is switched on."""
    found: dict[str, Any] = {}
    if detector is not None:
        found["duplicates"] = detector.share_of
    if others is not None:
        found["sketches"] = others.heartbeats.are_copies_apart
    if importance is not None:
        found |= {"topics": importance.words.topics, "unlogged": importance.is_unlogged}
    return found
