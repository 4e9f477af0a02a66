"""Requests that wait in memory, because they are not plain data or have no site.

`DirectRequests` holds requests with schemes other than http and https (data:, file:): they have no site and need no
politeness.

`MemoryRequests` holds requests that are not plain data: they stay in this process, and each has a placeholder in the
store. Place in the walk: `requests.RequestStore` calls this module; it packs all other requests itself. The placeholder
stands in the queue of the request's site. It also records that the request was made, so that a spider that has finished
does not make it again. The page that yielded it is settled after it (`flight`). So after a stop or a kill, that page is
requested again and yields the request again. There are three cases:

- the placeholder is still in the queue: the request is made when the placeholder is leased;
- the placeholder was leased before the request is yielded again: its lease is kept (an orphan) until then, and goes
  back to the queue;
- the request was made before: the store knows it, and the page need not wait for it.

Orphans whose requests are not yielded again are settled when nothing else is left to do. A request with `dont_filter`
is unique, so no later run can use its placeholder.
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
"""First byte of the stored form of a request that is not plain data. No msgpack value begins with 0xc1."""
_RULED: Final = {False: b" ", True: b"!"}
"""Next byte: it shows whether the request's meta contains `dont_obey_robotstxt`."""
_KEY_BYTES: Final = 20
_UNIQUE: Final = b"1"
"""Byte after the key of a request that no later run can make."""


class DirectRequests:
    """A queue in memory, counted as Scrapy counts its own queues in memory."""

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
        """Return the oldest request; None if there is none."""
        if not self._waiting:
            return None
        self._stats.inc_value("scheduler/dequeued/memory")
        self._stats.inc_value("scheduler/dequeued")
        return self._waiting.popleft()


class MemoryRequest(NamedTuple):
    """A request whose placeholder was leased, and the flight that waits for its end: the flight of the page that
    yielded the request."""

    request: Request
    parent: Flight | None


def is_placeholder(data: bytes | None) -> bool:
    """Return whether the stored form of a request is a placeholder of a request in memory."""
    return data is not None and data.startswith(_IN_MEMORY)


def placeholder_ignores_robots(data: bytes) -> bool:
    """Return whether a placeholder's request ignores robots.txt."""
    return data.startswith(_IN_MEMORY + _RULED[True])


class MemoryRequests:
    """The requests in memory of one run of one spider. `again`: whether each request may be taken more than once."""

    def __init__(self, *, again: bool) -> None:
        self._again = again
        self._requests: dict[bytes, MemoryRequest] = {}
        self._seen: set[bytes] = set()
        self._orphans: dict[bytes, Fetch] = {}

    def put(
        self, request: Request, fingerprint: bytes, *, ignores_robots: bool, unique: bool, parent: Flight | None
    ) -> tuple[bytes, bytes] | None:
        """Keep a request. Return a request's key in the store and its placeholder; None if this run has already had the
        request."""
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
        """Return the request that a placeholder stands for, and keep it in memory. None if this process does not have
        the request.
        """
        taken = self._requests.get(place)
        return None if taken is None else taken.request

    def take(self, place: bytes) -> MemoryRequest | None:
        """Remove and return the request of a placeholder; None if this process does not have it."""
        taken = self._requests.get(place) if self._again else self._requests.pop(place, None)
        if taken is None or not self._again:
            return taken
        self._requests[place] = MemoryRequest(taken.request, None)
        return MemoryRequest(taken.request.copy(), taken.parent)

    def keep_orphan(self, fetch: Fetch, place: bytes) -> bool:
        """Keep a lease until its request is `put`, because the request is not in memory. Return False if only an
        earlier run could yield the request.
        """
        if len(place) > len(_IN_MEMORY) + 1 + _KEY_BYTES:
            return False
        self._orphans[place] = fetch
        return True

    def adopt(self, place: bytes) -> Fetch | None:
        """Return the orphaned lease of a request that was just put, None if there is none. The lease must go back to
        its queue."""
        return self._orphans.pop(place, None)

    def take_orphans(self) -> list[Fetch]:
        """Return all leases whose requests were not yielded again, and keep them no longer."""
        orphans, self._orphans = list(self._orphans.values()), {}
        return orphans

    def made_before(self, place: bytes) -> Iterator[Flight]:
        """Drop a request that an earlier run has made. Return the flights that may be settled now."""
        taken = self._requests.pop(place, None)
        if taken is None:
            return
        if self._again:
            self._requests[place] = MemoryRequest(taken.request, None)
        if taken.parent is not None:
            yield from taken.parent.wait_no_longer()
