"""The only module that uses private parts of Scrapy's engine.

The frontier must settle a lease when a request is done, but Scrapy's engine does not tell the scheduler (Scrapy issue
7978). The engine polls the scheduler only when a download ends, or after five seconds; a scheduler cannot wake the
engine earlier. If a component refuses to start, Scrapy itself would log a traceback instead of a plain error.
`tests/crawl/test_engine.py` and `test_spider.py` fail if a release of Scrapy changes the private parts.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import signal
import sys
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import Request, signals
from scrapy.core.scraper import Scraper
from scrapy.core.spidermw import SpiderMiddlewareManager
from scrapy.extensions.closespider import CloseSpider
from scrapy.extensions.corestats import CoreStats
from scrapy.extensions.feedexport import FeedExporter
from scrapy.extensions.postprocessing import PostProcessingManager
from scrapy.pipelines import ItemPipelineManager
from scrapy.signalmanager import SignalManager
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import _schedule_coro, aiter_errback

from webfountain.errors import InputError, WebfountainError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from contextvars import ContextVar
    from types import FrameType

    from scrapy.crawler import Crawler

__all__ = [
    "at_second_signal",
    "close",
    "connect_ends",
    "fail",
    "flush_feeds",
    "guard_pipelines",
    "is_closing",
    "is_inspecting",
    "need_asyncio",
    "refuse",
    "running_crawl",
    "scrape_for",
    "spider_arguments",
    "stop_signals",
    "wake",
]

logger = logging.getLogger(__name__)

_INSPECTING: Final = frozenset(f"scrapy.commands.{name}" for name in ("shell", "fetch", "parse", "check", "bench"))
_PLAIN: Final = frozenset((CoreStats, FeedExporter, CloseSpider))
"""Extensions that receive signals in plain functions, which need no await."""


class _InProgress(set[Any]):
    """The engine's set of requests in progress, which calls `ended` with each request that the engine removes.

    The engine removes a request after the callback has run, all items have passed the pipelines, and all new requests
    are enqueued.
    """

    def __init__(self, requests: set[Request], ended: Callable[[Request], None]) -> None:
        super().__init__(requests)
        self._ended = ended

    def remove(self, request: Request) -> None:
        super().remove(request)
        self._ended(request)


def running_crawl() -> asyncio.Task[Any] | None:
    """Return the asyncio task that is starting a crawl, or None if no event loop runs yet (`CrawlerProcess`)."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def need_asyncio() -> None:
    """Raise InputError if Scrapy runs without asyncio's loop, which all components need."""
    if not is_asyncio_available():
        raise InputError(
            "webfountain needs the asyncio reactor: leave TWISTED_REACTOR at its default "
            "(allowed: twisted.internet.asyncioreactor.AsyncioSelectorReactor)"
        )


def refuse(crawler: Crawler, error: WebfountainError | OSError, *, crawl: asyncio.Task[Any] | None) -> None:
    """End a crawl that cannot start: log the text of `error` and make the exit status 1. The caller must raise `error`
    afterwards.

    `crawl` is the task that started the crawl (`running_crawl`).
    """
    logger.critical("%s", error)
    if crawler._engine is not None:
        # The crawl is not open yet, so nothing needs closing; if it were closed, its parts would complain that they
        # were never opened.
        crawler.engine.spider = None
    if crawl is not None:
        # Scrapy leaves the exception to asyncio, which logs exceptions that nobody retrieves.
        crawl.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    else:
        logging.getLogger("twisted").addFilter(_ReportedFailure(error))


class _ReportedFailure(logging.Filter):
    """A filter that keeps Twisted from logging a failure a second time."""

    def __init__(self, error: WebfountainError | OSError) -> None:
        super().__init__()
        self._error = error

    def filter(self, record: logging.LogRecord) -> bool:
        failed = record.exc_info[1] if record.exc_info else None
        return failed is not self._error and not record.getMessage().startswith("Unhandled error in Deferred")


