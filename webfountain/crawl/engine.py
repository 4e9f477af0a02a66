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
import sys
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request, signals
from scrapy.core.scraper import Scraper
from scrapy.extensions.feedexport import FeedExporter
from scrapy.extensions.postprocessing import PostProcessingManager
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import _schedule_coro, aiter_errback

from webfountain.errors import InputError, WebfountainError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextvars import ContextVar

    from scrapy.crawler import Crawler

__all__ = [
    "close",
    "connect_ends",
    "fail",
    "flush_feeds",
    "is_closing",
    "is_inspecting",
    "need_asyncio",
    "refuse",
    "running_crawl",
    "scrape_for",
    "spider_arguments",
    "wake",
]

logger = logging.getLogger(__name__)

_INSPECTING: Final = frozenset(f"scrapy.commands.{name}" for name in ("shell", "fetch", "parse", "check", "bench"))


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


def need_asyncio() -> None:
    """Raises InputError where Scrapy runs without asyncio's loop, which all of us wait in."""
    if not is_asyncio_available():
        raise InputError(
            "webfountain needs asyncio: leave TWISTED_REACTOR as it is by default "
            "(allowed: twisted.internet.asyncioreactor.AsyncioSelectorReactor)"
        )


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
    else:
        logging.getLogger("twisted").addFilter(_Said(error))


class _Said(logging.Filter):
    """Keeps Twisted from logging an error that a Deferred of nobody's holds: it has been said."""

    def __init__(self, error: WebfountainError) -> None:
        super().__init__()
        self._error = error

    def filter(self, record: logging.LogRecord) -> bool:
        failed = record.exc_info[1] if record.exc_info else None
        return failed is not self._error and not record.getMessage().startswith("Unhandled error in Deferred")


def connect_ends(crawler: Crawler, ended: Callable[[Request], None]) -> None:
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


def spider_arguments(crawler: Crawler) -> dict[str, str]:
    """What the spider of a crawl that is being set up was given: Scrapy keeps it nowhere but in its own call."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name in ("crawl", "crawl_async") and frame.f_locals.get("self") is crawler:
            given = {**dict(enumerate(frame.f_locals["args"])), **frame.f_locals["kwargs"]}
            return {str(name): str(value) for name, value in given.items()}
        frame = frame.f_back  # type: ignore[assignment]
    return {}


def is_inspecting() -> bool:
    """Whether a command of Scrapy's runs that looks at a page or two with a spider and is no crawl of it."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "run":
            command = frame.f_locals.get("self")
            if any(kind.__module__ in _INSPECTING for kind in type(command).__mro__):
                return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def flush_feeds(crawler: Crawler) -> None:
    """Hand to the operating system what feeds have of the items so far.

    Raises
    ------
    WebfountainError
        when a feed cannot be written: items that are in no feed must not count as done.
    """
    exporter = crawler.get_extension(FeedExporter)
    for slot in exporter.slots if exporter is not None else ():
        file = slot.file
        if isinstance(file, PostProcessingManager):
            file = file.file
        if file is None or not hasattr(file, "flush") or file.closed:
            continue  # nothing is in it yet, or it is no file but the storage's own affair
        try:
            file.flush()
        except OSError as error:
            raise WebfountainError(f"the feed {slot.uri} cannot be written: {error.strerror}") from None


def scrape_for(crawler: Crawler, current: ContextVar[Any] | None, of: Callable[[Request], Any]) -> None:
    """Have `current`, if any, hold what `of` says of a request while the spider works on its response or failure.

    What callbacks yield is processed as ever, `CONCURRENT_ITEMS` at a time, but tasks are made only for items, and only
    where there are pipelines: Scrapy makes a hundred for every response, 0.45 ms a page.
    """
    scraper = crawler.engine.scraper
    if type(scraper) is not Scraper:
        return
    if current is not None:
        scraper._scrape = functools.partial(_scrape_one, scraper._scrape, current, of)  # type: ignore[method-assign]
    most = scraper.concurrent_items if scraper.itemproc.middlewares else 1
    scraper.handle_spider_output_async = functools.partial(  # type: ignore[method-assign]
        _process_output, scraper, most
    )


async def _scrape_one(
    scrape: Callable[[Any, Request], Awaitable[None]],
    current: ContextVar[Any],
    of: Callable[[Request], Any],
    result: Any,
    request: Request,
) -> None:
    token = current.set(of(request))
    try:
        await scrape(result, request)
    finally:
        current.reset(token)


async def _process_output(scraper: Scraper, most: int, result: Any, request: Request, response: Any) -> None:
    outputs = aiter_errback(as_async_generator(result), scraper.handle_spider_error, request, response)
    running: set[asyncio.Task[None]] = set()
    async for output in outputs:
        processing = _process_one(scraper, output, response)
        if most == 1 or isinstance(output, Request):
            await processing
            continue
        running.add(asyncio.create_task(processing))
        if len(running) >= most:
            _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    if running:
        await asyncio.wait(running)


async def _process_one(scraper: Scraper, output: Any, response: Any) -> None:
    """One that breaks does not take the others with it."""
    try:
        await scraper._process_spidermw_output_async(output, response)
    except Exception:
        logger.exception("Error while processing what a callback yielded: %r", output)


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
