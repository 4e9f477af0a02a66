"""Requests that wait in memory, because they are not plain data or have no site.

`DirectRequests` contains requests with schemes other than http and https (data:, file:), which need no politeness.

`MemoryRequests` contains requests that are not plain data. Each of these requests has a placeholder in the store, in
the queue of its site. The placeholder also records that the request was made, so that no later run makes it again. The
page that yielded the request is settled after the request (`flight`). After a kill, this page is requested again and
yields the request again. There are three cases:

- the placeholder is still in the queue: the request is made when the placeholder is leased;
- the placeholder was leased before the request is yielded again: its lease is kept (an orphan) until then, and goes
  back to the queue;
- the request was made before: the store knows it, and the page need not wait for it.

Orphans whose requests are not yielded again are settled at the end. A request with `dont_filter` is unique, so no later
run can use its placeholder.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.statscollectors import StatsCollector

    from webfountain.crawl.flight import Flight
    from webfountain.records import Fetch

__all__ = ["DirectRequests", "MemoryRequest", "MemoryRequests", "is_placeholder", "placeholder_ignores_robots"]

_IN_MEMORY: Final = b"\xc1in memory"
"""Beginning of a placeholder; no msgpack value begins with 0xc1."""
_RULED: Final = {False: b" ", True: b"!"}
"""Next byte of a placeholder: whether the request's meta contains `dont_obey_robotstxt`."""
_KEY_BYTES: Final = 20
_UNIQUE: Final = b"1"
"""Byte after the key in the placeholder of a unique request."""


class DirectRequests:
    """A queue in memory, with the counts of Scrapy's own queues in memory."""

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats
        self._waiting: deque[Request] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: Request) -> None:
        """Queue a request."""
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
    """A request whose placeholder was leased, and the waiting flight of the page that yielded the request."""

    request: Request
    parent: Flight | None


def is_placeholder(data: bytes | None) -> bool:
    """Return whether the stored form of a request is a placeholder."""
    return data is not None and data.startswith(_IN_MEMORY)


def placeholder_ignores_robots(data: bytes) -> bool:
    """Return whether a placeholder's request ignores robots.txt."""
    return data.startswith(_IN_MEMORY + _RULED[True])


class MemoryRequests:
    """The requests in memory of one run of one spider. If `again` is True, a request may be taken more than once."""

    def __init__(self, *, again: bool) -> None:
        self._again = again
        self._requests: dict[bytes, MemoryRequest] = {}
        self._seen: set[bytes] = set()
        self._orphans: dict[bytes, Fetch] = {}

    def put(
        self, request: Request, fingerprint: bytes, *, ignores_robots: bool, unique: bool, parent: Flight | None
    ) -> tuple[bytes, bytes] | None:
        """Keep a request; return its key in the store and its placeholder, or None if this run had an equal request
        before.
        """
        key = hashlib.sha1(b"in memory" + fingerprint, usedforsecurity=False).digest()
        if key in self._seen:
            return None
        self._seen.add(key)
        place = _IN_MEMORY + _RULED[ignores_robots] + key + (_UNIQUE if unique else b"")
        if parent is not None:
            parent.wait()
        self._requests[place] = MemoryRequest(request, parent)
        return key, place

    def request(self, place: bytes) -> Request | None:
        """Return the request of a placeholder without removing it, or None if it is not in this process."""
        taken = self._requests.get(place)
        return None if taken is None else taken.request

    def take(self, place: bytes) -> MemoryRequest | None:
        """Remove and return the request of a placeholder, or return None if it is not in this process."""
        taken = self._requests.get(place) if self._again else self._requests.pop(place, None)
        if taken is None or not self._again:
            return taken
        self._requests[place] = MemoryRequest(taken.request, None)
        return MemoryRequest(taken.request.copy(), taken.parent)

    def keep_orphan(self, fetch: Fetch, place: bytes) -> bool:
        """Keep the lease of a request that this process does not have. It waits until the spider yields the request
        again (`put`). Return False for a unique request, which is not yielded again.
        """
        if len(place) > len(_IN_MEMORY) + 1 + _KEY_BYTES:
            return False
        self._orphans[place] = fetch
        return True

    def adopt(self, place: bytes) -> Fetch | None:
        """Return the orphaned lease of a request that was just put, or None. The caller must give the lease back."""
        return self._orphans.pop(place, None)

    def take_orphans(self) -> list[Fetch]:
        """Remove and return all orphaned leases."""
        orphans, self._orphans = list(self._orphans.values()), {}
        return orphans

    def made_before(self, place: bytes) -> Iterator[Flight]:
        """Drop a request that an earlier run has made. Yield the flights that may be settled now."""
        taken = self._requests.pop(place, None)
        if taken is None:
            return
        if self._again:
            self._requests[place] = MemoryRequest(taken.request, None)
        if taken.parent is not None:
            yield from taken.parent.wait_no_longer()
