"""The loop that records a crawl: a live snapshot every two seconds, a sample of the history every minute.

The recording loop runs in the event loop of the crawl. If a disk or server fails, the log gets one line at the
beginning and one at the end of the failure.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from webfountain.errors import WebfountainError
from webfountain.history.archive import MINUTE_S
from webfountain.history.live import EVERY_S
from webfountain.history.publishing import ClaimPlace, FilePlace, LivePlace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from webfountain.history.live import LiveSnapshot
    from webfountain.history.recorder import Recorder
    from webfountain.store.contract import FrontierStore

__all__ = ["FIRST_RECORD_S", "RecordLoop"]

logger = logging.getLogger(__name__)

FIRST_RECORD_S: Final = 10.0
"""Time from the start to the first sample, in seconds. The first sample comes early, so that a short crawl has a
history too."""


class RecordLoop:
    """The recording loop of one crawl. `folder` is the store's folder; None for a store on a server or in memory.

    `with_store` calls a function with the crawl's store, in the thread that may use the store.
    """

    def __init__(
        self,
        recorder: Recorder,
        with_store: Callable[[Callable[[FrontierStore], Any]], Awaitable[Any]],
        folder: Path | None,
        *,
        made: Callable[[LiveSnapshot], None] = lambda _: None,
    ) -> None:
        """`made` is called with each snapshot, in the loop thread."""
        self._recorder = recorder
        self._with_store = with_store
        self._folder = folder
        self._made = made
        self._place = LivePlace()
        self._snapshots, self._history = _Outages("live snapshot"), _Outages("history")

    async def run(self) -> None:
        """Record until the task is cancelled. An unexpected error is logged and ends the recording, but not the
        crawl."""
        try:
            await self._run()
        except Exception:
            logger.exception("The history of the crawl is no longer recorded, because of an error")

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        wake_at, record_at = loop.time(), loop.time() + FIRST_RECORD_S
        self._place = await self._with_store(self._place_of)
        while True:
            late_s = max(loop.time() - wake_at, 0.0)
            snapshot = self._recorder.snapshot(lag_s=late_s)
            self._made(snapshot)
            with self._snapshots.reported():
                await asyncio.to_thread(self._place.put, snapshot)
            if loop.time() >= record_at:
                record_at = loop.time() + MINUTE_S
                with self._history.reported():
                    await self._with_store(self._recorder.record)
            wake_at = loop.time() + EVERY_S
            await asyncio.sleep(EVERY_S)

    def end(self, store: FrontierStore) -> None:
        """Store the sample of the last minute, and remove the snapshot. Call this method in the thread that may use the
        store.
        """
        with suppress(WebfountainError, OSError):  # the crawl ends even if the store fails
            self._recorder.record(store)
            self._place.remove()

    def _place_of(self, store: FrontierStore) -> LivePlace:
        if store.claims is not None:
            return ClaimPlace(store.claims)
        return LivePlace() if self._folder is None else FilePlace(self._folder)


class _Outages:
    """Logs when one kind of record cannot be stored, and when it can be stored again."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._fails = False

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Log the first error of an outage, and the end of the outage."""
        try:
            yield
        except (WebfountainError, OSError) as error:
            if not self._fails:
                logger.warning("The %s of the crawl cannot be stored: %s", self._what, error)
            self._fails = True
        else:
            if self._fails:
                logger.warning("The %s of the crawl is stored again", self._what)
            self._fails = False
