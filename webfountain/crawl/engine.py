"""Where we touch private parts of Scrapy's engine; nothing else does.

Scrapy tells a scheduler neither when a request is done with (issue 7978) nor lets it say that a request has come
due: it asks again when a download ends or after five seconds. Both are needed here: politeness is a matter of
times, and a lease is settled when the engine is done, whatever the end. Nor can a component refuse to begin without
tracebacks about it. `tests/crawl/test_engine.py` and `test_spider.py` fail where a release of Scrapy moves these
parts. Place in the walk: under the scheduler.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.core.scraper import Scraper
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.defer import _schedule_coro, aiter_errback

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from webfountain.errors import WebfountainError

__all__ = ["close", "fail", "is_closing", "refuse", "running_crawl", "scrape_in_turn", "wake", "watch_ends"]

logger = logging.getLogger(__name__)


class _InProgress(set[Any]):
    """The engine's set of requests in progress, which tells when one leaves.

    A request leaves once, after its response, its failure or the request that replaced it has gone all the way:
    callbacks run, items through the pipelines, new requests enqueued.
    """

    def __init__(self, requests: set[Request], ended: Callable[[Request], None]) -> None:
        super().__init__(requests)
        self._ended = ended

    def remove(self, request: Request) -> None:
        super().remove(request)
        self._ended(request)


def running_crawl() -> asyncio.Task[Any] | None:
    """The crawl that builds its components now; None where Scrapy began it without a loop (`CrawlerProcess`)."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def refuse(crawler: Crawler, error: WebfountainError, *, crawl: asyncio.Task[Any] | None) -> None:
    """Have a crawl that cannot begin end with the one line that `error` is, and status 1. Then raise `error`.

    `crawl` is what `running_crawl` said when the component was built. Whoever awaits the crawl still gets `error`.
    """
    logger.critical("%s", error)
    if crawler._engine is not None:
        # Not open yet, so there is nothing to close: its parts would complain that they were never opened.
        crawler.engine.spider = None
    if crawl is not None:
        # Scrapy leaves the exception to asyncio, which logs one that nobody asked for.
        crawl.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


def watch_ends(crawler: Crawler, ended: Callable[[Request], None]) -> None:
    """Have `ended` called with every request that the engine is done with.

    Raises
    ------
    RuntimeError
        when this release of Scrapy keeps its requests elsewhere; use a release that the tests know.
    """
    slot = getattr(crawler.engine, "_slot", None)
    if not isinstance(getattr(slot, "inprogress", None), set):
        raise RuntimeError("this release of Scrapy has no ExecutionEngine._slot.inprogress; webfountain needs it")
    assert slot is not None
    slot.inprogress = _InProgress(slot.inprogress, ended)


def scrape_in_turn(crawler: Crawler) -> None:
    """Have what a callback yields processed one after the other in the response's own task.

    That is what CONCURRENT_ITEMS = 1 means; Scrapy makes a queue and two more tasks for it, 0.06 ms a page.
    """
    scraper = crawler.engine.scraper
    if scraper.concurrent_items == 1 and type(scraper) is Scraper:
        scraper.handle_spider_output_async = functools.partial(  # type: ignore[method-assign]
            _process_in_turn, scraper
        )


async def _process_in_turn(scraper: Scraper, result: Any, request: Request, response: Any) -> None:
    outputs = as_async_generator(result)
    async for output in aiter_errback(outputs, scraper.handle_spider_error, request, response):
        await scraper._process_spidermw_output_async(output, response)


def wake(crawler: Crawler) -> None:
    """Have the engine ask the scheduler in the next turn of the loop; several calls before that count once."""
    slot = crawler.engine._slot
    if slot is not None and slot.closing is None:
        slot.nextcall.schedule()


def is_closing(crawler: Crawler) -> bool:
    """Whether the engine takes no new request any more (a signal, CloseSpider, `close`)."""
    slot = crawler.engine._slot
    return slot is None or slot.closing is not None


def close(crawler: Crawler, reason: str) -> None:
    """Have the engine close the spider; without effect when it is closing already."""
    if not is_closing(crawler):
        _schedule_coro(crawler.engine.close_spider_async(reason=reason))


def fail(crawler: Crawler) -> None:
    """As `close`, for a crawl that cannot go on: `scrapy crawl` ends with status 1 then.

    Scrapy has that status for crawls that never got a spider. So this one has none any more, once all is stopped.
    """

    def forget_spider() -> None:
        crawler.spider = None

    def close_failed() -> None:
        close(crawler, "failed")

    crawler.signals.connect(forget_spider, signals.engine_stopped, weak=False)
    if crawler.engine.running:
        close_failed()
    else:  # half open: what is not open yet could not be closed
        crawler.signals.connect(close_failed, signals.engine_started, weak=False)
