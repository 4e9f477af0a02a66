"""What Scrapy's settings name: the add-on for a project's own spiders, the spider of a collection, the extension.

The add-on: all that an existing Scrapy project needs to schedule its requests by the frontier. ``ADDONS =
{"webfountain.crawl.addon.FountainAddon": 500}``. Only what the project's spiders yield enters the frontier: nothing
is extracted and, without WEBFOUNTAIN_RECRAWL, nothing asked twice. Requests survive a restart; callbacks, errbacks,
cookies, retries and redirects stay Scrapy's. The project's settings stay as they are: DOWNLOAD_DELAY and
ROBOTSTXT_OBEY are read for the frontier (`session`) and hold in Scrapy's own way for what Scrapy downloads beside it
(files, images, `engine.download_async`). What is replaced is said in the log.

The fountain spider: crawls a collection without a line of code, one item per new, changed or gone page. Place in the
walk: where a landed fetch becomes a verdict. The frontier orders the fetches, so there are no start requests and no
requests come from here; links go to the frontier with the verdict, not through Scrapy. Feeds and pipelines work as
with any spider::

    scrapy crawl fountain -a collection=policies/demo.toml -O pages.jsonl

The extension tells what a crawl does: stats while it runs, a live display, the report at its end. It reads the
session's metrics and the frontier's snapshots and changes nothing. Without the display a line in the log tells the
progress once a minute and at the end, unless Scrapy's LogStats does. Settings read: WEBFOUNTAIN_REPORT (a file for the
JSON of DESIGN.md section 7 "Outcomes"), WEBFOUNTAIN_PROGRESS (a display on standard error).

Log lines of a crawl of millions: what is ordinary is counted, not logged. Scrapy formats a line for every answer and
every item, also where the log level drops it (0.03 ms a page). Set as LOG_FORMATTER by `webfountain.settings`; with
LOG_LEVEL=DEBUG the lines are there.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from scrapy import Spider, signals
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.logformatter import LogFormatter
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.settings.default_settings import DOWNLOADER, DUPEFILTER_CLASS, SCHEDULER
from scrapy.utils.misc import load_object

from webfountain.core.url_cache import hit_rate
from webfountain.crawl import engine
from webfountain.crawl.flight import flight_of
from webfountain.crawl.session import Session
from webfountain.errors import InputError
from webfountain.records import FETCHED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from webfountain.crawl.flight import Flight
    from webfountain.frontier.pages.examiner import Visit
    from webfountain.report.progress import Moment, ProgressDisplay

__all__ = ["FountainAddon", "FountainLogFormatter", "FountainSpider", "Reporter", "report_of"]

logger = logging.getLogger(__name__)

_SCHEDULER: Final = "webfountain.crawl.scheduler.FountainScheduler"
_DOWNLOADER: Final = "webfountain.crawl.downloader.FountainDownloader"
_MIDDLEWARES: Final = {
    "webfountain.crawl.downloader.RefusingMiddleware": 100,
    "webfountain.crawl.downloader.LandingMiddleware": 999,
}
_BESIDE: Final = "webfountain.crawl.downloader.BesideMiddleware"
_ROBOTS_ORDER: Final = 100
_DOWNLOAD_HANDLER: Final = "webfountain.crawl.downloader.FountainDownloadHandler"
_REPORTER: Final = "webfountain.crawl.addon.Reporter"
_CONCURRENT_REQUESTS: Final = 256
"""Where the project sets none: its default of 16 is for one site, and each is asked one request at a time."""
_WITHOUT_EFFECT: Final = (
    "JOBDIR",
    "SCHEDULER_PRIORITY_QUEUE",
    "SCHEDULER_DISK_QUEUE",
    "SCHEDULER_MEMORY_QUEUE",
    "SCHEDULER_START_DISK_QUEUE",
    "SCHEDULER_START_MEMORY_QUEUE",
)


class FountainAddon:
    """A component that the project has of its own stays, but for the scheduler."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Install scheduler, downloader, middlewares, extension, and the download handler where the project has none.

        Commands that only look (`scrapy shell`, `fetch`, `parse`) get none of them: they work as without the add-on.
        """
        if engine.is_inspecting():
            return
        self._say_replaced(settings)
        _impose(settings, "SCHEDULER", _SCHEDULER)
        settings.set("DOWNLOADER", _DOWNLOADER, priority="addon")
        settings.set("CONCURRENT_REQUESTS", _CONCURRENT_REQUESTS, priority="addon")
        _impose(settings, "DOWNLOADER_MIDDLEWARES", _with_ours(settings.getdict("DOWNLOADER_MIDDLEWARES")))
        _impose(settings, "EXTENSIONS", {**settings.getdict("EXTENSIONS"), _REPORTER: 0})
        if str(settings.get("DUPEFILTER_CLASS")).startswith("scrapy_redis."):
            _impose(settings, "DUPEFILTER_CLASS", DUPEFILTER_CLASS)  # the store knows what was seen
        own = settings.getdict("DOWNLOAD_HANDLERS")
        ours = {scheme: _DOWNLOAD_HANDLER for scheme in ("http", "https") if scheme not in own}
        _impose(settings, "DOWNLOAD_HANDLERS", {**own, **ours})

    @staticmethod
    def _say_replaced(settings: BaseSettings) -> None:
        scheduler = settings.get("SCHEDULER")
        if scheduler not in (SCHEDULER, _SCHEDULER):
            logger.info("webfountain schedules in the place of SCHEDULER=%s", scheduler)
        if settings.get("DOWNLOADER") not in (DOWNLOADER, _DOWNLOADER):
            logger.info("DOWNLOADER=%s stays: DOWNLOAD_DELAY delays requests in it again", settings.get("DOWNLOADER"))
        idle = [name for name in _WITHOUT_EFFECT if (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["default"]]
        if idle:
            logger.info("webfountain keeps the requests, so these settings have no effect: %s", ", ".join(idle))


def _impose(settings: BaseSettings, name: str, value: Any) -> None:
    """Set a setting whoever has set it before: settings.py, a spider's custom_settings, the command line."""
    settings.set(name, value, priority=max(settings.getpriority(name) or 0, SETTINGS_PRIORITIES["project"]))


