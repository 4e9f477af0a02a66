"""Beats of a crawl's loop, its requests and its plans, each with its time: what `bench_planning --crawl` looks at.

A Scrapy extension, added to EXTENSIONS. A task beats in the crawl's own loop every millisecond, the scheduler's
`next_request` is noted where it gave a request. A plan is in the making from the moment when the worker takes the
census until the loop has adopted the plan. Before each plan of its own the crawl makes that of `bench_planning`'s
census of 10^7 pages in 256 buckets, with its day and budget, and lets it go: so planning costs at least what it costs
there (by buckets and periods, not by pages; the store keeps the census as it goes) and the plan in force fits the
crawl. Monotonic seconds are written as JSON to BENCH_HEARTBEAT when the crawl ends.
"""

from __future__ import annotations

import asyncio
import json
import time
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import signals

from tests.benchmarks.bench_planning import KNOWN, census
from webfountain.crawl.scheduler import FountainScheduler
from webfountain.frontier.planning import make_plan
from webfountain.frontier.planning.make_plan import census_of
from webfountain.frontier.planning.planner import Planner
from webfountain.frontier.worker import store_worker
from webfountain.policy.tables import CycleTable

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

    from webfountain.core.census import Census
    from webfountain.frontier.batch import CensusSnapshot
    from webfountain.frontier.planning.plan import Plan
    from webfountain.store.contract import FrontierStore


class Heartbeat:
    """When the loop turned, when a request went out, and from when to when a plan was made."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begun = self._solved = 0.0
        self._beats: list[float] = []
        self._requests: list[float] = []
        self._plans: list[tuple[float, float, float]] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Listen in on the crawl's parts, beat once the spider is open, write when it is closed."""
        heart = cls(Path(crawler.settings["BENCH_HEARTBEAT"]))
        heart.listen()
        crawler.signals.connect(heart.start, signals.spider_opened)
        crawler.signals.connect(heart.write, signals.spider_closed)
        return heart

    def listen(self) -> None:
        """Wrap where the census is taken, a plan is made and adopted, a request goes out."""
        take, make, adopt = store_worker.take_census, make_plan.make_plan, Planner.adopt_plan
        give, large = FountainScheduler.next_request, census(KNOWN)

        def taken(store: FrontierStore, *, since: int, at: float) -> CensusSnapshot:
            self._begun = time.monotonic()
            return take(store, since=since, at=at)

        def made(census: Census, *, cycle: CycleTable, **terms: Any) -> Plan:
            daily = CycleTable(strategy=cycle.strategy, capacity_pages_per_period=KNOWN // cycle.periods)
            make(census_of(large, daily), cycle=daily, **{**terms, "at": large.at, "clocks": None})
            self._solved = time.monotonic()
            return make(census, cycle=cycle, **terms)

        def adopted(planner: Planner, plan: Plan | None) -> None:
            adopt(planner, plan)
            if self._solved > self._begun:
                self._plans.append((self._begun, self._solved, time.monotonic()))

        def given(scheduler: FountainScheduler) -> Request | None:
            request = give(scheduler)
            if request is not None:
                self._requests.append(time.monotonic())
            return request

        store_worker.take_census = taken
        make_plan.make_plan = made
        Planner.adopt_plan = adopted  # type: ignore[method-assign,assignment]
        FountainScheduler.next_request = given  # type: ignore[method-assign,assignment]

    def start(self) -> None:
        """Beat from now on, in the loop that runs."""
        self._task = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            self._beats.append(time.monotonic())
            await asyncio.sleep(0.001)

    def write(self) -> None:
        """The crawl is over; a plan that is still in the making ends never."""
        self._task.cancel()
        if self._begun > self._plans[-1][-1]:
            self._plans.append((self._begun, inf, inf))
        self._file.write_text(json.dumps({"beats": self._beats, "requests": self._requests, "plans": self._plans}))
