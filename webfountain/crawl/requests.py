"""Convert the requests of a Scrapy project to plain data for the store, and back.

The attributes of a request become msgpack, and its callbacks become names (`callbacks`). A request that is not plain
data, for example with a lambda as callback, stays in memory until it is made (`memory_requests`).
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
from typing import TYPE_CHECKING, Any, Final

from scrapy.http import Request

from webfountain.crawl.callbacks import Callbacks
from webfountain.crawl.memory_requests import MemoryRequest, MemoryRequests, is_placeholder, placeholder_ignores_robots
from webfountain.crawl.values import NameMissing, UnstorableValue, Values, path_of, read_keys
from webfountain.errors import UrlError
from webfountain.records import Link
from webfountain.urls import canonical, site_of

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from webfountain.crawl.flight import Flight
    from webfountain.metrics import Metrics
    from webfountain.records import Lease

__all__ = [
    "LostInMemory",
    "Packer",
    "RequestStore",
    "crawlable",
    "depth_of",
    "fields_of",
    "ignores_robots",
    "importance_of",
    "link_of",
]

logger = logging.getLogger(__name__)

_IGNORES: Final = "dont_obey_robotstxt"
_DEEPEST: Final = 2**31
_EXACT: Final = 20
_BEYOND: Final = 10
_MIDDLE: Final = -3.25
"""Binary logarithm of the importance that priority 0 has; it is the middle of the store's classes of importance."""


class LostInMemory(Exception):
    """Error for a request that existed only in the memory of an earlier process."""


class Packer:
    """Converter between the requests of one spider and msgpack."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider
        settings = getattr(spider, "settings", None)
        modules = [type(spider).__module__, *(() if settings is None else settings.getlist("SPIDER_MODULES"))]
        self._values = Values(module.partition(".")[0] for module in modules)
        self._callbacks = Callbacks(spider)

    def pack(self, request: Request) -> bytes:
        """Return the request as msgpack. Raise UnstorableValue if the request is not plain data."""
        callbacks = self._callbacks
        data = fields_of(request, callbacks.name(request.callback), callbacks.name(request.errback))
        if type(request) is not Request:
            data["_class"] = path_of(type(request))
        return self._values.pack(data)

    def unpack(self, data: bytes) -> Request:
        """Restore a request from the msgpack that `pack` returned.

        Raises
        ------
        NameMissing
            if the spider no longer has a method or class that the request names.
        ValueError, TypeError, KeyError
            if the data is not a request.
        """
        given: dict[str, Any] = self._values.unpack(data)
        cls: type[Any] = Request
        if path := given.pop("_class", None):
            cls = self._values.classes.class_at(path)
            if not issubclass(cls, Request):
                raise NameMissing(f"{path} is not a request class")
        for name in ("callback", "errback"):
            given[name] = self._callbacks.callback(given[name])
        request: Request = cls(**{name: value for name, value in given.items() if name in cls.attributes})
        return request


class RequestStore:
    """The requests of one run of one spider. If `again` is True (WEBFOUNTAIN_RECRAWL), a request can be made more than
    once.
    """

    def __init__(self, crawler: Crawler, spider: Spider, metrics: Metrics, *, again: bool) -> None:
        self._crawler = crawler
        self._packer = Packer(spider)
        self._metrics = metrics
        self._logged = False
        self.memory = MemoryRequests(again=again)

    def put(self, request: Request, url: str, *, unique: bool, parent: Flight | None) -> Link | None:
        """Convert a Scrapy request to the `Link` that the store keeps. Return None if the request is kept in memory and
        the spider has already yielded an equal request.

        Parameters
        ----------
        unique : whether it differs from all other requests, however often it is yielded
        parent : the flight that yielded it; if the request stays in memory, this flight waits for its end
        """
        fingerprint = self._crawler.request_fingerprinter.fingerprint(request)
        if unique:
            # It is as long as every other fingerprint: a shared store keeps the fingerprints of a site side by side.
            fingerprint = hashlib.sha1(fingerprint + os.urandom(8), usedforsecurity=False).digest()
        stats = self._crawler.stats
        try:
            link = link_of(request, url, self._packer.pack(request), fingerprint)
        except UnstorableValue as why:
            self._warn(request, why)
        else:
            stats.inc_value("scheduler/enqueued/disk")
            return link
        ignores = bool(request.meta.get(_IGNORES))
        put = self.memory.put(request, fingerprint, ignores_robots=ignores, unique=unique, parent=parent)
        if put is None:
            return None
        key, place = put
        stats.inc_value("scheduler/enqueued/memory")
        return link_of(request, url, place, key)

    def take(self, lease: Lease) -> MemoryRequest:
        """Return the Scrapy request of a leased page.

        Raises
        ------
        LostInMemory
            if the request was in the memory of another process.
        NameMissing, ValueError, TypeError, KeyError
            see `Packer.unpack`.
        """
        data = lease.record.request
        if data is None:
            return MemoryRequest(Request(lease.record.url), None)
        if not is_placeholder(data):
            self._crawler.stats.inc_value("scheduler/dequeued/disk")
            return MemoryRequest(self._packer.unpack(data), None)
        taken = self.memory.take(data)
        if taken is None:
            raise LostInMemory
        self._crawler.stats.inc_value("scheduler/dequeued/memory")
        return taken

    def known(self, link: Link) -> Request:
        """Return a request that the store already knew, and subtract it from Scrapy's stats of enqueued requests."""
        stats = self._crawler.stats
        stats.inc_value("scheduler/enqueued", -1)
        is_in_memory = is_placeholder(link.request)
        stats.inc_value("scheduler/enqueued/memory" if is_in_memory else "scheduler/enqueued/disk", -1)
        return self.peek(link)

    def peek(self, link: Link) -> Request:
        """Return the Scrapy request that a `Link` contains. If the request cannot be restored, return a plain request
        for its URL.
        """
        if is_placeholder(link.request):
            return self.memory.request(link.request or b"") or Request(link.url)
        try:
            return self._packer.unpack(link.request or b"")
        except (NameMissing, ValueError, TypeError, KeyError):
            return Request(link.url)

    def _warn(self, request: Request, why: UnstorableValue) -> None:
        self._metrics.inc("addon/in_memory")
        self._crawler.stats.inc_value("scheduler/unserializable")
        if not self._logged:
            self._logged = True
            logger.warning(
                "A request stays in memory, because %s. After a restart the page that yielded it is requested "
                "again (counted in addon/in_memory, logged once): %s",
                why,
                request,
                extra={"event": "addon/in_memory"},
            )


