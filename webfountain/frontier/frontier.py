"""The facade of the crawler without Scrapy: the events of the loop thread.

A caller takes a fetch (`next`), reports its landing and its visit, and asks whether the crawl goes on. All calls are
cheap and do no I/O. Other calls go to the part that owns the state: batches to `work`, heartbeats to `heart`, plans to
`planner`, bodies to `examiner`. Calls that need the store go to `worker`, in the worker thread. `assembly` builds the
facade. Time comes from a `Clock`, so a test can simulate a year.
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
"""Time, s, that a stopped crawl waits for the store. With open transfers, a stop takes at most ten seconds."""


class Frontier:
    """One crawling process. `assembly.FrontierAssembly` builds it with an open store, which `close` closes."""

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
        """Exchange of batches with the worker thread."""
        self.sites = sites
        self.progress = progress
        self.others = others
        """The other ants of the store."""
        self.planner = planner
        self.examiner = examiner
        self.worker = worker
        """What runs in the worker thread."""
        self.heart = heart
        """Heartbeats; None without other ants."""
        self.owner = others.owner
        """Name of this process in leases."""
        self.now = work.batches.now
        """Function that returns the clock's time, UTC seconds."""
        self._batches = work.batches

    # ---------------------------------------------------------- fetches

    def next(self) -> Fetch | None:
        """Return the next fetch: a page, a robots.txt or a sitemap. None if nothing may be requested now."""
        at = self.now()
        if self.progress.open_at() > at or self.others.term.left_s() <= 0.0:
            return None
        fetch = self.sites.flights.next(at)
        if fetch is not None and fetch.kind == "page":
            self.progress.spend(at)
        return fetch

    def may_send(self) -> bool:
        """Return whether this process still holds its sites. Check this again right before a request is sent."""
        return self.others.term.left_s() > 0.0

    def wake_at(self) -> float | None:
        """Return the time at which `next` may return a fetch if nothing else happens. None means that a fetch needs a
        landing or new work first.
        """
        served = min(self.sites.addresses.ring.wake_at(), self.sites.sites.wake_at())
        due = min(max(served, self.progress.open_at()), self.planner.follower.check_at())
        return None if due == inf else due

    def landed(self, fetched: FetchResult) -> None:
        """Process the end of a download, whatever its result. Call it once for each fetch that `next` returned."""
        self.sites.flights.landed(fetched, self._batches.gather())

    def finish(self, visit: Visit) -> None:
        """Queue a page's visit to be written and settled. Call it exactly once for each page fetch."""
        if self.sites.flights.finished(visit, self._batches.gather()):
            self.progress.wait_for_worker(visit)

    def give_back(self, fetch: Fetch) -> None:
        """Give back the lease of a landed fetch that has no result. Call this in place of `examine` and `finish`."""
        assert fetch.lease is not None
        self.sites.flights.given_back(fetch.lease, self._batches.gather())

    def acknowledge(self, fetch: Fetch, *, status: int | None, error: str | None, seconds: float = 0.0) -> None:
        """Settle another project's finished request. Call this in place of `examine` and `finish`."""
        assert fetch.lease is not None
        batch = self._batches.gather()
        self.sites.flights.acknowledged(fetch.lease, batch, status=status, error=error, seconds=seconds)

    # ---------------------------------------------------------- other events

    def resolved(self, host: str, addresses: Sequence[str], *, error: str | None = None) -> None:
        """Apply the resolved addresses of a host name. If there are none, `error` is the reason."""
        self.sites.resolved(host, addresses, error or "dns", self._batches.gather())

    def offer(self, link: Link) -> None:
        """Put a request of another project into the queue to the store. Less important pages of its site wait."""
        batch = self._batches.gather()
        batch.offers.append(link)
        self.sites.outrank({link.site: link.importance}, batch)

    def stop(self) -> None:
        """Hand out no more fetches. Fetches in flight may still land and be finished."""
        if not self.progress.stopped:
            self.others.end_within(_END_S)
        self.progress.stopped = True

    def stop_at_once(self) -> None:
        """Do the same as `stop`, and let no thread wait for the store. A signal handler may call this."""
        self.stop()
        self.others.end_within(0.0)

    # ---------------------------------------------------------- the state of the crawl

    def has_pending(self) -> bool:
        """Return whether any URL has not been requested yet: never-crawled, leased or offered."""
        return self.progress.has_pending(self._batches.gather())

    def finish_reason(self) -> str | None:
        """Return why the crawl should end now; None: it continues."""
        return self.progress.finish_reason(self._batches.gather(), all_idle=self.others.idle_since())

    # ---------------------------------------------------------- the end

    def close(self) -> None:
        """Park the sites, give leases back, and close repository and store. Call it after the last result.

        Everything is closed even if the store does not answer. The store's error is raised after that.
        """
        with contextlib.ExitStack() as closing:
            closing.callback(self.worker.close)
            closing.callback(self._sign_off)
            closing.callback(self.examiner.close)

    def _sign_off(self) -> None:
        """Give all leases and claims back to the store."""
        batch = self._batches.gather()
        claimed = self.sites.claims.open_times(batch.at)
        self.sites.departures.leave_all(batch)
        self.worker.give_back(batch)
        self.others.sign_off(claimed, at=batch.at)
