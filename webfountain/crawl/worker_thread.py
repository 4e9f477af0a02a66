"""Carry batches of work between the frontier and its single worker thread.

Store, repository and seeds are used only in the worker thread, one call at a time. The event loop's thread applies the
results of batches. A failure of store or disk ends the worker's loop and is reported once. After a restart, all
unsettled work is repeated.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from webfountain.errors import WebfountainError
from webfountain.metrics import observed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from webfountain.frontier.batch import Batch, BatchResult
    from webfountain.frontier.cluster.heart import Heart
    from webfountain.frontier.frontier import Frontier
    from webfountain.frontier.planning.plan import Plan
    from webfountain.frontier.planning.planner import Planner

__all__ = ["BATCH_S", "MOMENT_S", "POLL_S", "Worker", "pause_s"]

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

BATCH_S: Final = 0.02
"""Shortest pause between two batches, in seconds. With pauses of 20 ms, each batch of a crawl at full speed settles
some tens of pages.
"""
_SITES: Final = 50
"""With more active sites than this, the pause between two batches grows."""
_LONGEST_S: Final = 0.1
POLL_S: Final = 0.25
MOMENT_S: Final = 0.01


class Worker:
    """Runs `first` and then the batches that `take` returns, until `end` is called.

    The loop thread calls `before_batch` before each batch and at least every `POLL_S`, even during a long batch. The
    loop thread calls `absorbed` after each batch, and `failed` if an error ended the loop.
    """

    def __init__(
        self,
        *,
        before_batch: Callable[[], None],
        absorbed: Callable[[], None],
        failed: Callable[[WebfountainError], None],
    ) -> None:
        self._before_batch = before_batch
        self._absorbed = absorbed
        self._failed = failed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="webfountain-worker")
        self._stirred = asyncio.Event()
        self.is_ending = False
        """True after a call of `end`."""
        self._heart = ThreadPoolExecutor(1, thread_name_prefix="webfountain-heartbeat")
        self._task: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._others: set[asyncio.Task[None]] = set()

    async def call(self, function: Callable[[], _T]) -> _T:
        """Run a function in the worker thread, after the thread's current work."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def start(
        self,
        frontier: Frontier,
        first: Callable[[], None],
        take: Callable[[], Batch | None],
        *,
        compare_clock: Callable[[], None],
    ) -> None:
        """Start the loop. After each heartbeat, another thread calls `compare_clock`."""
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._guarded(self._run(frontier, first, take)))
        self.begin(self._poll())
        if frontier.heart is not None:
            self._beating = loop.create_task(self._guarded(self._beat(frontier.heart, frontier.now, compare_clock)))

    def begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Begin a task that runs beside the loop, until it returns or `end` is called. An error of the task ends the
        crawl.
        """
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._others.add(task)
        task.add_done_callback(self._others.discard)
        return task

    def stir(self) -> None:
        """Wake the loop, because there may be work."""
        self._stirred.set()

    async def end(self) -> None:
        """Do the remaining work, then stop."""
        self.is_ending = True
        self.stir()
        for task in self._others:
            task.cancel()
        if self._task is not None:
            await self._task
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
            await asyncio.get_running_loop().run_in_executor(self._heart, int)  # wait until the current heartbeat ends

    def shut(self) -> None:
        """Release the threads."""
        self._thread.shutdown(wait=False)
        self._heart.shutdown(wait=False)

    async def _run(self, frontier: Frontier, first: Callable[[], None], take: Callable[[], Batch | None]) -> None:
        """Run `first`, and then the batches until the crawl ends."""
        await self.call(first)
        while True:
            if not self.is_ending:
                self._before_batch()
            work = take()
            if work is not None:
                frontier.work.absorb(await self.call(partial(_timed, frontier.worker.run, work)))
                self._absorbed()
                self._plan(frontier.planner)
                if not self.is_ending:
                    await asyncio.sleep(pause_s(len(frontier.sites.sites)))
            elif self.is_ending:
                return
            else:
                await self._rest(frontier.work_at() - frontier.now())

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            self._before_batch()

    async def _beat(self, heart: Heart, now: Callable[[], float], compare_clock: Callable[[], None]) -> None:
        """Send heartbeats, so that no lease ends during a long batch."""
        loop = asyncio.get_running_loop()
        while True:
            if (beat := heart.beat()) is not None:
                heart.apply(await loop.run_in_executor(self._heart, beat))
                self._absorbed()
                self.stir()
                await loop.run_in_executor(self._heart, compare_clock)
            await asyncio.sleep(min(max(heart.next_at() - now(), MOMENT_S), POLL_S))

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        """Run a task; an error ends the crawl."""
        try:
            await work
        except WebfountainError as error:
            self._failed(error)
        except Exception as error:
            logger.exception("The worker thread failed. The crawl ends; the next start fetches its leased pages")
            self._failed(WebfountainError(f"the worker failed: {error!r}"))

    def _plan(self, planner: Planner) -> None:
        """Make a plan in another thread, if a plan is due."""
        making = planner.making()
        if making is not None:
            self.begin(self._adopt(planner, making))

    async def _adopt(self, planner: Planner, making: Callable[[], Plan | None]) -> None:
        try:
            plan = await asyncio.to_thread(making)
        except Exception:
            logger.exception("Planning failed; the last plan stays in force", extra={"event": "controller/plan_kept"})
            plan = None
        planner.adopt_plan(plan)
        self.stir()

    async def _rest(self, due_s: float) -> None:
        """Wait until there may be new work, but no longer than `due_s` seconds or `POLL_S`."""
        wait_s = min(max(due_s, BATCH_S), POLL_S)
        handle = asyncio.get_running_loop().call_later(wait_s, self._stirred.set)
        await self._stirred.wait()
        handle.cancel()
        self._stirred.clear()


def pause_s(sites: int) -> float:
    """Return the pause between two batches of a crawl with `sites` active sites, in seconds."""
    return min(max(BATCH_S, BATCH_S * sites / _SITES), _LONGEST_S)


def _timed(run: Callable[[Batch], BatchResult], work: Batch) -> BatchResult:
    """Carry out a batch, and record how long it took."""
    began = time.perf_counter()
    result = run(work)
    result.counts.update(observed("batch/duration", time.perf_counter() - began))
    return result
