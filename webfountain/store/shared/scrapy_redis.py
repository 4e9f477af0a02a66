"""The data that scrapy-redis left on a server: the queue of a spider and the contents of its duplicate filter.

`webfountain take-over` uses this module before the crawl, when a project migrates from scrapy-redis. The module reads
and removes entries, but does not decode them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import redis

from webfountain.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

__all__ = ["ScrapyRedisKeys"]

_AT_ONCE: Final = 500
_TIMEOUT_S: Final = 20.0


class ScrapyRedisKeys:
    """A context manager with a connection to the data that scrapy-redis stored for one spider."""

    def __init__(self, url: str, *, requests: str, dupefilter: str) -> None:
        self._requests = requests
        self._dupefilter = dupefilter
        self._server: Any = redis.Redis.from_url(url.partition("?")[0], socket_timeout=_TIMEOUT_S)

    def __enter__(self) -> Self:
        try:
            self._form = self._server.type(self._requests).decode()
        except redis.RedisError as error:
            raise StoreError(f"the server cannot be used: {error}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def requests(self) -> Iterator[list[bytes]]:
        """Yield the entries of the queue in order, some hundreds at a time."""
        try:
            if self._form == "zset":
                entries = self._server.zrange(self._requests, 0, -1)
            elif self._form == "list":
                entries = self._server.lrange(self._requests, 0, -1)[::-1]
            elif self._form == "none":
                entries = []
            else:
                raise StoreError(f"{self._requests} is a {self._form}, not a queue of scrapy-redis")
        except redis.RedisError as error:
            raise StoreError(f"{self._requests} cannot be read: {error}") from None
        for first in range(0, len(entries), _AT_ONCE):
            yield entries[first : first + _AT_ONCE]

    def remove(self, entries: Sequence[bytes]) -> None:
        """Remove entries from the queue. A second call has no effect."""
        try:
            if self._form == "zset" and entries:
                self._server.zrem(self._requests, *entries)
            for entry in entries if self._form == "list" else ():
                self._server.lrem(self._requests, 1, entry)
        except redis.RedisError as error:
            raise StoreError(f"{self._requests} cannot be changed: {error}") from None

    def fingerprints(self) -> Iterator[bytes]:
        """Yield the entries of the duplicate filter, as hex digits."""
        try:
            yield from self._server.sscan_iter(self._dupefilter, count=_AT_ONCE)
        except redis.RedisError as error:
            raise StoreError(f"{self._dupefilter} cannot be read: {error}") from None
