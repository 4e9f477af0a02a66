"""Rules and objects that all active sites of a crawl share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webfountain.frontier.inbox.blocks import BlockedUrls
from webfountain.frontier.sites.politeness import SitePace

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from webfountain.clock import Clock
    from webfountain.core.change_rate import Prior
    from webfountain.formats.robots import RobotsRules
    from webfountain.frontier.planning.plan_follower import PlanFollower
    from webfountain.frontier.sites.domain_shares import DomainShares
    from webfountain.metrics import Metrics
    from webfountain.policy.collection import Collection
    from webfountain.policy.judge import Judge
    from webfountain.ranking.link_importance import LiveImportance
    from webfountain.records import PageRecord

__all__ = ["SiteContext"]


@dataclass(slots=True, frozen=True)
class SiteContext:
    """Rules and objects that all active sites of a crawl share.

    - `patient`: whether pages of an unreachable site wait. If not, they fail, because a spider waits for their end.
    - `ignores_robots`: whether another project's stored request is exempt from robots.txt.
    - `numbers`: numbers of the fetches.
    - `believed`: assumed mean change interval of pages without observations.
    - `fastest_s`: mean change interval of bucket 0.
    - `keeps_answers`: whether robots.txt files and sitemaps are archived.
    """

    collection: Collection
    judge: Judge
    follower: PlanFollower
    metrics: Metrics
    clock: Clock
    rng: random.Random
    numbers: Iterator[int]
    parse_robots: Callable[[bytes], RobotsRules]
    hand: int
    largest_hand: int
    believed: Prior
    fastest_s: float
    patient: bool = True
    obey_robots: bool = True
    importance: LiveImportance | None = None
    ignores_robots: Callable[[bytes], bool] = lambda _: False
    shares: DomainShares | None = None
    pace: SitePace = field(default_factory=SitePace)
    blocked: BlockedUrls = field(default_factory=BlockedUrls)
    keeps_answers: bool = False

    def needs_links(self, record: PageRecord) -> bool:
        """Return whether a page must be fetched in full, because the link log does not have its links."""
        return self.importance is not None and self.importance.is_unlogged(record)
