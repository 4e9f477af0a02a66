"""Drive a Frontier without Scrapy, network or real time: one loop, a manual clock, a web that is a function."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.store.invariants import check_valid
from webfountain.clock import ManualClock
from webfountain.config import FountainConfig
from webfountain.frontier.assembly import FrontierAssembly
from webfountain.frontier.inbox.seeds import load_seeds
from webfountain.metrics import Metrics
from webfountain.policy.collection_file import parse_collection
from webfountain.records import Fetch, FetchKind, FetchResult, PageRecord, SiteRecord
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from webfountain.duplicates.index import DuplicateIndex
    from webfountain.frontier.inbox.notes import Notes
    from webfountain.policy.collection import Collection
    from webfountain.ranking.link_importance import LiveImportance
    from webfountain.repository.repository import Repository
    from webfountain.store.contract import FrontierStore

Answer = tuple[int, Mapping[str, str], bytes, float] | str
"""Status, headers, body and seconds, or an error word."""
Web = Callable[["Fetch", float], Answer]

POLICY = """
[collection]
name = "test"
seeds = [{seeds}]
{collection}
[politeness]
user_agent = "tester/1.0 (+http://example.org/bot)"
min_delay = "{min_delay}"
delay_factor = {delay_factor}
{politeness}
[network]
allow_private = {allow_private}
[cycle]
period = "{period}"
{rest}
"""


def collection_of(seeds: Sequence[str], **values: object) -> Collection:
    settings = {
        "collection": "", "min_delay": "1s", "delay_factor": 10, "politeness": "", "allow_private": "true",
        "period": "1d", "rest": "",
    } | values  # fmt: skip
    text = POLICY.format(seeds=", ".join(f'"{seed}"' for seed in seeds), **settings)
    return parse_collection(text, Path("test.toml"))


class DrivenAssembly(FrontierAssembly):
    """An assembly of a frontier whose terms and load are measured with the clocks of a test."""

    def __init__(self, *parts: Any, steady: Callable[[], float], cpu: Callable[[], float], **more: Any) -> None:
        super().__init__(*parts, **more)
        self._steady = steady
        self._cpu = cpu


class Drive:
    """`answer(fetch, at) -> (status, headers, body, seconds)` or an error word is the web."""

    def __init__(
        self,
        collection: Collection,
        answer: Web,
        *,
        store: FrontierStore | None = None,
        repository: Repository | None = None,
        clock: ManualClock | None = None,
        seed: int = 1,
        recrawl: bool = True,
        obey_robots: bool = True,
        importance: LiveImportance | None = None,
        duplicates: DuplicateIndex | None = None,
        inbox: Notes | None = None,
        owner: str = "test",
        cpu: Callable[[], float] = lambda: 0.0,
        **config: Any,
    ) -> None:
        self.clock = clock or ManualClock(1_000_000.0)
        cycle = collection.cycle
        self.store = store or MemoryStore(period_s=cycle.period_s, fastest_s=cycle.fastest_s)
        self.metrics = Metrics()
        self.log: list[tuple[float, str, str]] = []
        self.items: list[dict[str, Any]] = []
        self.outcomes: Counter[str] = Counter()
        self.answer = answer
        self.addresses: dict[str, list[str]] = {}
        self.collection = collection
        self.importance = importance
        self.frontier = (
            DrivenAssembly(
                self.store, repository, collection, FountainConfig(**config), clock=self.clock,
                rng=random.Random(seed), metrics=self.metrics, owner=owner,
                steady=self.clock.now, cpu=cpu,
            )
            .with_features(inbox=inbox, importance=importance, duplicates=duplicates)
            .for_project(recrawl=recrawl, obey_robots=obey_robots)
            .build()
        )  # fmt: skip
        entrance = self.frontier.worker.entrance
        load_seeds(collection, entrance.judge, entrance.due.discover, at=self.clock.now())
        self.flying: list[tuple[float, int, FetchResult]] = []
        self.open: dict[str, int] = {}
        self.most_open = 0

    def run(
        self, *, seconds: float | None = None, steps: int = 200_000, until: Callable[[], object] | None = None
    ) -> None:
        """Until time, `until()` or nothing more can ever happen."""
        end = float("inf") if seconds is None else self.clock.now() + seconds
        for _ in range(steps):
            if until is not None and until():
                return
            if self.step():
                continue
            following = [self.flying[0][0]] if self.flying else []
            following += [at for at in (self.frontier.wake_at(), self.frontier.work_at()) if at > self.clock.now()]
            due = self.store.sites.next_due()
            following += [due] if due is not None and due > self.clock.now() else []
            soon = min(following, default=float("inf"))
            if soon == float("inf") and seconds is None:
                return
            self.clock.set(max(min(soon, end), self.clock.now()))
            if self.clock.now() >= end:
                return
        raise AssertionError("the crawl did not come to rest")

    def step(self) -> bool:
        """One round of everything that can happen now; False when nothing did."""
        did = False
        for host in self.frontier.sites.addresses.unresolved():
            addresses = self.addresses.get(host, ["203.0.113.9"])
            self.frontier.resolved(host, addresses, error=None if addresses else "dns")
            did = True
        while (fetch := self.frontier.next()) is not None:
            self._send(fetch)
            did = True
        while self.flying and self.flying[0][0] <= self.clock.now():
            self._land(heapq.heappop(self.flying)[2])
            did = True
        batch = self.frontier.work.take()
        if batch is not None:
            result = self.frontier.worker.run(batch)
            self.frontier.work.absorb(result)
            if (planning := self.frontier.planner.making()) is not None:
                self.frontier.planner.adopt_plan(planning())
            settled = batch.ended or batch.sitemaps or batch.guests or batch.collection
            moved = batch.parked or batch.room or batch.refills or batch.released
            passes = batch.hastened or batch.unfinished
            did = did or bool(settled or moved or passes or result.activated or result.immediate)
        return did

    def _send(self, fetch: Fetch) -> None:
        now = self.clock.now()
        self.log.append((now, fetch.kind, fetch.url))
        self.open[fetch.site] = self.open.get(fetch.site, 0) + 1
        self.most_open = max(self.most_open, self.open[fetch.site])
        answer = self.answer(fetch, now)
        if isinstance(answer, str):
            fetched = FetchResult(fetch, now + 0.1, 0.1, error=answer)
        else:
            status, headers, body, seconds = answer
            fetched = FetchResult(fetch, now + seconds, seconds, status, tuple(headers.items()), body)
        heapq.heappush(self.flying, (fetched.at, fetch.id, fetched))

    def _land(self, fetched: FetchResult) -> None:
        self.open[fetched.fetch.site] -= 1
        self.frontier.landed(fetched)
        if fetched.error == "lapsed":
            if fetched.fetch.lease is not None:
                self.frontier.give_back(fetched.fetch)
        elif fetched.fetch.kind == "page":
            visit = self.frontier.examiner.examine(fetched)
            self.outcomes[visit.kind] += 1
            if (item := visit.item()) is not None:
                self.items.append(item)
            self.frontier.finish(visit)

    def page(self, url: str) -> PageRecord:
        """What the store knows of a URL."""
        record = self.store.pages.get(site_of(url), fingerprint(url))
        assert record is not None
        return record

    def site(self, site: str) -> SiteRecord:
        """What the store remembers of a site."""
        record = self.store.sites.get(site)
        assert record is not None
        return record

    def check_valid(self) -> None:
        """The counts and queues of the store agree with its records."""
        assert isinstance(self.store, MemoryStore)
        check_valid(self.store)

    def asked(self, kind: FetchKind = "page") -> list[str]:
        return [url for _, what, url in self.log if what == kind]
