"""At the end of a crawl's first period, log once which seeds have brought no page.

Place in the walk: beside the crawl, polled by the scheduler. A crawl may run for months. A wrong seed must be reported
before its end. The summary at the end of each crawl also reports it (`report.troubles`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from webfountain.report.troubles import seed_lines, seeds_in_force

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webfountain.report.troubles import SeedWithoutPage
    from webfountain.store.contract import FrontierStore

__all__ = ["FirstPeriod"]

logger = logging.getLogger(__name__)


class FirstPeriod:
    """The check of one crawl. `read` calls a function with the store in the worker thread; `ends_at` is UTC seconds."""

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
