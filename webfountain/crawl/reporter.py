"""The extension that reports on a crawl: stats while it runs, a live display, the report at its end.

If the display is off and Scrapy's LogStats is not installed, the progress is logged once a minute and at the end.
Settings read: WEBFOUNTAIN_REPORT (a file for the JSON of DESIGN.md section 7 "Outcomes"), WEBFOUNTAIN_PROGRESS (a
display on standard error).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import resource
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy import signals

from webfountain.core.url_cache import hit_rate
from webfountain.crawl import engine
from webfountain.crawl.session import Session
from webfountain.errors import InputError
from webfountain.private_files import write_document
from webfountain.records import FETCHED

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from webfountain.report.progress import Moment, ProgressDisplay

__all__ = ["EVERY_S", "FIRST_LINE_S", "FRESHNESS_EVERY", "LINE_EVERY_S", "Reporter", "peak_rss_bytes", "report_of"]

logger = logging.getLogger(__name__)

EVERY_S: Final = 0.5
_LOG_STATS: Final = "scrapy.extensions.logstats.LogStats"
FIRST_LINE_S: Final = 10.0
LINE_EVERY_S: Final = 60.0
"""Time between two log lines about progress if the display is off, in seconds."""
FRESHNESS_EVERY: Final = 4
"""The freshness is estimated once in this many updates of the display, because an estimate reads counts from the
store.
"""
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
    """Return the report of an ended crawl (DESIGN.md section 7 names its fields).

    `startup_seconds` is the wall time from the start of the crawl to its first request. `startup_cpu_seconds` is the
    CPU time of the process until the first request.
    """
    counts = session.metrics
    statistics = session.frontier.progress.statistics()
    outcomes: dict[str, int] = {str(kind): int(counts.get(f"outcome/{kind}")) for kind in sorted(FETCHED)}
    return {
        "pages_fetched": sum(outcomes.values()),
        **outcomes,
        "by_status": {status: int(many) for status, many in sorted(counts.family("fetch/status").items())},
        "by_hint": {word: int(many) for word, many in sorted(counts.family("pages/hint").items())},
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
    """Return the peak resident memory of this process, bytes.

    On Linux, `ru_maxrss` includes the parent process's memory at the fork, so it is used only if there is no other
    source.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Reporter:
    """The reporter of one crawl."""

    def __init__(self, crawler: Crawler, session: Session) -> None:
        self._crawler = crawler
        self._session = session
        self._progress: ProgressDisplay | None = None
        self._task: asyncio.Task[None] | None = None
        self._freshness: float | None = None
        self._estimate: asyncio.Task[None] | None = None
        has_log_stats = crawler.settings.getwithbase("EXTENSIONS").get(_LOG_STATS) is not None
        self._logs = not has_log_stats and logger.isEnabledFor(logging.INFO)
        self._next_line = FIRST_LINE_S
        self._began = time.monotonic()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build the reporter. Raises InputError for an unknown or invalid WEBFOUNTAIN setting, or if Scrapy runs
        without asyncio.
        """
        try:
            session = Session.of(crawler)
            engine.need_asyncio()
        except InputError as error:
            engine.refuse(crawler, error, crawl=engine.running_crawl())
            raise
        reporter = cls(crawler, session)
        crawler.signals.connect(reporter.spider_opened, signals.spider_opened)
        crawler.signals.connect(reporter.spider_closed, signals.spider_closed)
        return reporter

    def spider_opened(self) -> None:
        """Start reporting, if the crawl has a frontier."""
        if self._session.built is None:
            return
        if self._session.config.progress:
            from webfountain.report.progress import ProgressDisplay  # noqa: PLC0415  rich costs 50 ms of start-up

            self._progress = ProgressDisplay(sys.stderr, title=self._session.spider.name)
        self._task = asyncio.get_running_loop().create_task(self._report_while_it_runs())

    def spider_closed(self, reason: str) -> None:
        """Write the final stats and the report."""
        if self._task is None:
            return
        self._task.cancel()
        self._publish()
        if self._progress is not None:
            self._progress.close()
        elif self._logs:
            self._log(self._moment())
        now = time.monotonic()
        self._session.report = report = report_of(
            self._session,
            seconds=now - self._began,
            startup_seconds=(self._session.started or now) - self._began,
            reason=reason,
        )
        if (file := self._session.config.report) is not None:
            try:
                write_document(Path(file), report)
            except OSError as error:
                logger.error("The report cannot be written to %s: %s", file, error.strerror)

    async def _report_while_it_runs(self) -> None:
        for moment in itertools.count():
            is_time = moment % FRESHNESS_EVERY == 0 and not self._session.worker.is_ending
            if self._progress is not None and is_time and (self._estimate is None or self._estimate.done()):
                self._estimate = self._session.worker.begin(self._estimate_freshness())
            self._publish()
            await asyncio.sleep(EVERY_S)

    async def _estimate_freshness(self) -> None:
        """Estimate the freshness, after the worker thread's current work. A load of seeds may take minutes."""
        frontier = self._session.frontier
        estimate = partial(frontier.worker.fresh_share, frontier.progress.stored, frontier.now())
        self._freshness = await self._session.call(estimate)

    def _publish(self) -> None:
        for name, many in self._session.metrics.snapshot().items():
            self._crawler.stats.set_value(name, many)
        if self._progress is not None:
            self._progress.show(self._moment())
        elif self._logs and time.monotonic() - self._began >= self._next_line:
            self._log(self._moment())

    def _moment(self) -> Moment:
        from webfountain.report.plan import plan_words  # noqa: PLC0415
        from webfountain.report.progress import moment_of  # noqa: PLC0415

        seconds = time.monotonic() - self._began
        frontier = self._session.frontier
        plan = frontier.planner.follower.plan
        words = None if plan is None else plan_words(plan, at=self._session.now())
        statistics = frontier.progress.statistics()
        return moment_of(
            statistics.store,
            self._session.metrics.snapshot(),
            seconds=seconds,
            active_sites=statistics.active_sites,
            in_flight=statistics.in_flight,
            freshness=self._freshness,
            plan=words,
            limit=frontier.progress.limit(frontier.now()),
        )

    def _log(self, moment: Moment) -> None:
        """Log the progress, like Scrapy's LogStats."""
        from webfountain.report.progress import line  # noqa: PLC0415

        rate = moment.fetched / moment.seconds if moment.seconds else 0.0
        logger.info("%s", line(moment, title=self._session.spider.name, rate=rate))
        self._next_line = moment.seconds + LINE_EVERY_S
