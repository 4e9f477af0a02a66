"""The rankings of a crawl: this module logs links, starts the ranker, and looks up scores."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from webfountain.errors import PolicyError
from webfountain.ranking.link_journal import NOFOLLOW, REDIRECT, UNFOLLOWED
from webfountain.ranking.ranker_process import Job
from webfountain.ranking.scores import EpochScores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from webfountain.core.arrays import Array
    from webfountain.core.key_rows import Keys
    from webfountain.ranking.ranker_process import Ranker
    from webfountain.records import Link, LinkedPage


__all__ = ["FEWEST", "FLUSH_S", "GROWTH", "SHARE", "Rankings", "RowLog"]

logger = logging.getLogger(__name__)

FLUSH_S: Final = 60.0
"""Logged rows are written to a segment after this number of seconds."""
FEWEST: Final = 250
"""Number of logged pages at which the first ranking starts."""
DOUBLING: Final = 16_000
"""In a log of fewer pages than this, a ranking starts each time that the number of pages has doubled."""
GROWTH: Final = 0.2
"""In a log of more than `DOUBLING` pages, a ranking starts each time that the log has grown by this share."""
HEADSTART_S: Final = 15.0
"""CPU time that rankings may use beyond their share of the crawl's CPU time, in seconds."""
SHARE: Final = 0.05
"""Maximum CPU time of all rankings, as a share of the crawl's CPU time."""
_NOFOLLOW, _UNFOLLOWED = bytes((NOFOLLOW,)), bytes((UNFOLLOWED,))


class RowLog(Protocol):
    """The interface of a writer of the link log, such as `LinkLog`."""

    is_new: bool
    complete_since: float

    def append(
        self, url: str, site: str, *, at: float, links: Sequence[Link], flags: bytes, anchors: Sequence[str] | None
    ) -> None: ...

    def commit(self) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class Rankings:
    """Writes the link log, starts the ranker, and holds the current scores.

    Parameters
    ----------
    links : location of the log
    scores : folder in which scores are published
    every : seconds between rankings
    log : the log's writer in this process
    ranker : ranks the log
    at : current time, UTC seconds
    cpu : returns the CPU time of the crawl so far, s
    """

    def __init__(
        self,
        links: str,
        scores: Path,
        *,
        every: float,
        log: RowLog,
        ranker: Ranker,
        at: float,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self._cpu = cpu
        self._links, self._folder, self._every = links, scores, every
        self._log, self._ranker = log, ranker
        self.scores = EpochScores(scores)
        if self.scores.epoch and log.is_new:
            logger.warning(
                "The link log %s is missing, although it was ranked; each page is logged again at its next visit", links
            )
        self.complete_since = log.complete_since
        """The log has a row for every page that was fetched after this time, UTC seconds."""
        self._flush_at = at + FLUSH_S
        self._logged = 0  # rows since the last ranking
        self._ranked_pages = self.scores.count_crawled()  # about the number of rows before it
        self._started_at = at  # start of the last ranking, or creation of this object
        self._spent = 0.0  # CPU seconds of the rankings, expected of the last one

    def log(self, fetched: Sequence[LinkedPage], *, anchors: bool) -> None:
        """Log all links of fetched pages, even those that the crawl does not follow. Call this method before the store
        records that the pages were fetched."""
        for one in fetched:
            links, flags = one.links, b""
            if one.nofollow or one.unfollowed:
                links = [*links, *one.nofollow, *one.unfollowed]
                flags = bytes(len(one.links)) + _NOFOLLOW * len(one.nofollow) + _UNFOLLOWED * len(one.unfollowed)
            if one.redirected:
                flags = bytes(flag | REDIRECT for flag in flags or bytes(len(links)))
            texts = [link.anchor for link in links] if anchors else []
            self._log.append(
                one.page.url, one.site, at=one.at, links=links, flags=flags, anchors=texts if any(texts) else None
            )
        self._logged += len(fetched)
        self._log.commit()

    def tend(self, at: float, trusted: Callable[[], dict[str, float]]) -> bool:
        """Write the logged rows, start a ranking if one is due, and return whether the scores of a new ranking were
        loaded.

        `trusted` returns each seed with its trust.

        Raises
        ------
        RepositoryError
            if the log or the scores cannot be read or written.
        """
        if at >= self._flush_at:
            self._flush_at = at + FLUSH_S
            self._log.flush()
        if not self._ranker.is_busy():
            if (error := self._ranker.failed()) is not None:
                logger.error("The new ranking failed; the previous one stays in force: %s", error)
            if self._is_time(at):
                self._log.flush()
                self._ranked_pages, self._logged = self._ranked_pages + self._logged, 0
                self._started_at, self._spent = at, self._spent + self._ranker.cost_s()
                try:
                    self._ranker.start(Job(self._links, str(self._folder), at, trusted(), newer_than=self.scores.at))
                except PolicyError as error:  # somebody is writing the seeds file
                    logger.error("The new ranking failed; the previous one stays in force: %s", error)
        if not self.scores.refresh():
            return False
        self._refresh_completeness()
        logger.info(
            "Ranking %d adopted: %d pages", self.scores.epoch, len(self.scores), extra={"event": "ranking/epochs"}
        )
        return True

    def _refresh_completeness(self) -> None:
        """Read `complete_since` from the log again, because a repair of the log may have changed this time."""
        from webfountain.ranking.link_files import DamagedFile, LogFiles  # noqa: PLC0415  (pyarrow)
        from webfountain.ranking.log_completeness import complete_since  # noqa: PLC0415

        with suppress(DamagedFile):
            since = complete_since(LogFiles(self._links))
            self.complete_since = self.complete_since if since is None else since

    def _is_time(self, at: float) -> bool:
        if not self._logged:
            return False
        cost = self._ranker.cost_s()
        growth = 1.0 if self._ranked_pages < DOUBLING else GROWTH
        has_grown = self._logged >= max(FEWEST, growth * self._ranked_pages)
        if has_grown and self._spent + cost <= HEADSTART_S + SHARE * self._cpu():
            return True
        return at >= max(self.scores.at, self._started_at) + max(self._every, cost / SHARE)

    def published(self, keys: Keys, absent: Mapping[str, float]) -> list[Array]:
        """Return the (n,) scores of pages in the last ranking, one array for each name of a score in `absent`. For a
        page that the ranking does not know, `absent` gives the value of each score."""
        return self.scores.lookup_several(absent, keys)

    def close(self) -> None:
        """Write the remaining rows of the log, and stop a running ranking."""
        self._ranker.stop()
        self._log.close()
