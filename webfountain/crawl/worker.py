"""The loop that carries batches of work between the frontier and its one worker thread.

Place in the walk: beside it. Store, repository and seeds are only touched in that thread, in order; the loop
thread takes in what came of it. A failure of store or disk ends the loop and is told once: what was not settled
comes back at the next start.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from webfountain.errors import WebfountainError

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.frontier.batch import Batch
    from webfountain.frontier.frontier import Frontier
    from webfountain.frontier.planning.plan import Plan

__all__ = ["Worker"]

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

BATCH_S: Final = 0.02
"""Rest between two batches: at full speed each then has some tens of pages, not one."""
POLL_S: Final = 0.25


class Worker:
    """Runs `first` once, then the frontier's batches, as `take` gives them, until `end`.

    In the loop thread `look` is called before each batch and at least every `POLL_S`, `absorbed` after each, and
    `failed` when the loop ended by an error.
    """

    def __init__(
        self, *, look: Callable[[], None], absorbed: Callable[[], None], failed: Callable[[WebfountainError], None]
    ) -> None:
        self._look = look
        self._absorbed = absorbed
        self._failed = failed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="webfountain-worker")
        self._stirred = asyncio.Event()
        self._ending = False
        self._task: asyncio.Task[None] | None = None
        self._planner: asyncio.Task[None] | None = None

    async def call(self, function: Callable[[], _T]) -> _T:
        """Run `function` in the worker thread, after what it does now."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def start(self, frontier: Frontier, first: Callable[[], None], take: Callable[[], Batch | None]) -> None:
        """Begin; returns at once."""
        self._task = asyncio.get_running_loop().create_task(self._run(frontier, first, take))

    def stir(self) -> None:
        """There may be work."""
        self._stirred.set()

    async def end(self) -> None:
        """Do what is left to do, then stop."""
        self._ending = True
        self.stir()
        if self._task is not None:
            await self._task

    def shut(self) -> None:
        """Let the thread go."""
        self._thread.shutdown(wait=False)

    async def _run(self, frontier: Frontier, first: Callable[[], None], take: Callable[[], Batch | None]) -> None:
        try:
            await self.call(first)
            await self._run_batches(frontier, take)
        except WebfountainError as error:
            logger.critical("%s", error)
            self._failed(error)
        except Exception as error:
            logger.exception("The worker broke; the crawl ends, leases come back at the next start")
            self._failed(WebfountainError(f"the worker broke: {error!r}"))

    async def _run_batches(self, frontier: Frontier, take: Callable[[], Batch | None]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._ending:
                self._look()
            work = take()
            if work is not None:
                frontier.absorb(await loop.run_in_executor(self._thread, frontier.run, work))
                self._absorbed()
                self._plan(frontier)
                if not self._ending:
                    await asyncio.sleep(BATCH_S)
            elif self._ending:
                return
            else:
                await self._rest()

    def _plan(self, frontier: Frontier) -> None:
        """Let a plan be made beside the crawl: it takes up to some seconds, and touches neither store nor loop."""
        planning = frontier.planning()
        if planning is not None:
            self._planner = asyncio.get_running_loop().create_task(self._adopt(frontier, planning))

    async def _adopt(self, frontier: Frontier, planning: Callable[[], Plan | None]) -> None:
        try:
            plan = await asyncio.to_thread(planning)
        except Exception:
            logger.exception("Planning failed; the last plan stays")
            plan = None
        frontier.adopt(plan)
        self.stir()

    async def _rest(self) -> None:
        """Wait until something lands, or a little while."""
        handle = asyncio.get_running_loop().call_later(POLL_S, self._stirred.set)
        await self._stirred.wait()
        handle.cancel()
        self._stirred.clear()
