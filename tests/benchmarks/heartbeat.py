"""Record the times of a crawl's beats, requests and plans, for `bench_planning --crawl`.

This is a Scrapy extension for EXTENSIONS. A task in the crawl's loop records a beat every millisecond, and each request
of the scheduler is recorded. A plan is being made from the moment when the worker takes the census until the loop
adopts the plan. Before each plan, the crawl also makes and drops a plan from `bench_planning`'s census of 10^7 pages in
256 buckets, so planning has realistic costs. Monotonic seconds are written as JSON to BENCH_HEARTBEAT when the crawl
ends.
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
    """The times of the loop's turns, of requests, and of the begin and end of each plan."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begun = self._solved = 0.0
        self._beats: list[float] = []
        self._requests: list[float] = []
        self._plans: list[tuple[float, float, float]] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Connect to the crawl: beat after the spider is open, and write when it is closed."""
        heart = cls(Path(crawler.settings["BENCH_HEARTBEAT"]))
        heart.listen()
        crawler.signals.connect(heart.start, signals.spider_opened)
        crawler.signals.connect(heart.write, signals.spider_closed)
        return heart

    def listen(self) -> None:
        """Wrap the functions that take the census, make and adopt a plan, and return a request."""
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
        """Begin to beat, in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            self._beats.append(time.monotonic())
            await asyncio.sleep(0.001)

    def write(self) -> None:
        """Write the times at the end of the crawl. A plan that is still being made has no end."""
        self._task.cancel()
        if self._begun > self._plans[-1][-1]:
            self._plans.append((self._begun, inf, inf))
        self._file.write_text(json.dumps({"beats": self._beats, "requests": self._requests, "plans": self._plans}))
