"""The extension that tells what a crawl does: stats while it runs, a live display, the report at its end.

It reads the session's metrics and the frontier's snapshots and changes nothing. Without the display a line in the log
tells the progress once a minute and at the end, unless Scrapy's LogStats does. Settings read: WEBFOUNTAIN_REPORT (a
file for the JSON of DESIGN.md section 7 "Outcomes"), WEBFOUNTAIN_PROGRESS (a display on standard error).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from scrapy import signals

from webfountain.crawl import engine
from webfountain.crawl.session import Session
from webfountain.errors import InputError
from webfountain.records import FETCHED

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from webfountain.report.progress import Moment, Progress

__all__ = ["Reporter", "report_of"]

logger = logging.getLogger(__name__)

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
    "urls_discovered": "due/new",
    "duplicates_by_cache": "due/duplicate_by_cache",
    "duplicates_by_store": "due/duplicate_by_store",
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
        **{name: int(counts.get(stat)) for name, stat in _COUNTS.items()},
        "waiting": statistics.store.pages["never-crawled"] + statistics.store.immediate,
        "pages": dict(statistics.store.pages),
        "sites": statistics.store.sites,
        "seconds": seconds,
        "cpu_seconds": time.process_time(),
        "startup_seconds": startup_seconds,
        "startup_cpu_seconds": session.started_cpu or 0.0,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "finish_reason": reason,
    }


class Reporter:
    """One crawl's reporter."""

    def __init__(self, crawler: Crawler, session: Session) -> None:
        self._crawler = crawler
        self._session = session
        self._report = None if session.config.report is None else Path(session.config.report)
        self._progress: Progress | None = None
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
            from webfountain.report.progress import Progress  # noqa: PLC0415  rich costs 50 ms of start-up

            assert self._crawler.spider is not None
            self._progress = Progress(sys.stderr, title=self._crawler.spider.name)
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def spider_closed(self, reason: str) -> None:
        """Write the last stats and the report."""
        if self._task is None:
            return
        self._task.cancel()
        self._tell()
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

    async def _watch(self) -> None:
        for moment in itertools.count():
            census = self._session.census
            if self._progress is not None and census is not None and moment % FRESHNESS_EVERY == 0:
                self._freshness = await census()
            self._tell()
            await asyncio.sleep(EVERY_S)

    def _tell(self) -> None:
        stats = self._crawler.stats
        counts = self._session.metrics.snapshot()
        for name, many in counts.items():
            stats.set_value(name, many)
        if self._progress is not None:
            self._progress.show(self._moment())
        elif self._logs and time.monotonic() - self._began >= self._next_line:
            self._log(self._moment())

    def _moment(self) -> Moment:
        from webfountain.report.planned import plan_words  # noqa: PLC0415
        from webfountain.report.progress import moment_of  # noqa: PLC0415

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
