"""Measure the CPU time of a page by stage, inside a running crawl.

A Scrapy extension (``-s EXTENSIONS_BASE``-free: `bench_crawl` names it in EXTENSIONS). It wraps the seams of the
walk with `time.thread_time`, each stage without the stages that it calls, and writes seconds by stage as JSON to
BENCH_STAGES when the crawl ends. What no stage claims is the engine in the loop thread and the store's own
threads. The wrapping costs about 1 µs a call, 20 µs a page.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import signals

from webfountain.crawl.flight import Landings
from webfountain.crawl.scheduler import FountainScheduler
from webfountain.download.connection import Connection
from webfountain.download.connection_pool import IdleConnections
from webfountain.download.fetcher import Fetcher
from webfountain.duplicates.url_dedup import DuplicateEliminator
from webfountain.formats import document as text
from webfountain.formats.document import DocumentReader
from webfountain.formats.links import LinkExtractor
from webfountain.frontier.orders import WorkExchange
from webfountain.frontier.pages.guarded_examiner import GuardedExaminer
from webfountain.frontier.pages.page_judge import PageJudge
from webfountain.frontier.worker.store_worker import StoreWorker
from webfountain.ranking.importance_stage import ImportanceStage
from webfountain.ranking.link_importance import LiveImportance
from webfountain.ranking.rankings import Rankings
from webfountain.repository.repository import Repository
from webfountain.store.embedded.census import EmbeddedCensus
from webfountain.store.embedded.queues import EmbeddedQueues
from webfountain.store.embedded.sites import EmbeddedSites

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

SEAMS: list[tuple[str, Any, str]] = [
    ("loop: download", Connection, "data_received"),
    ("loop: download", Connection, "send"),
    ("loop: download", Fetcher, "_fetched"),
    ("loop: download", IdleConnections, "take"),
    ("loop: next request", FountainScheduler, "next_request"),
    ("loop: landed", Landings, "land"),
    ("loop: finish", Landings, "ended"),
    ("loop: examine", GuardedExaminer, "examine_at_once"),
    ("loop: links", LinkExtractor, "extract"),
    ("loop: links judged", PageJudge, "links"),
    ("loop: parse", DocumentReader, "read_at_once"),
    ("loop: text", text, "visible_text"),
    ("loop: orders, absorb", WorkExchange, "take"),
    ("loop: orders, absorb", WorkExchange, "absorb"),
    ("worker: other", StoreWorker, "run"),
    ("worker: WARC", Repository, "write"),
    ("worker: ranking, links logged", Rankings, "log"),
    ("worker: ranking, begun and read", Rankings, "tend"),
    ("worker: ranking, fetched pages", LiveImportance, "record"),
    ("worker: ranking, new links", LiveImportance, "weigh"),
    ("worker: ranking, chores", LiveImportance, "tend"),
    ("worker: ranking, graded again", ImportanceStage, "before_lease"),
    ("worker: eliminate", DuplicateEliminator, "discover"),
    ("worker: discover", EmbeddedQueues, "discover"),
    ("worker: settle", EmbeddedQueues, "settle"),
    ("worker: lease", EmbeddedQueues, "lease"),
    ("worker: park, activate", EmbeddedSites, "park"),
    ("worker: park, activate", EmbeddedSites, "activate"),
    ("worker: statistics", EmbeddedCensus, "statistics"),
]


class Stages:
    """CPU seconds by stage, without the stages inside it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.seconds: Counter[str] = Counter()
        self._inner = threading.local()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Wrap the functions of the stages, and write the result when the engine has stopped."""
        stages = cls(Path(crawler.settings["BENCH_STAGES"]))
        for stage, owner, name in SEAMS:
            setattr(owner, name, stages.timed(stage, getattr(owner, name)))
        crawler.signals.connect(stages.write, signals.engine_stopped)
        return stages

    def timed(self, stage: str, function: Any) -> Any:
        """Return `function`, with its own CPU time added to `stage`."""
        seconds, inner, clock = self.seconds, self._inner, time.thread_time

        def measured(*args: Any, **kwargs: Any) -> Any:
            outside = getattr(inner, "seconds", 0.0)
            inner.seconds = 0.0
            before = clock()
            try:
                return function(*args, **kwargs)
            finally:
                spent = clock() - before
                seconds[stage] += spent - inner.seconds
                inner.seconds = outside + spent

        return measured

    def write(self) -> None:
        """Write the seconds by stage, and the total of the loop thread, which includes the time outside all stages."""
        document = {"loop": time.thread_time(), "process": time.process_time(), "stages": self.seconds}
        self._file.write_text(json.dumps(document))