def _with_ours(own: dict[Any, int | None]) -> dict[Any, int | None]:
    """The project's downloader middlewares and ours. Scrapy's for robots.txt serves what comes beside the frontier,
    where the project has put it."""
    robots = [key for key in own if load_object(key) is RobotsTxtMiddleware]
    order = own[robots[-1]] if robots else _ROBOTS_ORDER
    return {**own, **dict.fromkeys(robots or [RobotsTxtMiddleware], None), _BESIDE: order, **_MIDDLEWARES}


Items = list[dict[str, Any]]


class FountainSpider(Spider):
    """Argument: `collection`, the policy file; without it the setting WEBFOUNTAIN_COLLECTION."""

    name = "fountain"
    is_fountain: ClassVar[bool] = True

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Hand the argument to the settings, where all of us read it."""
        collection = kwargs.get("collection")
        if collection is not None:
            crawler.settings.set("WEBFOUNTAIN_COLLECTION", collection, priority="cmdline")
        spider: Self = super().from_crawler(crawler, *args, **kwargs)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Nothing: the frontier holds the seeds."""
        return
        yield

    def parse(self, response: Response) -> Items | Awaitable[Items]:
        """The item of a page, if it is worth one.

        What could hold the loop is done beside it: a changed page is compared with its old copy on disk, a large or
        strange one is read by a process that can be ended.
        """
        flight = None if response.request is None else flight_of(response.request)
        if flight is None or flight.fetched is None:
            return []
        visit = flight.landing.examine_at_once(flight)
        return self._later(flight) if visit is None else _items(visit)

    @staticmethod
    async def _later(flight: Flight) -> Items:
        visit = await flight.landing.examine_apart(flight)
        return [] if visit is None else _items(visit)


