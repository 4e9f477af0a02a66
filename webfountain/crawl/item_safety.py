"""Keep items while the target of their pipeline (a list on a server, a database) is unreachable.

If a pipeline fails because its target is unreachable, the pipeline gets the same item again until the target answers. A
page is settled only after its items are delivered. If the target stays unreachable until the crawl stops, or for
`PATIENCE_S`, the item fails as usual, and its page is requested again. No item is lost, but an item may be delivered
twice. After a pipeline error that has nothing to do with the target, such as `DropItem`, the page is settled.

`is_away` recognizes the errors of unreachable targets by class name, because the error classes of client libraries have
no common base class.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import random
import time
from typing import TYPE_CHECKING, Any, Final

from scrapy import signals
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.python import global_object_name

from webfountain.crawl.download_handler import ABORT

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

    from webfountain.crawl.flight import Flight

__all__ = ["ItemSafety", "is_away"]

logger = logging.getLogger(__name__)

PATIENCE_S: Final = 3600.0
"""Longest time that an item waits for an unreachable target of its pipeline, in seconds."""
SHORTEST_S: Final = 0.1
LONGEST_S: Final = 2.0
_AWAY: Final = frozenset(
    {
        # redis, and clients that use the same names or those of `requests`
        "BusyLoadingError",
        "ClusterDownError",
        "ConnectionError",
        "MasterDownError",
        "OutOfMemoryError",
        "ReadOnlyError",
        "TimeoutError",
        "TryAgainError",
        # pymongo, aiohttp, httpx, urllib3, kafka, elasticsearch
        "AutoReconnect",
        "ClientConnectionError",
        "ConnectError",
        "ConnectTimeout",
        "ConnectTimeoutError",
        "ConnectionFailure",
        "ConnectionTimeout",
        "KafkaTimeoutError",
        "NewConnectionError",
        "NoBrokersAvailable",
        "ReadTimeout",
        # psycopg, MySQL: "server closed the connection", "too many connections"
        "CannotConnectNow",
        "InterfaceError",
        "OperationalError",
    }
)
_FILES: Final = frozenset({"sqlite3"})
"""Modules whose OperationalError does not mean that a server is unreachable, because the database is a local file."""


def is_away(error: BaseException) -> bool:
    """Return whether an error of a pipeline means that its target, such as a database, is unreachable."""
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    return any(
        kind.__name__ in _AWAY and kind.__module__.partition(".")[0] not in _FILES for kind in type(error).__mro__
    )


class _Target:
    """Logs when the target of a pipeline becomes unreachable, and when it can be reached again."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_away = False
        self._changed = -math.inf  # when that became known, in s

    def note_failure(self, error: Exception, tried: float) -> None:
        """Log that the target is unreachable, after a failed attempt that began at `tried` (monotonic seconds)."""
        if self._is_away or tried < self._changed:  # attempts overlap: an older one may end after a newer one
            return
        self._is_away, self._changed = True, time.monotonic()
        logger.warning("The target of %s is unreachable; its items and their pages wait: %.200r", self._name, error)

    def note_answer(self, tried: float) -> None:
        """Log that the target can be reached again, after an attempt that began at `tried` (monotonic seconds)."""
        if not self._is_away or tried < self._changed:
            return
        now = time.monotonic()
        logger.warning("The target of %s can be reached again, after %.1f s", self._name, now - self._changed)
        self._is_away, self._changed = False, now


class ItemSafety:
    """Repeats the pipeline calls of one crawl while their targets are unreachable. Call all methods in the
    loop thread.
    """

    def __init__(self, crawler: Crawler, flight_of: Callable[[Any], Flight | None]) -> None:
        self._flight_of = flight_of
        self._is_over = asyncio.Event()
        self._rng = random.Random()
        self._stats = crawler.stats
        crawler.signals.connect(self._item_error, signals.item_error)
        crawler.signals.connect(self._abort, ABORT)

    def guard(self, pipeline: Callable[..., Any]) -> Callable[..., Any]:
        """Return a `process_item` that repeats the call of `pipeline` until the pipeline's target can be reached."""
        name = global_object_name(pipeline)
        target = _Target(name)

        @functools.wraps(pipeline)
        async def process_item(item: Any, *args: Any) -> Any:
            began, pause = time.monotonic(), SHORTEST_S
            while True:
                tried = time.monotonic()
                try:
                    done = await ensure_awaitable(pipeline(item, *args), _warn=name)
                except Exception as error:
                    if not is_away(error) or self._is_over.is_set() or time.monotonic() - began > PATIENCE_S:
                        raise
                    target.note_failure(error, tried)
                    await self._wait(pause)
                    pause = min(2.0 * pause, LONGEST_S)
                else:
                    target.note_answer(tried)
                    return done

        return process_item

    async def _wait(self, pause: float) -> None:
        self._stats.inc_value("addon/items_waited")
        try:
            async with asyncio.timeout(pause * self._rng.uniform(0.5, 1.0)):
                await self._is_over.wait()
        except TimeoutError:
            return

    def _item_error(self, response: Any, failure: Failure) -> None:
        """If an item could not be delivered because a target was unreachable, mark its page to be requested again."""
        if failure.value is None or not is_away(failure.value):
            return
        flight = self._flight_of(response)
        while flight is not None:  # flights that wait for this page in memory are not settled either
            flight.lost_items = True
            flight = flight.parent

    def _abort(self, word: str) -> None:
        """Stop waiting for unreachable targets, because the crawl stops."""
        if word == "cut":
            self._is_over.set()
