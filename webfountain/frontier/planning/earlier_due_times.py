"""Compute the due times of parked sites again after a change that makes pages due earlier.

When a site is parked, the schedule gives the site a due time. A new plan, a lower price, an edited policy file or a
restart may make pages of parked sites due earlier. A pass goes through all parked sites in order of name, a few with
each batch. If the schedule now makes a parked site due earlier, the pass sets the earlier due time. If a further change
makes pages due earlier during a pass, another pass follows.

`EarlierDueTimes` requests a pass in the loop thread, and `ParkedSites` makes the pass in the worker thread.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from webfountain.frontier.batch import remembered
from webfountain.frontier.planning.plan import bounds_of
from webfountain.frontier.stage import Order, Stage
from webfountain.records import STATES
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.lanes import LANES

if TYPE_CHECKING:
    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.cluster.membership import Others
    from webfountain.frontier.planning.plan_follower import PlanFollower
    from webfountain.frontier.planning.schedule import Schedule
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.policy.collection import Collection
    from webfountain.records import SiteLease, SiteRecord
    from webfountain.store.answers import LeaseBatch
    from webfountain.store.contract import FrontierStore

__all__ = ["SITES_PER_STEP", "EarlierDueTimes", "ParkedSites"]

SITES_PER_STEP: Final = 256
"""Number of parked sites that are checked with each batch; the check takes about 20 ms."""
_NEVER_CRAWLED: Final = STATES.index("never-crawled")
_NOTHING_DUE: Final = (-inf,) * LANES


class EarlierDueTimes(Order):
    """Decides when the parked sites are checked: at the start, when pages become due earlier, and every `every_s`
    seconds. The regular checks, every `every_s` seconds, find sites that another ant parked under an old plan. If
    several ants crawl together, a single ant requests the checks of the parked sites.
    """

    def __init__(
        self, follower: PlanFollower, sites: ActiveList, others: Others, *, every_s: float, start: float
    ) -> None:
        self._follower = follower
        self._sites = sites
        self._others = others
        self._every_s = every_s
        self._pass_at = start
        self._hastened = 0

    def add(self, batch: Batch) -> None:
        """Request a pass over the parked sites if it is time for a regular pass, or if pages have become due
        earlier.
        """
        batch.schedule = self._follower.schedule
        if self._follower.hastened != self._hastened:
            self._hastened = self._follower.hastened
            self._sites.sites.refresh(self._sites.sites.by_name, batch.at)
            self._pass_at = -inf
        if self._pass_at <= batch.at and self._others.counts:
            self._pass_at = batch.at + self._every_s
            batch.hastened = True
        self.due = -inf if self._follower.follows_plans else self._pass_at

    def adopt(self, collection: Collection) -> None:
        """Apply the `revisit` bounds of an edited policy file."""
        self._follower.adopt_bounds(bounds_of(collection))
        self.due = -inf


class ParkedSites(Stage):
    """The stage that computes the due times of parked sites again."""

    def __init__(self, store: FrontierStore, *, owner: str, lease_s: float) -> None:
        self._store = store
        self._owner = owner
        self._lease_s = lease_s
        self._after: str | None = None  # the last site of this pass; None: there is no pass
        self._again = False

    def before_activate(self, batch: Batch, result: BatchResult) -> None:
        """Check some more parked sites if a pass over them is in progress."""
        if batch.hastened:
            self.restart()
        if batch.schedule is not None:
            result.activated += self.step(batch.schedule, at=batch.at)
        result.unfinished |= not self.is_done

    @property
    def is_done(self) -> bool:
        """True if no pass over the parked sites is in progress."""
        return self._after is None

    def restart(self) -> None:
        """Begin a pass over the parked sites as soon as no other pass is in progress."""
        if self._after is None:
            self._after = ""
        else:
            self._again = True

    def step(self, schedule: Schedule, *, at: float) -> list[SiteLease]:
        """Check some more parked sites, and return the leases of those that this ant had to take over from a dead
        process.
        """
        if self._after is None:
            return []
        found = self._store.sites.after(self._after, SITES_PER_STEP)
        if len(found) == SITES_PER_STEP:
            self._after = found[-1].site
        else:
            self._after = "" if self._again else None
            self._again = False
        return self._activate_earlier({site.site: site for site in found if _may_be_earlier(site, at)}, schedule, at)

    def _activate_earlier(self, sites: dict[str, SiteRecord], schedule: Schedule, at: float) -> list[SiteLease]:
        if not sites:
            return []
        leases = self._store.sites.enlist(list(sites), owner=self._owner, until=at + self._lease_s, at=at)
        lost = [lease for lease in leases if lease.lost_by is not None]
        taken = [lease for lease in leases if lease.lost_by is None]
        heads = self._store.queues.lease([Refill(lease, recrawl=1, horizon=_NOTHING_DUE) for lease in taken])
        self._store.sites.park(
            [
                ParkRequest(lease, _due(lease, sites[lease.site], dealt, schedule, at), remembered(lease.record))
                for lease, dealt in zip(taken, heads, strict=True)
                if dealt is not None
            ],
            at=at,
        )
        return lost


def _may_be_earlier(site: SiteRecord, at: float) -> bool:
    """Return whether a site is parked only because its pages are not due yet."""
    has_known = sum(site.pages) > site.pages[_NEVER_CRAWLED]
    return site.owner is None and site.due > at and has_known and remembered(site).next_at < site.due


def _due(lease: SiteLease, parked: SiteRecord, dealt: LeaseBatch, schedule: Schedule, at: float) -> float:
    """Return the due time of a parked site under the current schedule, or its old due time if that is earlier."""
    if lease.record.pages[_NEVER_CRAWLED] > parked.pages[_NEVER_CRAWLED] or lease.record.immediate > parked.immediate:
        return at  # The site got new pages between the two calls.
    due = min((schedule.due(lane, order) for lane, order in dealt.lanes), default=inf)
    return min(parked.due, max(due, remembered(lease.record).next_at))