def _items(visit: Visit) -> Items:
    item = visit.item()
    return [] if item is None else [item]


EVERY_S: Final = 0.5
_LOG_STATS: Final = "scrapy.extensions.logstats.LogStats"
FIRST_LINE_S: Final = 10.0
LINE_EVERY_S: Final = 60.0
"""Seconds between lines in the log where there is no display, after the first."""
FRESHNESS_EVERY: Final = 4
"""Moments between two estimates of the freshness, which cost the store a look at its census."""
_COUNTS: Final = {
    "refused_by_robots": "outcome/refused_by_robots",
    "links_seen": "links/seen",
    "links_out_of_scope": "judge/out_of_scope",
    "urls_discovered": "duplicates/new",
    "duplicates_by_cache": "duplicates/by_cache",
    "duplicates_by_store": "duplicates/by_store",
    "exact_duplicates": "duplicates/exact",
    "near_duplicates": "duplicates/near",
    "evicted": "collection/evicted",
    "shares_reassigned": "shares/reassigned",
    "domains_busy": "shares/busy",
    "domains_blocked": "shares/blocked",
}


def report_of(session: Session, *, seconds: float, startup_seconds: float, reason: str) -> dict[str, Any]:
    """The report of a crawl that ended (DESIGN.md section 7 names its fields).

    `startup_seconds` is wall time from the start of the crawl to its first request, `startup_cpu_seconds` the CPU
    time of the process until then, imports included.
    """
    counts = session.metrics
    statistics = session.frontier.statistics()
    outcomes: dict[str, int] = {str(kind): int(counts.get(f"outcome/{kind}")) for kind in sorted(FETCHED)}
    return {
        "pages_fetched": sum(outcomes.values()),
        **outcomes,
        "by_status": {status: int(many) for status, many in sorted(counts.family("fetch/status").items())},
        "by_error": {word: int(many) for word, many in sorted(counts.family("fetch/error").items())},
        **(found := {name: int(counts.get(stat)) for name, stat in _COUNTS.items()}),
        "url_cache_hit_rate": hit_rate(
            found["duplicates_by_cache"], found["urls_discovered"] + found["duplicates_by_store"]
        ),
        "waiting": statistics.store.pages["never-crawled"] + statistics.store.immediate,
        "pages": dict(statistics.store.pages),
        "sites": statistics.store.sites,
        "seconds": seconds,
        "cpu_seconds": time.process_time(),
        "startup_seconds": startup_seconds,
        "startup_cpu_seconds": session.started_cpu or 0.0,
        "peak_rss_bytes": peak_rss_bytes(),
        "finish_reason": reason,
    }


