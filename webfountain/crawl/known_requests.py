"""Handle requests that the store already knew.

Place in the walk: after each batch. A request that may be made again is put at the front of its site's queue. The
others are dropped as Scrapy's duplicate filter drops them.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy.signals import request_dropped

from webfountain.crawl import engine
from webfountain.crawl.memory_requests import is_placeholder
from webfountain.crawl.revisits import ALWAYS, NEVER, revisit_of
from webfountain.frontier.requests_by_url import made_before, make_again

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from scrapy.crawler import Crawler

    from webfountain.crawl.dupefilter import Duplicates
    from webfountain.crawl.landings import Landings
    from webfountain.crawl.requests import RequestStore
    from webfountain.crawl.worker_thread import Worker
    from webfountain.frontier.frontier import Frontier
    from webfountain.metrics import Metrics
    from webfountain.records import Link
    from webfountain.store.contract import FrontierStore

__all__ = ["KnownRequests"]


class KnownRequests:
    """Looks up known requests in the worker thread. Used by the loop thread."""

    def __init__(
        self,
        crawler: Crawler,
        frontier: Frontier,
        worker: Worker,
        *,
        requests: RequestStore,
        duplicates: Duplicates,
        landings: Landings,
        metrics: Metrics,
    ) -> None:
        self._crawler = crawler
        self._frontier = frontier
        self._worker = worker
        self._requests = requests
        self._duplicates = duplicates
        self._landings = landings
        self._metrics = metrics
        self._began = frontier.now()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unseen_puts = 1  # notes, and requests that failed before, are put first before the first batch
        self._counted_puts = 0

    def is_busy(self) -> bool:
        """Return whether known requests are being looked up, or were put first and are not counted by a batch yet."""
        return bool(self._tasks) or bool(self._unseen_puts)

    def count(self) -> None:
        """Record that the batch now sent to the worker counts everything that was put first so far."""
        self._counted_puts = self._unseen_puts

    def absorb(self) -> None:
        """Process the requests that the last batch found known."""
        self._unseen_puts, self._counted_puts = self._unseen_puts - self._counted_puts, 0
        known = self._frontier.progress.take_known()
        placeholders = [link for link in known if is_placeholder(link.request)]
        others = [link for link in known if not is_placeholder(link.request)]
        if placeholders:
            self._begin(self._find_made(placeholders))
        if again := [found for link in others if (found := self._revisited(link)) is not None]:
            self._begin(self._make_again(again))

    def close(self) -> None:
        """Cancel lookups in progress."""
        for task in self._tasks:
            task.cancel()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _revisited(self, link: Link) -> tuple[Link, float] | None:
        """Return a known request that may be made again, with the latest time of its last fetch; drop it otherwise."""
        revisit = revisit_of(self._requests.peek(link))
        if revisit is None or revisit == NEVER:
            self._drop(link)
            return None
        return link, self._began if revisit == ALWAYS else self._frontier.now() - revisit

    async def _make_again(self, links: Sequence[tuple[Link, float]]) -> None:
        again = partial(make_again, links=links, now=self._frontier.now)
        made = {link.key for link in await self._on_store(again)}
        self._metrics.inc("addon/made_again", len(made))
        for link, _ in links:
            if link.key not in made:
                self._drop(link)
        self._unseen_puts += bool(made)
        self._worker.stir()

    async def _find_made(self, links: Sequence[Link]) -> None:
        """Drop those requests in memory that were made before. The others wait for their turn."""
        for link in await self._on_store(partial(made_before, links=links)):
            self._drop(link)
            for done in self._requests.memory.made_before(link.request or b""):
                self._landings.settle(done)
        self._worker.stir()
        engine.wake(self._crawler)

    async def _on_store(self, function: Callable[[FrontierStore], Sequence[Link]]) -> Sequence[Link]:
        return await self._worker.call(partial(self._frontier.worker.on_store, function))

    def _drop(self, link: Link) -> None:
        request = self._requests.known(link)
        self._duplicates.log(request)
        self._crawler.signals.send_catch_log(request_dropped, request=request, spider=self._crawler.spider)
