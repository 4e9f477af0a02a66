"""Polls beside a crawl: for an edited policy file, start URLs that other programs push, and seeds without a page.

Place in the walk: the scheduler's tick calls `poll`, which returns at once. The worker thread does the work.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from webfountain.errors import WebfountainError
from webfountain.frontier.requests_by_url import put_first
from webfountain.policy.edits import PolicyPoll
from webfountain.report.troubles import seed_lines, seeds_in_force

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy import Request

    from webfountain.crawl.start_urls import StartUrls
    from webfountain.crawl.worker_thread import Worker
    from webfountain.frontier.frontier import Frontier
    from webfountain.policy.collection import Collection
    from webfountain.records import Link
    from webfountain.report.troubles import SeedWithoutPage
    from webfountain.store.contract import FrontierStore

__all__ = ["POLICY_POLL_S", "FirstPeriod", "PolicyPoller", "StartUrlPoller"]

logger = logging.getLogger(__name__)

POLICY_POLL_S: Final = 2.0


class PolicyPoller:
    """Adopts an edited policy file. `load_seeds` loads its seeds, in the worker thread."""

    def __init__(
        self, collection: Collection, frontier: Frontier, worker: Worker, load_seeds: Callable[[Collection], None]
    ) -> None:
        self._poll = PolicyPoll(collection)
        self._frontier = frontier
        self._worker = worker
        self._load_seeds = load_seeds
        self._task: asyncio.Task[None] | None = None
        self._poll_at = 0.0
        self._is_closed = False

    def poll(self) -> None:
        """If a check is due, check whether the file was edited. A check costs one `stat`."""
        now = time.monotonic()
        if self._task is None and now >= self._poll_at:
            self._poll_at = now + POLICY_POLL_S
            self._task = asyncio.get_running_loop().create_task(self._adopt())

    def close(self) -> None:
        """Cancel work in progress."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()

    async def _adopt(self) -> None:
        try:
            edit = await self._worker.call(self._poll.poll)
            if edit is None or self._is_closed:
                return
            if edit.collection is None:
                logger.error("The edited policy file is invalid; the previous one stays in force: %s", edit.error)
                return
            self._frontier.work.adopt(edit.collection)
            self._worker.stir()
            await self._worker.call(partial(self._load_seeds, edit.collection))
            wait = f"; these take effect at the next start: {', '.join(edit.waits)}" if edit.waits else ""
            logger.info("The edited policy file is in force%s", wait)
        finally:
            self._task = None


class StartUrlPoller:
    """Takes start URLs from a list. `link_of` returns the link for the store, or None for a request that it does not
    take.
    """

    def __init__(
        self,
        start_urls: StartUrls,
        frontier: Frontier,
        worker: Worker,
        link_of: Callable[[Request], Link | None],
        failed: Callable[[WebfountainError], None],
    ) -> None:
        self._start_urls = start_urls
        self._frontier = frontier
        self._worker = worker
        self._link_of = link_of
        self._failed = failed
        self._task: asyncio.Task[None] | None = None
        self._poll_at = 0.0
        self._is_closed = False

    def poll(self) -> None:
        """If a check is due, check whether start URLs were pushed."""
        if self._task is None and time.monotonic() >= self._poll_at:
            self._task = asyncio.get_running_loop().create_task(self._take())

    def close(self) -> None:
        """Cancel work in progress."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()

    async def _take(self) -> None:
        try:
            taken = await self._worker.call(partial(self._start_urls.take, self._frontier.now()))
            requests = [request for entry in taken for request in self._start_urls.requests(entry.data)]
            links = [link for request in requests if (link := self._link_of(request)) is not None]
            if taken and not self._is_closed:
                first = partial(put_first, links=links, now=self._frontier.now)
                await self._worker.call(partial(self._frontier.worker.on_store, first))
                await self._worker.call(partial(self._start_urls.done, taken))
                self._worker.stir()
            self._poll_at = time.monotonic() + self._start_urls.wait_s
        except WebfountainError as error:
            self._failed(error)
        finally:
            self._task = None


class FirstPeriod:
    """Logs once, at the end of a crawl's first period, which seeds have brought no page: a crawl may run for months.

    `read` calls a function with the store in the worker thread; `ends_at` is UTC seconds. The summary at the end of
    each crawl also reports it (`report.troubles`).
    """

    def __init__(
        self,
        read: Callable[[Callable[[FrontierStore], list[SeedWithoutPage]]], Awaitable[list[SeedWithoutPage]]],
        *,
        ends_at: float,
    ) -> None:
        self._read = read
        self._ends_at = ends_at
        self._task: asyncio.Task[None] | None = None

    def poll(self, at: float) -> None:
        """Log the seeds without a page once the period is over. Return at once."""
        if self._task is None and at >= self._ends_at:
            self._task = asyncio.get_running_loop().create_task(self._report(at))

    def close(self) -> None:
        """Cancel a check in progress."""
        if self._task is not None:
            self._task.cancel()

    async def _report(self, at: float) -> None:
        year = time.gmtime(at).tm_year
        found = await self._read(lambda store: seeds_in_force(store, year=year))
        for line in seed_lines(found):
            logger.warning("After the first period a seed has brought no page: %s", line)