def connect_ends(crawler: Crawler, ended: Callable[[Request], None]) -> None:
    """Make the engine call `ended` with each request when the request is completely processed.

    Raises
    ------
    RuntimeError
        if this release of Scrapy stores its requests elsewhere.
    """
    slot = getattr(crawler.engine, "_slot", None)
    if not isinstance(getattr(slot, "inprogress", None), set):
        raise RuntimeError("this release of Scrapy has no ExecutionEngine._slot.inprogress; webfountain needs it")
    assert slot is not None
    slot.inprogress = _InProgress(slot.inprogress, ended)


def spider_arguments(crawler: Crawler) -> dict[str, str]:
    """Return the spider arguments of a crawl whose spider does not exist yet. The arguments are read from the local
    variables of `Crawler.crawl`.
    """
    for frame in _callers("crawl", "crawl_async"):
        if frame.f_locals.get("self") is crawler:
            given = {**dict(enumerate(frame.f_locals["args"])), **frame.f_locals["kwargs"]}
            return {str(name): str(value) for name, value in given.items()}
    return {}


def is_inspecting() -> bool:
    """Return whether the running Scrapy command only inspects pages and does not crawl."""
    commands = (type(frame.f_locals.get("self")) for frame in _callers("run"))
    return any(kind.__module__ in _INSPECTING for command in commands for kind in command.__mro__)


def _callers(*names: str) -> Iterator[FrameType]:
    """Yield the frames of all functions with one of these names that have not returned yet."""
    for frame, _ in traceback.walk_stack(sys._getframe()):
        if frame.f_code.co_name in names:
            yield frame


def flush_feeds(crawler: Crawler) -> None:
    """Flush the files of all feeds, so that no written item is lost if the process is killed.

    Raises
    ------
    WebfountainError
        if a feed cannot be written. The caller must not count the items as done.
    """
    exporter = crawler.get_extension(FeedExporter)
    if exporter is not None:
        _flush(exporter)


def _flush(exporter: FeedExporter) -> None:
    for slot in exporter.slots:
        file = slot.file
        if isinstance(file, PostProcessingManager):
            file = file.file
        if file is None or not hasattr(file, "flush") or file.closed:
            continue  # the file is empty, or the storage itself manages it
        try:
            file.flush()
        except OSError as error:
            raise WebfountainError(f"the feed {slot.uri} cannot be written: {error.strerror}") from None


def scrape_for(crawler: Crawler, current: ContextVar[Any] | None, of: Callable[[Request], Any]) -> None:
    """Speed up Scrapy's processing of the output of callbacks.

    For each response, Scrapy starts a hundred tasks, which takes 0.45 ms. `scrape_for` makes Scrapy start one task for
    each item, or no task if the project has no pipelines. At most `CONCURRENT_ITEMS` items of a response are processed
    at a time. While the spider processes a response or failure, the context variable `current` contains `of(request)`.
    """
    scraper = crawler.engine.scraper
    if type(scraper) is not Scraper:
        return
    if type(scraper.spidermw) is SpiderMiddlewareManager and not scraper.spidermw.middlewares:
        scraper.spidermw.scrape_response_async = _scrape_at_once  # type: ignore[method-assign, assignment]
    if type(scraper.signals) is SignalManager:
        scraper.signals = _ScraperSignals(crawler)
    if current is not None:
        scraper._scrape = functools.partial(_scrape_one, scraper._scrape, current, of)  # type: ignore[method-assign]
    most = scraper.concurrent_items if scraper.itemproc.middlewares else 1
    process = functools.partial(_process_one, scraper, crawler.get_extension(FeedExporter))
    scraper.handle_spider_output_async = functools.partial(  # type: ignore[method-assign]
        _process_output, scraper, process, most=most
    )


