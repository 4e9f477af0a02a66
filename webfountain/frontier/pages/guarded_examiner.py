"""Guard the examiner against hostile bodies, which can make only their own page fail, and delay only their own site.

A child process reads bodies that may take long (`sandbox.reader`). If the crawling process crashed while it examined a
page, the next process examines this page alone (`sandbox.crash_guard`).

Reading a body takes from a millisecond to two seconds, depending on its site. A free thread goes to the waiting site
that has recently used the least reading time (`ReaderTurns`), so that slow sites do not delay other sites. All sites
whose bodies take much longer to read than those of the fastest site share one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter, deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.formats.robots import MAX_ORDINARY_ROBOTS_BYTES
from webfountain.formats.sitemap import MAX_SITEMAP_BYTES, is_small_sitemap
from webfountain.frontier.stage import Stage
from webfountain.sandbox.reader import FencedReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from webfountain.frontier.pages.examiner import Examiner
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.frontier.visit import Visit
    from webfountain.records import FetchResult
    from webfountain.sandbox.crash_guard import CrashSuspects
    from webfountain.store.answers import LeaseBatch
    from webfountain.store.contract import FrontierStore

__all__ = [
    "GuardedExaminer",
    "ReaderTurns",
    "SuspectStage",
]

logger = logging.getLogger(__name__)
SLOW_S: Final = 0.25
"""If the mean reading time of a site's bodies is at most this, in seconds, the site never counts as slow."""
SLOW_FACTOR: Final = 4.0
"""A site is slow if its mean reading time is more than this multiple of the fastest site's."""
_FORGET_S: Final = 60.0
"""Half-life of a site's total reading time, in seconds. Only a site with a body that was read within this time can be
the fastest site.
"""
_SITES: Final = 4096
"""Maximum number of sites whose reading times are in memory."""


class GuardedExaminer:
    """Examines fetches, with guards against hostile bodies. `robot` is the crawler's name in robots.txt."""

    def __init__(
        self,
        examiner: Examiner,
        reader: FencedReader,
        suspects: CrashSuspects,
        *,
        sites: ActiveList,
        progress: Progress,
        robot: str,
    ) -> None:
        self._examiner = examiner
        self._reader = reader
        self._suspects = suspects
        self._sites = sites
        self._progress = progress
        self._robot = robot
        self._turns = ReaderTurns(FencedReader.LANES)

    async def read_file(self, fetched: FetchResult) -> FetchResult:
        """Parse a large robots.txt or sitemap in another process, and return the fetch with the result.

        Call this method before `landed`. If the crawl is ending, robots.txt files and sitemaps are not parsed.
        """
        if fetched.fetch.kind == "page" or fetched.status is None or not 200 <= fetched.status < 300:
            return fetched
        if fetched.fetch.kind == "robots":
            if len(fetched.body) <= MAX_ORDINARY_ROBOTS_BYTES:
                return fetched
            read: Callable[[], Any] = partial(self._reader.read_robots, fetched.body, self._robot)
        elif is_small_sitemap(fetched.body):
            return fetched  # the store worker reads it
        else:
            read = partial(self._reader.read_sitemap, fetched.body)
        with contextlib.suppress(RuntimeError):
            # Even a small file may take seconds, so files wait for each other and for large pages.
            async with self._turns.turn(fetched.fetch.site, "large"):
                return msgspec.structs.replace(fetched, reading=await self._reader.run(read, size=MAX_SITEMAP_BYTES))
        return fetched

    def examine(self, fetched: FetchResult) -> Visit:
        """Examine a fetch, and return the visit. Do not call this method in the loop thread, because it may take
        seconds.
        """
        url = fetched.fetch.url
        if self._suspects.has_crashed(url):
            return self._examiner.unreadable(fetched, "crashed")
        try:
            with self._suspects.examining(url):
                return self._examiner.examine(fetched)
        except Exception as error:
            return self._broken(fetched, error)

    def examine_at_once(self, fetched: FetchResult) -> Visit | None:
        """Examine a fetch like `examine`, but return None if this could take more than a few milliseconds."""
        url = fetched.fetch.url
        if not self._suspects.may_examine_at_once(url):
            return None
        try:
            with self._suspects.examining(url):
                return self._examiner.examine_at_once(fetched)
        except Exception as error:
            return self._broken(fetched, error)

    async def examine_apart(self, fetched: FetchResult) -> Visit:
        """Examine a fetch in a separate thread."""
        size, site = len(fetched.body), fetched.fetch.site
        with self._progress.examining(fetched), self._sites.flights.reading(site):
            if fetched.fetch.url in self._suspects:
                # If this page crashes the process, all pages that are not written yet are lost. It may crash it again.
                await self._progress.all_written(within_s=2.0)
            async with self._turns.turn(site, FencedReader.lane_of(size)):
                return await self._reader.run(partial(self.examine, fetched), size=size)

    def cut_short(self) -> None:
        """Stop examining. Pages that are not examined when the crawl ends are fetched again in the next crawl."""
        self._reader.close()

    def close(self) -> None:
        """Close the readers."""
        self._reader.close()
        self._suspects.close()

    def _broken(self, fetched: FetchResult, error: Exception) -> Visit:
        """Log an unexpected error from the examination of a page, and return the visit of a failed page."""
        logger.error("A page could not be examined (%r): %s", error, fetched.fetch.url)
        return self._examiner.unreadable(fetched, "parse-crash")


class SuspectStage(Stage):
    """The stage that gives back leases of pages that may have crashed a process, as long as their sites have other
    pages.
    """

    def __init__(self, suspects: CrashSuspects, store: FrontierStore) -> None:
        self._suspects = suspects
        self._store = store

    def leased(self, dealt: LeaseBatch, at: float) -> LeaseBatch:
        del at
        if not len(self._suspects):
            return dealt
        never, recrawl, back = self._suspects.put_last(dealt.never_crawled, dealt.recrawl)
        self._store.queues.release([lease.id for lease in back])
        return msgspec.structs.replace(dealt, never_crawled=never, recrawl=recrawl)


@dataclass(slots=True)
class _ReadingTime:
    """A site's reading times: the mean `mean_s`, weighted towards recent bodies, and the total `spent_s`, which decays.
    `at` is the time at which the site's latest body was read.
    """

    mean_s: float
    spent_s: float
    at: float


@dataclass(slots=True)
class _Lane:
    """Reader threads for bodies of certain sizes: the number of free threads, and the waiting bodies by site."""

    free: int
    waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)


class ReaderTurns:
    """Assigns reader threads to bodies. A lane is a group of threads for bodies of certain sizes, and `threads` is the
    number of threads of each lane. Only the loop thread uses this object.
    """

    def __init__(self, threads: Mapping[str, int], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lanes = {name: _Lane(count) for name, count in threads.items()}
        self._running: Counter[str] = Counter()
        self._slow_running = 0
        self._times: dict[str, _ReadingTime] = {}

    @asynccontextmanager
    async def turn(self, site: str, lane: str) -> AsyncIterator[None]:
        """Wait for a free reader thread in the lane, and occupy it during a ``with`` block."""
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
        """Wait until the site gets a free thread in the lane."""
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
        """Give each free thread to a waiting site."""
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
        """Return whether a site's bodies take much longer to read than those of the fastest site."""
        time = self._times.get(site)
        if time is None or time.mean_s <= SLOW_S:
            return False
        latest = self._clock() - _FORGET_S
        fastest = min((each.mean_s for each in self._times.values() if each.at >= latest), default=inf)
        return time.mean_s > SLOW_FACTOR * fastest
