"""The newest entry of a store's change log, which one task polls for all waiting clients.

While no client waits, the store is not polled. `SharedAnswer` computes an answer once for many clients.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["POLL_S", "ChangeTail", "SharedAnswer"]

_T = TypeVar("_T")
POLL_S: Final = 0.5
"""Time between two polls while clients wait, in seconds."""


class ChangeTail:
    """Waits for new entries of one change log. `end` returns the cursor after the newest entry."""

    def __init__(self, end: Callable[[], Awaitable[str]]) -> None:
        self._end = end
        self._last: str | None = None
        self._more = asyncio.Event()
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()

    async def wait_beyond(self, cursor: str, seconds: float) -> bool:
        """Wait until the log may have entries after a cursor.

        Return False if no entry arrives within `seconds`.

        Raises
        ------
        WebfountainError, ProblemError
            when the store cannot be read, or too many requests wait for it.
        """
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self._begin()
                    if self._last != cursor:
                        return True
                    await self._more.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1

    async def _begin(self) -> None:
        """Start the polling task if it is not running."""
        async with self._beginning:
            if self._task is None or self._task.done():
                self._raise_failure()
                self._last = await self._end()
                self._task = asyncio.create_task(self._follow())

    def _raise_failure(self) -> None:
        """Raise the error that ended the polling task, if there is one."""
        task, self._task = self._task, None
        if task is not None and not task.cancelled() and (error := task.exception()) is not None:
            raise error

    async def _follow(self) -> None:
        """Poll the store while clients wait."""
        try:
            while self._waiting:
                await asyncio.sleep(POLL_S)
                end = await self._end()
                if end != self._last:
                    self._last = end
                    self._wake()
        except Exception:
            self._wake()  # the next waiting client raises the error
            raise

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()


class SharedAnswer(Generic[_T]):
    """An answer that is computed once for all requests within `seconds`."""

    def __init__(self, make: Callable[[], Awaitable[_T]], *, seconds: float) -> None:
        self._make = make
        self._seconds = seconds
        self._made_at = float("-inf")
        self._making: asyncio.Future[_T] | None = None

    async def get(self) -> _T:
        """Return an answer at most `seconds` old, or raise the error with which its computation failed."""
        now = asyncio.get_running_loop().time()
        if self._making is None or (self._making.done() and now - self._made_at >= self._seconds):
            self._made_at = now
            self._making = asyncio.ensure_future(self._make())
        return await asyncio.shield(self._making)