def guard_pipelines(crawler: Crawler, guard: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace `process_item` of each item pipeline by the result of `guard`."""
    itemproc = crawler.engine.scraper.itemproc
    if not isinstance(itemproc, ItemPipelineManager):
        return
    pipelines = itemproc.methods["process_item"]
    for i, pipeline in enumerate(pipelines):
        assert pipeline is not None
        guarded = guard(pipeline)
        pipelines[i] = guarded
        if pipeline in itemproc._mw_methods_requiring_spider:
            itemproc._mw_methods_requiring_spider.add(guarded)


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


class _ScraperSignals(SignalManager):
    """The scraper's signal manager, which calls receivers of `_PLAIN` extensions directly and starts no tasks."""

    async def send_catch_log_async(self, signal: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        receivers = liveReceivers(getAllReceivers(self.sender, signal))
        if all(type(getattr(receiver, "__self__", None)) in _PLAIN for receiver in receivers):
            return self.send_catch_log(signal, **kwargs)
        return await super().send_catch_log_async(signal, **kwargs)


async def _scrape_at_once(scrape: Callable[[Any, Request], Awaitable[Any]], response: Any, request: Request) -> Any:
    """Return the output of a callback, in a crawl without spider middlewares."""
    return await scrape(response, request)


async def _process_output(
    scraper: Scraper,
    process: Callable[[Any, Any], Coroutine[Any, Any, None]],
    result: Any,
    request: Request,
    response: Any,
    *,
    most: int,
) -> None:
    if most == 1 and isinstance(result, list):  # a list raises no error, and nothing runs in parallel
        for output in result:
            await process(output, response)
        return
    outputs = aiter_errback(as_async_generator(result), scraper.handle_spider_error, request, response)
    running: set[asyncio.Task[None]] = set()
    async for output in outputs:
        processing = process(output, response)
        if most == 1 or isinstance(output, Request):
            await processing
            continue
        running.add(asyncio.create_task(processing))
        if len(running) >= most:
            _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    if running:
        await asyncio.wait(running)


async def _process_one(scraper: Scraper, exporter: FeedExporter | None, output: Any, response: Any) -> None:
    """Process one output of a callback; log any error.

    The feed's file is flushed after each item, because the next run may drop the item as already known.
    """
    try:
        await scraper._process_spidermw_output_async(output, response)
        if exporter is not None and not isinstance(output, Request):
            with suppress(WebfountainError):  # the next batch reports it, and settles nothing
                _flush(exporter)
    except Exception:
        logger.exception("Error while processing what a callback yielded: %.500r", output)


def wake(crawler: Crawler) -> None:
    """Make the engine call the scheduler in the next iteration of the event loop."""
    slot = crawler.engine._slot
    if slot is not None and slot.closing is None:
        slot.nextcall.schedule()


def is_closing(crawler: Crawler) -> bool:
    """Return whether the engine no longer accepts requests (after a signal, CloseSpider or `close`)."""
    slot = crawler.engine._slot
    return slot is None or slot.closing is not None


def at_second_signal(call: Callable[[], None]) -> None:
    """Run `call` when a second SIGINT or SIGTERM arrives, before Scrapy ends the process.

    The caller must call `at_second_signal` again while the crawl ends, because Scrapy replaces the signal handler at
    the first signal.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)
        if callable(before) and _is_second(before):
            signal.signal(number, functools.partial(_called_first, call, before))


def stop_signals() -> int:
    """Return how many signals to stop have arrived: 0, 1, or 2 for two and more."""
    handler = signal.getsignal(signal.SIGTERM)
    if handler is signal.SIG_IGN:  # as Scrapy sets it at the second signal
        return 2
    return int(_is_second(handler.args[1] if isinstance(handler, functools.partial) else handler))


def _is_second(handler: Any) -> bool:
    return str(getattr(handler, "__name__", "")).startswith("_signal_kill")


def _called_first(call: Callable[[], None], before: Callable[[int, Any], Any], number: int, frame: Any) -> None:
    call()
    before(number, frame)


def close(crawler: Crawler, reason: str) -> None:
    """Make the engine close the spider, unless the spider is already closing."""
    if not is_closing(crawler):
        _schedule_coro(crawler.engine.close_spider_async(reason=reason))


def fail(crawler: Crawler) -> None:
    """Close a crawl that cannot continue, and make `scrapy crawl` end with status 1.

    Scrapy ends with status 1 if `crawler.spider` is None, so `fail` sets `crawler.spider` to None after the engine has
    stopped.
    """

    def forget_spider() -> None:
        crawler.spider = None

    def close_failed() -> None:
        close(crawler, "failed")

    crawler.signals.connect(forget_spider, signals.engine_stopped, weak=False)
    if crawler.engine.running:
        close_failed()
    else:  # The engine is half open: a part that is not open yet cannot be closed.
        crawler.signals.connect(close_failed, signals.engine_started, weak=False)
