"""Where the requests of another project's spider lie until their turn: as plain data in the store, else in memory.

Place in the walk: in add-on mode its door, and its end where the engine gets the request back. A request that is no
plain data (`requests` says so) is kept here; the store then holds its place in the queue. Another run makes it again.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final

import msgspec
from scrapy import Request

from webfountain.crawl.requests import NotPlain, Packer, link_of, meta_of

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from webfountain.metrics import Metrics
    from webfountain.records import Lease, Link

__all__ = ["RequestShelf", "ignores_robots"]

logger = logging.getLogger(__name__)

IN_MEMORY: Final = b"\xc1in memory"
"""Begins what the store keeps of a request that is no plain data; 0xc1 begins nothing in msgpack."""
_RULED: Final = {False: b" ", True: b"!"}
"""Follows it: whether the request's meta says `dont_obey_robotstxt`."""
_IGNORES: Final = "dont_obey_robotstxt"


def ignores_robots(data: bytes) -> bool:
    """Whether a stored request is asked whatever robots.txt says, as its meta has it. Reads it again: ask rarely."""
    if data.startswith(IN_MEMORY):
        return data.startswith(IN_MEMORY + _RULED[True])
    try:
        return bool(meta_of(data).get(_IGNORES))
    except (ValueError, TypeError, AttributeError, KeyError):
        return False  # it cannot be made again; that is said where it is tried


class RequestShelf:
    """The requests of one run of one spider. `again`: each may be taken more than once."""

    def __init__(self, crawler: Crawler, spider: Spider, metrics: Metrics, *, again: bool) -> None:
        self._crawler = crawler
        self._packer = Packer(spider)
        self._metrics = metrics
        self._again = again
        self._logged = False
        self._run = os.urandom(8)
        """Part of the identity of requests that live in this process only: another run makes them again."""
        self._in_memory: dict[bytes, Request] = {}
        self._seen: set[bytes] = set()

    def put(self, request: Request, url: str) -> Link | None:
        """The request as a link for the store; None for one that is no plain data and was put before."""
        fingerprint = self._crawler.request_fingerprinter.fingerprint(request)
        try:
            return link_of(request, url, self._packer.pack(request), fingerprint)
        except NotPlain as why:
            self._tell(request, why)
        link = link_of(request, url, IN_MEMORY, fingerprint + self._run)
        if link.key in self._seen:
            return None
        self._seen.add(link.key)
        place = IN_MEMORY + _RULED[bool(request.meta.get(_IGNORES))] + link.key
        self._in_memory[place] = request
        return msgspec.structs.replace(link, request=place)

    def take(self, lease: Lease) -> Request:
        """The request of a lease.

        Raises
        ------
        ValueError
            when it was in the memory of another process. ValueError, TypeError, ImportError or AttributeError when
            the spider has changed since it was stored.
        """
        data = lease.record.request
        if data is None:
            return Request(lease.record.url)
        if not data.startswith(IN_MEMORY):
            return self._packer.unpack(data)
        request = self._in_memory.get(data) if self._again else self._in_memory.pop(data, None)
        if request is None:
            raise ValueError("it was no plain data, and was lost at a restart")
        return request.copy() if self._again else request

    def _tell(self, request: Request, why: NotPlain) -> None:
        self._metrics.inc("addon/in_memory")
        if not self._logged:
            self._logged = True
            logger.warning(
                "A request is kept in memory and lost at a restart, because %s (counted in addon/in_memory, logged "
                "once): %s",
                why,
                request,
            )
