"""Decide whether a request is made again.

A request that the store already knows is usually dropped. An interval in `meta["revisit"]` (seconds, or a text such as
"12h" or "7d") is the time after which the request may be made again. With `meta["revisit"]` = "always", the request is
made once in each run that yields it. With WEBFOUNTAIN_RECRAWL, an interval in `meta["revisit"]` replaces the learned
interval, and "never" means that the request is made only once.

After each batch, `KnownRequests` processes the requests that the store already knew. A request that may be made again
is put at the front of its site's queue. Any other is dropped, as Scrapy's duplicate filter would drop it.
"""

from __future__ import annotations

import logging
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

from scrapy.signals import request_dropped

from webfountain.crawl import engine
from webfountain.crawl.memory_requests import is_placeholder
from webfountain.frontier.requests_by_url import made_before, make_again
from webfountain.policy.units import DURATION_FORM, Duration

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Sequence

    from scrapy import Request

    from webfountain.crawl.dupefilter import Duplicates
    from webfountain.crawl.flight import Landings
    from webfountain.crawl.requests import RequestStore
    from webfountain.crawl.session import Session
    from webfountain.records import Link

__all__ = ["ALWAYS", "NEVER", "KnownRequests", "is_one_off", "revisit_of"]

logger = logging.getLogger(__name__)

KEY: Final = "revisit"
ALWAYS: Final = 0.0
NEVER: Final = inf
_reported: set[str] = set()


def revisit_of(request: Request) -> float | None:
    """Return after how many seconds a request may be made again, or None if its meta does not say.

    An invalid `meta["revisit"]` is logged once and ignored.
    """
    given = request.meta.get(KEY)
    if given is None:
        return None
    if given == "always":
        return ALWAYS
    if given == "never":
        return NEVER
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return float(given)
    try:
        return float(Duration.parse(given))
    except ValueError:
        _report(repr(given), request)
        return None


def _report(given: str, request: Request) -> None:
    if given not in _reported:
        _reported.add(given)
        logger.warning(
            'meta["revisit"] of %s is %s: allowed are "never", "always", seconds, or %s', request, given, DURATION_FORM
        )


def is_one_off(request: Request) -> bool:
    """Return whether a request is made only once, even with WEBFOUNTAIN_RECRAWL.

    The frontier does not repeat a request with `dont_filter`, because a callback will yield it anew; it repeats start
    requests.
    """
    is_start = request.meta.get("is_start_request") and not request.meta.get("retry_times")
    return request.dont_filter and not is_start


class KnownRequests:
    """Processes requests that the store already knew: some are dropped, others are made again."""

    def __init__(self, session: Session, landings: Landings, *, requests: RequestStore, duplicates: Duplicates) -> None:
        self._session = session
        self._frontier = session.frontier
        self._requests = requests
        self._duplicates = duplicates
        self._landings = landings
        self._began = session.now()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unseen_puts = 1  # notes and failed requests are put at the front before the first batch
        self._counted_puts = 0

    def is_busy(self) -> bool:
        """Return whether the crawl must stay open because known requests may still be made again."""
        return bool(self._tasks) or bool(self._unseen_puts)

    def count(self) -> None:
        """Record that the current batch counts all requests put back in the queues so far."""
        self._counted_puts = self._unseen_puts

    def absorb(self) -> None:
        """Process the requests that the last batch reported as known."""
        self._unseen_puts, self._counted_puts = self._unseen_puts - self._counted_puts, 0
        known = self._frontier.progress.take_known()
        placeholders = [link for link in known if is_placeholder(link.request)]
        others = [link for link in known if not is_placeholder(link.request)]
        if placeholders:
            self._begin(self._find_made(placeholders))
        if again := [found for link in others if (found := self._revisited(link)) is not None]:
            self._begin(self._make_again(again))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._session.worker.begin(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _revisited(self, link: Link) -> tuple[Link, float] | None:
        """Return a known request and a time: the request is made again if it was last made before that time. Drop the
        request and return None if it may not be made again.
        """
        revisit = revisit_of(self._requests.peek(link))
        if revisit is None or revisit == NEVER:
            self._drop(link)
            return None
        return link, self._began if revisit == ALWAYS else self._frontier.now() - revisit

    async def _make_again(self, links: Sequence[tuple[Link, float]]) -> None:
        again = partial(make_again, links=links, now=self._frontier.now)
        made = {link.key for link in await self._session.on_store(again)}
        self._session.metrics.inc("addon/made_again", len(made))
        for link, _ in links:
            if link.key not in made:
                self._drop(link)
        self._unseen_puts += bool(made)
        self._session.worker.stir()

    async def _find_made(self, links: Sequence[Link]) -> None:
        """Drop the requests in memory that were already made in an earlier run."""
        for link in await self._session.on_store(partial(made_before, links=links)):
            self._drop(link)
            for done in self._requests.memory.made_before(link.request or b""):
                self._landings.settle(done)
        self._session.worker.stir()
        engine.wake(self._session.crawler)

    def _drop(self, link: Link) -> None:
        request = self._requests.known(link)
        self._duplicates.log(request)
        crawler = self._session.crawler
        crawler.signals.send_catch_log(request_dropped, request=request, spider=crawler.spider)