def peak_rss_bytes() -> int:
    """The most resident memory that this process had. Not `ru_maxrss` where it can be helped: Linux counts in it what
    the process that started this one had when it forked, so that a crawl would report the memory of its scrapyd.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Reporter:
    """One crawl's reporter."""

    def __init__(self, crawler: Crawler, session: Session) -> None:
        self._crawler = crawler
        self._session = session
        self._report = None if session.config.report is None else Path(session.config.report)
        self._progress: ProgressDisplay | None = None
        self._task: asyncio.Task[None] | None = None
        self._freshness: float | None = None
        has_log_stats = crawler.settings.getwithbase("EXTENSIONS").get(_LOG_STATS) is not None
        self._logs = not has_log_stats and logger.isEnabledFor(logging.INFO)
        self._next_line = FIRST_LINE_S
        self._began = time.monotonic()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Raises InputError for a WEBFOUNTAIN setting that is unknown or out of range, or without asyncio."""
        try:
            engine.need_asyncio()
            session = Session.of(crawler)
        except InputError as error:
            engine.refuse(crawler, error, crawl=engine.running_crawl())
            raise
        reporter = cls(crawler, session)
        crawler.signals.connect(reporter.spider_opened, signals.spider_opened)
        crawler.signals.connect(reporter.spider_closed, signals.spider_closed)
        return reporter

    async def spider_opened(self) -> None:
        """Begin to watch, where our scheduler runs."""
        if self._session.built is None:
            return
        if self._session.config.progress:
            from webfountain.report.progress import ProgressDisplay  # noqa: PLC0415  rich costs 50 ms of start-up

            assert self._crawler.spider is not None
            self._progress = ProgressDisplay(sys.stderr, title=self._crawler.spider.name)
        self._task = asyncio.get_running_loop().create_task(self._report_while_it_runs())

    async def spider_closed(self, reason: str) -> None:
        """Write the last stats and the report."""
        if self._task is None:
            return
        self._task.cancel()
        self._publish()
        if self._progress is not None:
            self._progress.close()
        elif self._logs:
            self._log(self._moment())
        now = time.monotonic()
        report = report_of(
            self._session,
            seconds=now - self._began,
            startup_seconds=(self._session.started or now) - self._began,
            reason=reason,
        )
        self._write(report)

    async def _report_while_it_runs(self) -> None:
        for moment in itertools.count():
            census = self._session.census
            if self._progress is not None and census is not None and moment % FRESHNESS_EVERY == 0:
                self._freshness = await census()
            self._publish()
            await asyncio.sleep(EVERY_S)

    def _publish(self) -> None:
        stats = self._crawler.stats
        counts = self._session.metrics.snapshot()
        for name, many in counts.items():
            stats.set_value(name, many)
        if self._progress is not None:
            self._progress.show(self._moment())
        elif self._logs and time.monotonic() - self._began >= self._next_line:
            self._log(self._moment())

    def _moment(self) -> Moment:
        from webfountain.report.progress import moment_of  # noqa: PLC0415
        from webfountain.report.state import plan_words  # noqa: PLC0415

        seconds = time.monotonic() - self._began
        frontier = self._session.frontier
        plan = frontier.plan
        words = None if plan is None else plan_words(plan, at=self._session.now())
        counts = self._session.metrics.snapshot()
        return moment_of(frontier.statistics(), counts, seconds=seconds, freshness=self._freshness, plan=words)

    def _log(self, moment: Moment) -> None:
        """Where nobody watches, the log tells how it goes, as Scrapy's LogStats does."""
        from webfountain.report.progress import line  # noqa: PLC0415

        rate = moment.fetched / moment.seconds if moment.seconds else 0.0
        assert self._crawler.spider is not None
        logger.info("%s", line(moment, title=self._crawler.spider.name, rate=rate))
        self._next_line = moment.seconds + LINE_EVERY_S

    def _write(self, report: dict[str, Any]) -> None:
        """Whole or not at all: a reader may wait for the file to appear."""
        if self._report is None:
            return
        draft = self._report.with_name(self._report.name + ".tmp")
        try:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
            draft.rename(self._report)
        except OSError as error:
            logger.error("The report cannot be written to %s: %s", self._report, error.strerror)


class FountainLogFormatter(LogFormatter):
    """Settings read: LOG_LEVEL."""

    def __init__(self, *, every_page: bool) -> None:
        self._every_page = every_page

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        level = logging.getLevelName(str(crawler.settings.get("LOG_LEVEL")).upper())
        return cls(every_page=level == logging.DEBUG)

    def crawled(self, *args: Any, **kwargs: Any) -> Any:
        """A line for each answer, at DEBUG only."""
        return super().crawled(*args, **kwargs) if self._every_page else None

    def scraped(self, *args: Any, **kwargs: Any) -> Any:
        """A line for each item, at DEBUG only."""
        return super().scraped(*args, **kwargs) if self._every_page else None
