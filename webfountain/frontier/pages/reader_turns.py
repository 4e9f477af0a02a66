"""The order in which the bodies of several sites get reader threads.

Reading a body takes from a millisecond to two seconds, depending on its site. In a single queue, a few sites with slow
pages would delay all others. So bodies wait by site, and the site with the least recent reading time is next. Sites
that take much longer than others share at most one thread, so that the other threads are left for the rest. If all
sites are similar, nothing is delayed. Place in the walk: a body waits here between its landing and the thread that
reads it (`sandbox.FencedReader.run`). This module reads no bodies itself. It is used in the loop thread only.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

__all__ = ["ReaderTurns"]

SLOW_S: Final = 0.25
"""A site whose bodies take less than this on average, s, is never slow."""
SLOW_FACTOR: Final = 4.0
"""A site is slow if its reading time is at least this many times the reading time of the fastest site."""
_FORGET_S: Final = 60.0
"""Half-life of reading time, seconds. A site without reading in this time is not used for comparison."""
_SITES: Final = 4096
"""Number of sites whose reading times are remembered; the most recent ones are kept."""


@dataclass(slots=True)
class _ReadingTime:
    """Reading times of a site: the weighted mean over its bodies, in which the last counts most, and the decaying sum
    at the time `at`.
    """

    mean_s: float
    spent_s: float
    at: float


@dataclass(slots=True)
class _Lane:
    """The threads of one kind: the number of free threads, and the bodies that wait for one."""

    free: int
    waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)


class ReaderTurns:
    """Assigns the threads of several lanes; `threads` gives the number in each lane."""

    def __init__(self, threads: Mapping[str, int], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lanes = {name: _Lane(count) for name, count in threads.items()}
        self._running: Counter[str] = Counter()
        self._slow_running = 0
        self._times: dict[str, _ReadingTime] = {}

    @asynccontextmanager
    async def turn(self, site: str, lane: str) -> AsyncIterator[None]:
        """Wait until a body of the site may be read in a thread of the lane, and occupy the thread during the block."""
        await self._wait(site, self._lanes[lane])
        is_slow = self._is_slow(site)
        self._running[site] += 1
        self._slow_running += is_slow
        begun = self._clock()
        try:
            yield
        finally:
            self._slow_running -= is_slow
            self._running[site] -= 1
            if not self._running[site]:
                del self._running[site]
            self._lanes[lane].free += 1
            self._note(site, self._clock() - begun)
            self._grant()

    async def _wait(self, site: str, lane: _Lane) -> None:
        """Take a free thread of the lane, now or when it is the site's turn."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lane.waiting.setdefault(site, deque()).append(granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                lane.free += 1
                self._grant()
            raise

    def _grant(self) -> None:
        """Give each free thread to the site whose turn it is."""
        granted: Counter[str] = Counter()
        slow = self._slow_running
        for lane in self._lanes.values():
            while lane.free > 0 and (site := self._next(lane, granted, may_be_slow=slow < 1)) is not None:
                queue = lane.waiting[site]
                future = queue.popleft()
                if not queue:
                    del lane.waiting[site]
                if not future.done():
                    future.set_result(None)
                    lane.free -= 1
                    granted[site] += 1
                    slow += self._is_slow(site)

    def _next(self, lane: _Lane, granted: Counter[str], *, may_be_slow: bool) -> str | None:
        found = [site for site in lane.waiting if may_be_slow or not self._is_slow(site)]
        return min(found, key=lambda site: (self._running[site] + granted[site], self._spent(site)), default=None)

    # ------------------------------------------------------------ reading times

    def _note(self, site: str, seconds: float) -> None:
        before = self._times.pop(site, None)
        mean_s = seconds if before is None else (before.mean_s + seconds) / 2
        self._times[site] = _ReadingTime(mean_s, self._decayed(before) + seconds, self._clock())
        if len(self._times) > _SITES:
            del self._times[next(iter(self._times))]

    def _spent(self, site: str) -> float:
        return self._decayed(self._times.get(site))

    def _decayed(self, time: _ReadingTime | None) -> float:
        if time is None:
            return 0.0
        return float(time.spent_s * 0.5 ** ((self._clock() - time.at) / _FORGET_S))

    def _is_slow(self, site: str) -> bool:
        """Return whether the bodies of a site take much longer to read than those of another site."""
        time = self._times.get(site)
        if time is None or time.mean_s <= SLOW_S:
            return False
        latest = self._clock() - _FORGET_S
        fastest = min((each.mean_s for each in self._times.values() if each.at >= latest), default=inf)
        return time.mean_s > SLOW_FACTOR * fastest
