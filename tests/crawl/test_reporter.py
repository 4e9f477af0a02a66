"""The reporter of a crawl: the display does not wait for the worker thread."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from scrapy.utils.test import get_crawler

from tests.frontier.drive import Drive, collection_of
from webfountain.crawl.reporter import Reporter
from webfountain.crawl.worker_thread import Worker
from webfountain.metrics import Metrics

if TYPE_CHECKING:
    from webfountain.crawl.session import Session
    from webfountain.report.progress import Moment, ProgressDisplay


def test_the_display_goes_on_while_the_worker_thread_is_busy() -> None:
    """It waited for an estimate of the freshness, and showed nothing while seeds were loaded."""
    drive = Drive(collection_of(["http://one.example/"]), lambda *_: (200, {"content-type": "text/html"}, b"one", 0.1))
    drive.run(seconds=60)
    frontier, loaded = drive.frontier, threading.Event()
    moments: list[Moment] = []

    def load() -> None:
        loaded.wait()

    async def run() -> None:
        worker = Worker(before_batch=lambda: None, absorbed=lambda: None, failed=lambda error: None)
        session = SimpleNamespace(
            frontier=frontier, worker=worker, call=worker.call, metrics=Metrics(), now=frontier.now,
            spider=SimpleNamespace(name="one"),
        )  # fmt: skip
        reporter = Reporter(get_crawler(), cast("Session", session))
        reporter._progress = cast("ProgressDisplay", SimpleNamespace(show=moments.append))
        loading = worker.begin(worker.call(load))
        reporting = worker.begin(reporter._report_while_it_runs())
        async with asyncio.timeout(60):
            while len(moments) < 2:
                await asyncio.sleep(0.01)
            assert moments[-1].freshness is None
            loaded.set()
            while moments[-1].freshness is None:
                await asyncio.sleep(0.01)
        reporting.cancel()
        await loading
        worker.shut()

    try:
        asyncio.run(run())
    finally:
        loaded.set()