def ignores_robots(data: bytes) -> bool:
    """Return whether the meta of a stored request says that robots.txt is ignored."""
    if is_placeholder(data):
        return placeholder_ignores_robots(data)
    try:
        return bool(read_keys(data, "meta").get(_IGNORES))
    except (ValueError, TypeError, AttributeError, KeyError):
        return False  # it cannot be restored; the code that tries to restore it reports that


def crawlable(request: Request) -> str | None:
    """Return the canonical URL of a request, or None for a URL that is not of the web (data:, file:)."""
    try:
        return canonical(request.url)
    except UrlError:
        return None


def fields_of(request: Request, callback: Any, errback: Any) -> dict[str, Any]:
    """Return the attributes of a request, with the names of its callbacks."""
    attributes = {name: getattr(request, name) for name in request.attributes}
    return {**attributes, "callback": callback, "errback": errback, "headers": dict(request.headers)}


def link_of(request: Request, url: str, data: bytes, key: bytes) -> Link:
    """Convert a Scrapy request to the `Link` that the store keeps."""
    return Link(
        url=url,
        site=site_of(url),
        key=key,
        depth=depth_of(request),
        importance=importance_of(request.priority),
        request=data,
    )


def depth_of(request: Request) -> int:
    """Return the depth in a request's meta, or 0."""
    depth = request.meta.get("depth", 0)
    return min(max(depth, 0), _DEEPEST) if isinstance(depth, int) else 0


def importance_of(priority: int) -> float:
    """Convert a priority to an importance.

    The store has a limited number of classes of importance. Each priority from -20 to 20 has its own class of
    importance. Between 20 and 640, each doubling of the priority has two classes of importance.
    """
    size = abs(priority)
    step = size if size <= _EXACT else _EXACT + min(math.ceil(2 * math.log2(size / _EXACT)), _BEYOND)
    return float(2.0 ** ((step if priority > 0 else -step) / 2 + _MIDDLE))
