"""The examiner with its guards: a hostile body costs one page, and delays only its own site.

Place in the walk: the guards act between the landing of a fetch and its visit. Bodies that may take long are read in a
child process (`sandbox.reader`), in turns. Pages on which processes died are examined alone (`sandbox.crash_guard`).
"""

from __future__ import annotations

import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from webfountain.formats.robots import MAX_ORDINARY_ROBOTS_BYTES
from webfountain.formats.sitemap import MAX_SITEMAP_BYTES
from webfountain.frontier.pages.reader_turns import ReaderTurns
from webfountain.frontier.stage import Stage
from webfountain.sandbox.reader import FencedReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.frontier.pages.examiner import Examiner
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.frontier.visit import Visit
    from webfountain.records import FetchResult
    from webfountain.sandbox.crash_guard import CrashSuspects
    from webfountain.store.answers import LeaseBatch
    from webfountain.store.contract import FrontierStore

__all__ = ["GuardedExaminer", "SuspectStage"]

logger = logging.getLogger(__name__)


class GuardedExaminer:
    """Examines landed fetches. `robot` is the name by which robots.txt is read."""

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
        """Return a fetch with the parsed robots.txt or sitemap, if parsing may take long.

        Call it before the landing. If the crawl is ending, there may be no reader left; then the fetch is returned
        unread.
        """
        if fetched.fetch.kind == "page" or fetched.status is None or not 200 <= fetched.status < 300:
            return fetched
        if fetched.fetch.kind == "robots":
            if len(fetched.body) <= MAX_ORDINARY_ROBOTS_BYTES:
                return fetched
            read: Callable[[], Any] = partial(self._reader.read_robots, fetched.body, self._robot)
        else:
            read = partial(self._reader.read_sitemap, fetched.body)
        with contextlib.suppress(RuntimeError):
            # Even a small file may take seconds, so files wait for each other and for large pages.
            async with self._turns.turn(fetched.fetch.site, "large"):
                return msgspec.structs.replace(fetched, reading=await self._reader.run(read, size=MAX_SITEMAP_BYTES))
        return fetched

    def examine(self, fetched: FetchResult) -> Visit:
        """Return the visit of a fetch. Call it in any thread but the loop's, because it may take seconds."""
        url = fetched.fetch.url
        if self._suspects.has_crashed(url):
            return self._examiner.unreadable(fetched, "crashed")
        try:
            with self._suspects.examining(url):
                return self._examiner.examine(fetched, self._sites.prior(fetched.fetch.site))
        except Exception as error:
            return self._broken(fetched, error)

    def examine_at_once(self, fetched: FetchResult) -> Visit | None:
        """Return the same as `examine` if that certainly takes only milliseconds, otherwise None."""
        url = fetched.fetch.url
        if not self._suspects.may_examine_at_once(url):
            return None
        try:
            with self._suspects.examining(url):
                return self._examiner.examine_at_once(fetched, self._sites.prior(fetched.fetch.site))
        except Exception as error:
            return self._broken(fetched, error)

    async def examine_apart(self, fetched: FetchResult) -> Visit:
        """Run `examine` in a separate thread."""
        size, site = len(fetched.body), fetched.fetch.site
        with self._progress.examining(fetched), self._sites.flights.reading(site):
            if fetched.fetch.url in self._suspects:
                # If this page crashes the process, all pages that are not written yet are lost. It may crash it again.
                await self._progress.all_written(within_s=2.0)
            async with self._turns.turn(site, FencedReader.lane_of(size)):
                return await self._reader.run(partial(self.examine, fetched), size=size)

    def cut_short(self) -> None:
        """Stop examining, because the crawl ends. The next crawl fetches unexamined pages again."""
        self._reader.close()

    def close(self) -> None:
        """Close the readers. No page can be examined any more."""
        self._reader.close()
        self._suspects.close()

    def _broken(self, fetched: FetchResult, error: Exception) -> Visit:
        """Return the visit of a page that caused an unexpected error: the page counts as failed, and the error is
        logged."""
        logger.error("A page could not be examined (%r): %s", error, fetched.fetch.url)
        return self._examiner.unreadable(fetched, "parse-crash")


class SuspectStage(Stage):
    """Gives suspects back while their site has other pages."""

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
