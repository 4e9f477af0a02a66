"""Build the store worker of a crawl: decide which stages the worker has, and in which order they work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.duplicates.detector_stage import DetectorStage
from webfountain.frontier.cluster.claims import AntStage, OwnGuests
from webfountain.frontier.inbox.inboxes import InboxStage
from webfountain.frontier.pages.guarded_examiner import SuspectStage
from webfountain.frontier.pages.review_stage import ReviewStage
from webfountain.frontier.pages.seed_forms import SeedForms, SharedSeedForms
from webfountain.frontier.pages.sitemap_reader import SitemapStage, every_later
from webfountain.frontier.planning.earlier_due_times import ParkedSites
from webfountain.frontier.planning.urgent_pages import UrgencyStage
from webfountain.frontier.stage import Stages
from webfountain.frontier.worker.copies import CopyWriter, DiskRoom, LostCopies, RepositoryCopyWriter, Takedowns
from webfountain.frontier.worker.settlement import Discovery, LearnedSites, LossRecovery, Settlement
from webfountain.frontier.worker.store_worker import ChangeLogTrim, Leasing, StoreWorker, counts_of
from webfountain.ranking.importance_stage import ImportanceStage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from webfountain.config import FountainConfig
    from webfountain.duplicates.detector import DuplicateDetector
    from webfountain.frontier.inbox.notes import Notes
    from webfountain.frontier.inbox.seeds import Entrance
    from webfountain.frontier.pages.extra_visits import ExtraVisits
    from webfountain.frontier.pages.fixed_size import Replacement
    from webfountain.frontier.pages.policy_review import Review
    from webfountain.frontier.pages.sitemap_reader import SitemapParser
    from webfountain.frontier.planning.urgent_pages import UrgentPages
    from webfountain.frontier.stage import Stage
    from webfountain.policy.collection import Collection
    from webfountain.ranking.link_importance import LiveImportance
    from webfountain.repository.repository import Repository
    from webfountain.sandbox.crash_guard import CrashSuspects
    from webfountain.store.contract import FrontierStore

__all__ = ["WorkerAssembly"]


class WorkerAssembly:
    """Builds the store worker of the process `owner`."""

    def __init__(
        self,
        store: FrontierStore,
        repository: Repository | None,
        *,
        entrance: Entrance,
        owner: str,
        lease_s: float,
    ) -> None:
        self._store = store
        self._repository = repository
        self._entrance = entrance
        self._owner = owner
        self._lease_s = lease_s
        self._counts = counts_of(store, owner=owner)
        self._copies = CopyWriter() if repository is None else RepositoryCopyWriter(repository, store)
        self._takedowns = Takedowns(store, self._copies)
        self._discovery = Discovery(entrance.due)
        self._learned = LearnedSites()

    def with_features(
        self,
        *,
        inbox: Notes | None,
        importance: LiveImportance | None,
        detector: DuplicateDetector | None,
        review: Review | None,
        urgent: UrgentPages | None,
        fixed_size: Replacement | None,
        extra_visits: ExtraVisits | None,
    ) -> Self:
        """Set the optional features. None means that the feature is switched off."""
        self._inbox = inbox
        self._importance = importance
        self._detector = detector
        self._review = review
        self._urgent = urgent
        self._fixed_size = fixed_size
        self._extra_visits = extra_visits
        return self

    def worker(
        self,
        collection: Collection,
        config: FountainConfig,
        suspects: CrashSuspects,
        sitemaps: SitemapParser,
    ) -> StoreWorker:
        """Build the store worker."""
        store, entrance, fixed_size = self._store, self._entrance, self._fixed_size
        stages = Stages(self._stages(collection, config, suspects, sitemaps))
        # A store without a server never goes back in time.
        recoveries = () if store.claims is None else (LossRecovery(store.lives, entrance.due, stages),)
        settlement = Settlement(
            store,
            stages=stages,
            copies=self._copies,
            discovery=self._discovery,
            learned=self._learned,
            takedowns=self._takedowns,
            recoveries=recoveries,
            period_s=collection.cycle.period_s,
        )
        lease_pages = (lambda refills, _: store.queues.lease(refills)) if fixed_size is None else fixed_size.lease
        return StoreWorker(
            store,
            stages=stages,
            settlement=settlement,
            leasing=Leasing(store, stages=stages, lease_pages=lease_pages, owner=self._owner, lease_s=self._lease_s),
            counts=self._counts,
            recoveries=recoveries,
            outlook=_no_outlook if self._urgent is None else self._urgent.forecast.outlook,
            entrance=entrance,
        )

    def _stages(
        self, collection: Collection, config: FountainConfig, suspects: CrashSuspects, sitemaps: SitemapParser
    ) -> list[Stage]:
        """Return the stages, in order."""
        store, repository = self._store, self._repository
        known = self._counts.last
        among_ants = self._among_ants()
        stages: list[Stage] = [self._copies, *among_ants]
        if self._detector is not None:
            stages.append(DetectorStage(self._detector, store))
        stages.append(self._discovery)
        stages.append(SitemapStage(sitemaps, store, self._discovery, due=_due_by_dates(collection, self._urgent)))
        if self._inbox is not None:
            stages.append(self._inbox_stage(self._inbox, among_ants[0]))
        stages.append(SuspectStage(suspects, store))
        if self._review is not None:
            stages.append(ReviewStage(self._review, store, self._entrance.judge, self._entrance.due))
        if repository is not None:
            stages.append(LostCopies(repository))
            stages.append(DiskRoom(repository, store, least_free=config.least_free_bytes))
        if self._urgent is not None:
            weighed = iter if self._importance is None else self._importance.weighed
            stages.append(UrgencyStage(self._urgent, store, learned=self._learned, known=known, weighed=weighed))
        stages.append(self._learned)
        if self._fixed_size is not None:
            stages.append(self._fixed_size)
        if self._extra_visits is not None:
            stages.append(self._extra_visits)
        if self._importance is not None:
            stages.append(ImportanceStage(self._importance, store, known))
        stages.append(ParkedSites(store, owner=self._owner, lease_s=self._lease_s))
        stages.append(ChangeLogTrim(store.changes, collection.changes))
        return stages

    def _among_ants(self) -> list[Stage]:
        """Return the stages that depend on whether other ants can use the store."""
        store, claims, owner, lease_s = self._store, self._store.claims, self._owner, self._lease_s
        if claims is None:
            return [OwnGuests(store), SeedForms(store.board, self._entrance.judge)]
        left_behind = None if self._repository is None else self._repository.others
        ants = AntStage(claims, store, self._takedowns, owner=owner, lease_s=lease_s, left_behind=left_behind)
        return [ants, SharedSeedForms(store.board, self._entrance.judge)]

    def _inbox_stage(self, inbox: Notes, first: Stage) -> InboxStage:
        others = first if isinstance(first, AntStage) else None
        return InboxStage(inbox, self._store, self._repository, self._takedowns, owner=self._owner, others=others)


def _due_by_dates(
    collection: Collection, urgent: UrgentPages | None
) -> Callable[[str, Mapping[bytes, bool]], list[bytes]]:
    """Return the function that decides which pages become due because of dates in sitemaps."""
    if urgent is not None:
        return urgent.receive_dates
    if collection.cycle.capacity_pages_per_period is None:
        return every_later
    from webfountain.core.page_dates import distinguishing  # noqa: PLC0415  (numpy)

    return lambda _, later: distinguishing(later)


def _no_outlook() -> None:
    """Return None, because this crawl does not use urgency."""
