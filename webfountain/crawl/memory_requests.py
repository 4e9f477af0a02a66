"""Requests that wait in memory, because they are not plain data or have no site.

`DirectRequests` contains requests that need no politeness, because their scheme is neither http nor https (data:,
file:).

`MemoryRequests` contains the requests that are not plain data. Each request that is not plain data has a placeholder in
the store, in the queue of its site. After the request was made, the placeholder stays in the store, so that no later
run makes the request again. The page whose callback yielded the request is settled only after the request was made.
After a kill, the page is requested again, and its callback yields the lost request again. When a callback yields a lost
request again, the placeholder of the request is in one of three states:

- the placeholder is still in the queue: the request is made when the placeholder is leased;
- the placeholder was leased before the request is yielded again: its lease is kept (an orphan) until then, and goes
  back to the queue;
- the request was made before: the store knows it, and the page need not wait for it.

An orphaned lease whose request the spider does not yield again is settled at the end of the crawl. A placeholder for a
request with `dont_filter` can be used only by the run that made the placeholder.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from webfountain.crawl.requests import is_placeholder, is_unique, placeholder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.statscollectors import StatsCollector

    from webfountain.crawl.flight import Flight
    from webfountain.records import Fetch

__all__ = ["DirectRequests", "MemoryRequest", "MemoryRequests"]


class DirectRequests:
    """A queue in memory for requests that do not use HTTP. The queue keeps the same stats as Scrapy's memory queues."""

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats
        self._waiting: deque[Request] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: Request) -> None:
        """Add a request to the queue."""
        self._stats.inc_value("scheduler/enqueued/memory")
        self._stats.inc_value("scheduler/enqueued")
        self._waiting.append(request)

    def take(self) -> Request | None:
        """Remove and return the oldest request, or None."""
        if not self._waiting:
            return None
        self._stats.inc_value("scheduler/dequeued/memory")
        self._stats.inc_value("scheduler/dequeued")
        return self._waiting.popleft()


class MemoryRequest(NamedTuple):
    """A request in memory, and the flight that waits for the request (`parent`)."""

    request: Request
    parent: Flight | None


class MemoryRequests:
    """The requests of one spider that are kept in memory because they are not plain data. If `again` is True
    (WEBFOUNTAIN_RECRAWL), `take` keeps the request, so that it can be made again.
    """

    def __init__(self, *, again: bool) -> None:
        self._again = again
        self._requests: dict[bytes, MemoryRequest] = {}
        self._seen: set[bytes] = set()
        self._orphans: dict[bytes, Fetch] = {}

    def put(
        self, request: Request, fingerprint: bytes, *, ignores_robots: bool, unique: bool, parent: Flight | None
    ) -> tuple[bytes, bytes] | None:
        """Keep a request in memory. Return the request's key in the store and its placeholder, or None if the spider
        yielded an equal request earlier in this run.
        """
        key = hashlib.sha1(b"in memory" + fingerprint, usedforsecurity=False).digest()
        if key in self._seen:
            return None
        self._seen.add(key)
        place = placeholder(key, ignores_robots=ignores_robots, unique=unique)
        if parent is not None:
            parent.wait()
        self._requests[place] = MemoryRequest(request, parent)
        return key, place

    def request(self, place: bytes) -> Request | None:
        """Return the request of a placeholder without removing it, or None if this process does not have it."""
        taken = self._requests.get(place)
        return None if taken is None else taken.request

    def take(self, place: bytes) -> MemoryRequest | None:
        """Remove and return the request of a placeholder, or return None if this process does not have the request."""
        taken = self._requests.get(place) if self._again else self._requests.pop(place, None)
        if taken is None or not self._again:
            return taken
        self._requests[place] = MemoryRequest(taken.request, None)
        return MemoryRequest(taken.request.copy(), taken.parent)

    def keep_orphan(self, fetch: Fetch, place: bytes) -> bool:
        """Keep a leased placeholder until the spider yields its request again. Return False for the placeholder of a
        request with `dont_filter`, because another process cannot use it, and for a request that is no placeholder.
        """
        if not is_placeholder(place) or is_unique(place):
            return False
        self._orphans[place] = fetch
        return True

    def adopt(self, place: bytes) -> Fetch | None:
        """Remove and return the lease that `keep_orphan` kept for a placeholder, or return None. The caller must
        release the lease.
        """
        return self._orphans.pop(place, None)

    def take_orphans(self) -> list[Fetch]:
        """Remove and return all leases that `keep_orphan` kept."""
        orphans, self._orphans = list(self._orphans.values()), {}
        return orphans

    def made_before(self, place: bytes) -> Iterator[Flight]:
        """Drop a request that was already made in an earlier run. Yield the flights that waited only for the dropped
        request, and may now be settled.
        """
        taken = self._requests.pop(place, None)
        if taken is None:
            return
        if self._again:
            self._requests[place] = MemoryRequest(taken.request, None)
        if taken.parent is not None:
            yield from taken.parent.wait_no_longer()
