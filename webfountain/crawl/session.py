"""The session: configuration, counts and open frontier of one crawl, shared by its parts.

Scrapy passes only the crawler to scheduler, middlewares, extensions and spider. `Session.of` returns the same session
to all components of a crawl. The scheduler opens the session in the worker thread before the crawl begins. A project
without a collection file gets a collection made from its own settings:

- USER_AGENT and DOWNLOAD_TIMEOUT are used unchanged. ROBOTSTXT_OBEY is obeyed, but the ant fetches robots.txt. The
  file's groups are looked up as in Scrapy, by ROBOTSTXT_USER_AGENT or else by the whole USER_AGENT;
- the pace is the project's own, and Scrapy's downloader slots keep it (`project_pace`);
- the store is `.webfountain/SPIDER` below the working folder, unless WEBFOUNTAIN_STORE names one. A spider with
  arguments has one store for each set of them, `.webfountain/SPIDER-HASH` (`store_url`);
- private addresses are allowed (WEBFOUNTAIN_ALLOW_PRIVATE), because the spiders name their hosts on purpose.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from webfountain.config import FountainConfig
from webfountain.crawl import engine
from webfountain.crawl.builder import build_for_project, build_own
from webfountain.crawl.log_formatter import use_json
from webfountain.crawl.project_pace import ProjectPace
from webfountain.download.body_budget import BodyBudget
from webfountain.download.fetcher import terms_of
from webfountain.errors import InputError, WebfountainError
from webfountain.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from webfountain.crawl.builder import FrontierSetup
    from webfountain.crawl.worker_thread import Worker
    from webfountain.download.fetcher import Terms
    from webfountain.frontier.frontier import Frontier
    from webfountain.history.live import LiveSnapshot
    from webfountain.store.contract import FrontierStore

__all__ = ["Session"]

_T = TypeVar("_T")
_ATTRIBUTE: Final = "_webfountain_session"
"""The attribute of a crawler that contains its session."""


class Session:
    """The session of one crawl. Raises InputError for a WEBFOUNTAIN setting that is unknown or out of range."""

    worker: Worker
    """The worker thread, which the scheduler makes."""

    def __init__(self, crawler: Crawler) -> None:
        use_json(crawler.settings)  # first, so that a wrong setting is reported in JSON, too
        self.crawler = crawler
        self.config = FountainConfig.from_mapping(crawler.settings)
        self.metrics = Metrics()
        self.arguments = engine.spider_arguments(crawler)
        """Arguments of the spider."""
        self.inspecting = engine.is_inspecting()
        """True if the command only inspects pages (`scrapy shell`, `fetch`, `parse`) and must not use a frontier."""
        self.built: FrontierSetup | None = None
        self.bodies = BodyBudget()
        """Memory budget for the bodies of robots.txt files, sitemaps and the fountain spider's pages."""
        self.terms: Terms | None = None
        """The rules that every request must obey, such as the User-Agent; None until the crawl is open."""
        self.started: float | None = None
        """Time of the first request, monotonic seconds."""
        self.started_cpu: float | None = None
        """CPU time of the process until the first request, in seconds."""
        self.error: WebfountainError | None = None
        """The error that ended the crawl, or None if it ended normally."""
        self.robots: dict[str, bytes] = {}
        """Bodies of the robots.txt files that this run has fetched for a Scrapy project, by host and port."""
        self.pace: ProjectPace | None = None
        """The delays from the settings of a Scrapy project; None if a collection file sets the delays."""
        self.report: dict[str, Any] | None = None
        """The report of the ended crawl."""
        self.snapshot: LiveSnapshot | None = None
        """The newest live snapshot of the crawl."""
        self.before_close: list[Callable[[], object]] = []
        """Functions that must be called in the worker thread before the store is closed."""

    @classmethod
    def of(cls, crawler: Crawler) -> Session:
        """Return the session of a crawler; create it at the first call."""
        held = vars(crawler)
        if _ATTRIBUTE not in held:
            held[_ATTRIBUTE] = cls(crawler)
        session: Session = held[_ATTRIBUTE]
        return session

    @property
    def opened(self) -> FrontierSetup:
        """The open frontier with its surroundings."""
        assert self.built is not None
        return self.built

    @property
    def frontier(self) -> Frontier:
        return self.opened.frontier

    @property
    def spider(self) -> Spider:
        assert self.crawler.spider is not None
        return self.crawler.spider

    def now(self) -> float:
        """Return the frontier's time, UTC seconds."""
        return self.opened.clock.now()

    async def call(self, function: Callable[[], _T]) -> _T:
        """Run a function in the worker thread. While the crawl ends, wait until the calling task is cancelled."""
        if self.worker.is_ending:
            await asyncio.get_running_loop().create_future()
        return await self.worker.call(function)

    async def on_store(self, function: Callable[[FrontierStore], _T]) -> _T:
        """Run a function on the crawl's store, in the worker thread."""
        return await self.call(partial(self.frontier.worker.on_store, function))

    def open(self, spider: Spider) -> FrontierSetup:
        """Open store and repository, in the worker thread.

        Raises
        ------
        WebfountainError
            if the collection file, the store or the repository cannot be used.
        """
        if not getattr(spider, "is_fountain", False):
            if self.config.collection is None:
                self.pace = ProjectPace(self.crawler.settings, self.config)
                self.pace.log_rules()
            self.built = build_for_project(
                self.config,
                self.crawler.settings,
                spider.name,
                self.arguments,
                self.metrics,
                pace=self.pace,
            )
        elif self.config.collection is None:
            raise InputError("the fountain spider needs a collection: -a collection=FILE")
        else:
            self.built = build_own(self.config, self.config.collection, self.metrics)
        collection, detour = self.built.collection, self.frontier.sites.flights.detour
        self.terms = terms_of(collection.politeness, collection.network, detour, may_send=self.frontier.may_send)
        return self.built

    def close(self) -> None:
        """Call the functions of `before_close`, then close store and repository, in the worker thread."""
        for each in self.before_close:
            each()
        self.frontier.close()
