"""The facade of the crawler without Scrapy, for calls from the loop thread.

A caller takes a fetch (`next`), reports the download (`landed`) and the visit (`finish`), and asks whether the crawl
should end (`finish_reason`). All calls are cheap and do no I/O. The attribute `work` exchanges batches, `heart` sends
heartbeats, `planner` makes plans, and `examiner` reads bodies. The worker thread makes all calls that need the store,
through `worker`. Time comes from a `Clock`, so a test can simulate a year.
"""

from __future__ import annotations

import contextlib
from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webfountain.frontier.cluster.heart import Heart
    from webfountain.frontier.cluster.membership import Others
    from webfountain.frontier.orders import WorkExchange
    from webfountain.frontier.pages.guarded_examiner import GuardedExaminer
    from webfountain.frontier.planning.planner import Planner
    from webfountain.frontier.progress import Progress
    from webfountain.frontier.sites.active_list import ActiveList
    from webfountain.frontier.visit import Visit
    from webfountain.frontier.worker.store_worker import StoreWorker
    from webfountain.records import Fetch, FetchResult, Link

__all__ = ["Frontier"]

_END_S: Final = 5.0
"""Longest time, in seconds, that a stopped crawl waits for an answer from the store."""


class Frontier:
    """One crawling process, as `assembly.FrontierAssembly` builds it."""

    def __init__(
        self,
        work: WorkExchange,
        *,
        sites: ActiveList,
        progress: Progress,
        others: Others,
        planner: Planner,
        examiner: GuardedExaminer,
        worker: StoreWorker,
        heart: Heart | None,
    ) -> None:
        self.work = work
        self.sites = sites
        self.progress = progress
        self.others = others
        self.planner = planner
        self.examiner = examiner
        self.worker = worker
        self.heart = heart
        """Sends the heartbeats; None if no other ant shares the store."""
        self.owner = others.owner
        """Name of this process in leases."""
        self.now = work.batches.now
        """Function that returns the clock's time, UTC seconds."""
        self._batches = work.batches
        self._has_lapsed = work.orders.has_lapsed

    # ---------------------------------------------------------- fetches

    def next(self) -> Fetch | None:
        """Return the next fetch of a page, a robots.txt or a sitemap, or None if nothing may be requested now."""
        at = self.now()
        if self.progress.open_at() > at or not self.may_send():
            return None
        fetch = self.sites.flights.next(at)
        if fetch is not None and fetch.kind == "page":
            self.progress.spend(at)
        return fetch

    def may_send(self) -> bool:
        """Return whether this process still holds its sites. Call this method right before a request is sent."""
        return not any(has_lapsed() for has_lapsed in self._has_lapsed)

    def wake_at(self) -> float:
        """Return the earliest time at which `next` may return a fetch, or inf if a download, a batch or a heartbeat
        must end first.
        """
        if not self.may_send():
            return inf
        return max(self.sites.addresses.ring.wake_at(), self.progress.open_at())

    def work_at(self) -> float:
        """Return when a site's timer or a check of the price needs a batch, if no event occurs first."""
        return min(max(self.sites.sites.due, self.progress.open_at()), self.planner.follower.check_at())

    def landed(self, fetched: FetchResult) -> None:
        """Process the end of a download, successful or not. Call this method once for each fetch from `next`."""
        self.sites.flights.landed(fetched, self._batches.gather())

    def finish(self, visit: Visit) -> None:
        """Queue the visit of a page. The worker thread then writes the page's copy and settles its URL. Call this
        method exactly once for each page fetch."""
        if self.sites.flights.finished(visit, self._batches.gather()):
            self.progress.wait_for_worker(visit)

    def give_back(self, fetch: Fetch) -> None:
        """Give back the lease of a fetch that ended without a result, so that the page is fetched again. Call this
        method instead of `examine` and `finish`.
        """
        assert fetch.lease is not None
        self.sites.flights.given_back(fetch.lease, self._batches.gather())

    def acknowledge(
        self, fetch: Fetch, *, status: int | None, error: str | None, seconds: float = 0.0, due: float | None = None
    ) -> None:
        """Settle a finished request of a Scrapy project's spider, instead of calling `examine` and `finish`.

        `due` is the time at which the request is made again, UTC seconds; infinity means never.
        """
        assert fetch.lease is not None
        batch = self._batches.gather()
        self.sites.flights.acknowledged(fetch.lease, batch, status=status, error=error, seconds=seconds, due=due)

    # ---------------------------------------------------------- other events

    def resolved(self, host: str, addresses: Sequence[str], *, error: str | None = None) -> None:
        """Receive the addresses of a host name, or an `error` if there are no addresses."""
        self.sites.resolved(host, addresses, error or "dns", self._batches.gather())

    def offer(self, link: Link) -> None:
        """Put a request of a Scrapy project's spider into the batch. When a request is added, the leases of less
        important pages on the same site are given back.
        """
        batch = self._batches.gather()
        batch.offers.append(link)
        self.sites.outrank({link.site: link.importance}, batch)

    def stop(self) -> None:
        """Hand out no more fetches. Fetches in flight may still be completed."""
        if not self.progress.stopped:
            self.others.end_within(_END_S)
        self.progress.stopped = True

    def stop_at_once(self) -> None:
        """Stop the crawl without waiting for the store."""
        self.stop()
        self.others.end_within(0.0)

    # ---------------------------------------------------------- the state of the crawl

    def has_pending(self) -> bool:
        """Return whether the crawl knows a URL that it has not requested yet."""
        return self.progress.has_pending(self._batches.gather())

    def finish_reason(self) -> str | None:
        """Return why the crawl should end now, or None if the crawl continues."""
        return self.progress.finish_reason(self._batches.gather(), all_idle=self.others.idle_since())

    # ---------------------------------------------------------- the end

    def close(self) -> None:
        """Park the sites, give leases back, and close the repository and the store. Call this method after the result
        of the last batch was applied.

        Everything is closed before an error of the store is raised.
        """
        with contextlib.ExitStack() as closing:
            closing.callback(self.worker.close)
            closing.callback(self._sign_off)
            closing.callback(self.examiner.close)

    def _sign_off(self) -> None:
        """Release all leases and claims of this process."""
        batch = self._batches.gather()
        claimed = {} if self.sites.claims is None else self.sites.claims.open_times(batch.at)
        self.sites.departures.leave_all(batch)
        self.worker.give_back(batch)
        self.others.sign_off(claimed, at=batch.at)
