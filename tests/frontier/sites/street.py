"""An active list without frontier, store or plan: sites are handed leases by hand."""

from __future__ import annotations

import itertools
import random
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.frontier.drive import collection_of
from webfountain.clock import ManualClock
from webfountain.core.change_rate import Prior
from webfountain.formats.robots import RobotsRules
from webfountain.frontier.batch import Batch, BatchResult
from webfountain.frontier.planning.plan_follower import PlanFollower
from webfountain.frontier.sites.active_list import ActiveList
from webfountain.frontier.sites.site_context import SiteContext
from webfountain.metrics import Metrics
from webfountain.policy.judge import Judge
from webfountain.records import Fetch, FetchResult, Lease, LeaseId, PageRecord, SiteLease, SiteRecord, SiteState
from webfountain.store.answers import LeaseBatch
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webfountain.frontier.sites.site import SiteStatistics

SEVEN = [f"http://10.0.0.{host}" for host in range(1, 8)]


class Street:
    """A list of sites, each at its address; robots.txt is not asked unless told."""

    def __init__(
        self, *, size: int = 1000, obey_robots: bool = False, policy: str = "", recrawl: bool = False, **values: Any
    ) -> None:
        settings = {"collection": 'scope = "any"', "delay_factor": 0} | values
        collection = collection_of(["http://10.0.0.1/"], politeness=policy, **settings)
        self.metrics = Metrics()
        self.clock = ManualClock(0.0)
        judge = Judge(collection, year=2026)
        self._tokens = itertools.count(1)
        self.follower = PlanFollower(collection, metrics=self.metrics, start=0.0, recrawl=recrawl)
        self.list = ActiveList(
            SiteContext(
                collection=collection,
                judge=judge,
                follower=self.follower,
                metrics=self.metrics,
                clock=self.clock,
                rng=random.Random(1),
                numbers=itertools.count(1),
                parse_robots=partial(RobotsRules.parse, token="tester"),
                hand=1,
                largest_hand=64,
                believed=Prior(10 * collection.cycle.period_s),
                fastest_s=collection.cycle.fastest_s,
                obey_robots=obey_robots,
            ),
            size=size,
        )  # fmt: skip
        self.batch = Batch(0.0)

    def at(self, time: float) -> Batch:
        """The batch that events write into at a time."""
        self.clock.set(max(time, self.clock.now()))
        self.batch.at = time
        return self.batch

    def take_in(self, at: float = 0.0, **news: Any) -> None:
        """What a batch brought about."""
        self.list.take_in(BatchResult(Batch(at), **news), self.at(at))

    def lease_of(self, name: str, state: SiteState | None = None) -> SiteLease:
        record = SiteRecord(name, pages=(0,) * 6, due=0.0, first_seen=0.0, state=state or SiteState())
        return SiteLease(name, next(self._tokens), 600.0, record)

    def pages_of(self, lease: SiteLease, paths: Iterable[str]) -> list[Lease]:
        return [
            Lease(LeaseId(lease.site, lease.token, next(self._tokens)), fingerprint(url), PageRecord(url))
            for url in (f"{lease.site}/{path}" for path in paths)
        ]

    def enter(self, name: str, pages: int = 3, *, state: SiteState | None = None, at: float = 0.0) -> SiteLease:
        """Activate a site that has pages to ask."""
        lease = self.lease_of(name, state)
        self.take_in(at, activated=[lease])
        self.list.sites.refill(self.at(at))
        self.batch.refills.clear()
        if pages:
            self.deal(lease, map(str, range(pages)), at=at)
        return lease

    def deal(self, lease: SiteLease, paths: Iterable[str], *, at: float = 0.0) -> None:
        self.take_in(at, dealt=[LeaseBatch(lease.site, [], self.pages_of(lease, paths), [], [])])

    def hurry(self, lease: SiteLease, *paths: str, at: float = 0.0) -> None:
        self.take_in(at, immediate={lease.site: self.pages_of(lease, paths)})

    def next(self, at: float) -> Fetch:
        fetch = self.list.flights.next(at)
        assert fetch is not None
        return fetch

    def ask(self, at: float) -> list[Fetch]:
        """All that may be asked at a time, in its turn."""
        fetches = []
        while (fetch := self.list.flights.next(at)) is not None:
            fetches.append(fetch)
        return fetches

    def land(
        self, fetch: Fetch, at: float, *, status: int | None = 200, seconds: float = 0.0, error: str | None = None,
        headers: tuple[tuple[str, str], ...] = (), body: bytes = b"", address: str | None = None,
    ) -> None:  # fmt: skip
        status = None if error is not None else status
        self.list.flights.landed(
            FetchResult(fetch, at, seconds, status, headers, body, error, address=address), self.at(at)
        )

    def detour(self, fetch: Fetch, address: str, at: float) -> float:
        """Seconds that a fetch waits before it may go on at another address."""
        self.at(at)
        return self.list.flights.detour(fetch, address)

    def site(self, name: str) -> SiteStatistics:
        return self.list.sites.by_name[name].statistics()


def sites_of(fetches: Iterable[Fetch]) -> list[str]:
    return [fetch.site for fetch in fetches]
