"""Another project's requests: as plain data in the store until their turn, else in memory.

Place in the walk: in add-on mode its door, and its end where the engine gets the request back. What
`Request.to_dict` tells becomes msgpack (`values`); callbacks are names of the spider's methods. A request that holds
anything else (a lambda as callback, a response in meta) has no such form: it is kept here, the store holds its place
in the queue, and the page that yielded it is not settled before it (`flight`), so that another run makes it again.
"""

from __future__ import annotations

import inspect
import logging
import math
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scrapy.http import Request

from webfountain.crawl.values import ClassMissing, NotPlain, Values, path_of, read_keys
from webfountain.errors import UrlError
from webfountain.records import Link
from webfountain.urls import canonical, site_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from webfountain.crawl.flight import Flight
    from webfountain.metrics import Metrics
    from webfountain.records import Lease

__all__ = [
    "LostInMemory",
    "NotPlain",
    "Packer",
    "RequestStore",
    "Taken",
    "crawlable",
    "ignores_robots",
    "importance_of",
    "link_of",
]

logger = logging.getLogger(__name__)

IN_MEMORY: Final = b"\xc1in memory"
"""Begins what the store keeps of a request that is no plain data; 0xc1 begins nothing in msgpack."""
_RULED: Final = {False: b" ", True: b"!"}
"""Follows it: whether the request's meta says `dont_obey_robotstxt`."""
_IGNORES: Final = "dont_obey_robotstxt"
_EXACT: Final = 20
_BEYOND: Final = 10
_MIDDLE: Final = -11
"""Binary logarithm of the importance of priority 0: in the midst of the store's classes."""


class LostInMemory(Exception):
    """A request that was kept in the memory of another process."""


class Packer:
    """Writes and reads the requests of one spider."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider
        settings = getattr(spider, "settings", None)
        modules = [type(spider).__module__, *(() if settings is None else settings.getlist("SPIDER_MODULES"))]
        self._values = Values(module.partition(".")[0] for module in modules)
        self._names: dict[Any, str] = {}

    def pack(self, request: Request) -> bytes:
        """The request as msgpack. Raises NotPlain."""
        data = {name: getattr(request, name) for name in request.attributes}
        data["callback"] = self._name(request.callback)
        data["errback"] = self._name(request.errback)
        data["headers"] = dict(request.headers)
        if type(request) is not Request:
            data["_class"] = path_of(type(request))
        return self._values.pack(data)

    def unpack(self, data: bytes) -> Request:
        """The request again.

        Raises
        ------
        ClassMissing
            when the spider has lost a method that it names, or a class is gone: the request may be made by a later
            version of the project. ValueError, TypeError or KeyError for what is no request.
        """
        given: dict[str, Any] = self._values.unpack(data)
        cls: type[Any] = Request
        if path := given.pop("_class", None):
            cls = self._values.class_at(path)
            if not issubclass(cls, Request):
                raise ClassMissing(f"{path} is no class of requests")
        for name in ("callback", "errback"):
            if given[name] is not None:
                given[name] = self._method(given[name])
        request: Request = cls(**{name: value for name, value in given.items() if name in cls.attributes})
        return request

    def _name(self, method: Callable[..., Any] | None) -> str | None:
        """The name under which the spider has `method`; remembered, because looking it up walks all attributes."""
        if method is None:
            return None
        function = getattr(method, "__func__", None)
        if function is None or getattr(method, "__self__", None) is not self._spider:
            raise NotPlain(f"{method!r} is no method of the spider")
        name: str | None = self._names.get(function)
        if name is None:
            name = str(function.__name__)
            if inspect.getattr_static(type(self._spider), name, None) is not function:
                raise NotPlain(f"{method!r} is not found in the spider by its name")
            self._names[function] = name
        return name

    def _method(self, name: str) -> Any:
        """Looked up in the class, where no property runs and only functions count: the store may say any name."""
        if not inspect.isfunction(inspect.getattr_static(type(self._spider), name, None)):
            raise ClassMissing(f"the spider {self._spider.name!r} has no method {name!r}")
        return getattr(self._spider, name)


class Taken(NamedTuple):
    """A request whose turn has come, and the flight that waits for its end: of the page that yielded it."""

    request: Request
    parent: Flight | None


class RequestStore:
    """The requests of one run of one spider. `again`: each may be taken more than once."""

    def __init__(self, crawler: Crawler, spider: Spider, metrics: Metrics, *, again: bool) -> None:
        self._crawler = crawler
        self._packer = Packer(spider)
        self._metrics = metrics
        self._again = again
        self._logged = False
        self._run = os.urandom(8)
        """Part of the identity of requests that live in this process only: another run makes them again."""
        self._in_memory: dict[bytes, Taken] = {}
        self._seen: set[bytes] = set()

    def put(self, request: Request, url: str, *, unique: bool, parent: Flight | None) -> Link | None:
        """The request as a link for the store; None for one that is no plain data and was put before.

        Parameters
        ----------
        unique : it is itself and no other, however often it is yielded
        parent : the flight in whose course it came; waits for its end when it stays in memory
        """
        fingerprint = self._crawler.request_fingerprinter.fingerprint(request)
        if unique:
            fingerprint += os.urandom(8)
        stats = self._crawler.stats
        try:
            link = link_of(request, url, self._packer.pack(request), fingerprint)
        except NotPlain as why:
            self._warn(request, why)
        else:
            stats.inc_value("scheduler/enqueued/disk")
            return link
        key = fingerprint + self._run
        if key in self._seen:
            return None
        self._seen.add(key)
        stats.inc_value("scheduler/enqueued/memory")
        place = IN_MEMORY + _RULED[bool(request.meta.get(_IGNORES))] + key
        if parent is not None:
            parent.wait()
        self._in_memory[place] = Taken(request, parent)
        return link_of(request, url, place, key)

    def take(self, lease: Lease) -> Taken:
        """The request of a lease.

        Raises
        ------
        LostInMemory
            when it was in the memory of another process; the page that yielded it is asked again.
        ClassMissing, ValueError, TypeError, KeyError
            see `Packer.unpack`.
        """
        data = lease.record.request
        if data is None:
            return Taken(Request(lease.record.url), None)
        if not data.startswith(IN_MEMORY):
            self._crawler.stats.inc_value("scheduler/dequeued/disk")
            return Taken(self._packer.unpack(data), None)
        taken = self._in_memory.get(data) if self._again else self._in_memory.pop(data, None)
        if taken is None:
            raise LostInMemory
        self._crawler.stats.inc_value("scheduler/dequeued/memory")
        if not self._again:
            return taken
        self._in_memory[data] = Taken(taken.request, None)
        return Taken(taken.request.copy(), taken.parent)

    def _warn(self, request: Request, why: NotPlain) -> None:
        self._metrics.inc("addon/in_memory")
        self._crawler.stats.inc_value("scheduler/unserializable")
        if not self._logged:
            self._logged = True
            logger.warning(
                "A request is kept in memory, because %s; after a restart the page that yielded it is asked again "
                "(counted in addon/in_memory, logged once): %s",
                why,
                request,
            )


def ignores_robots(data: bytes) -> bool:
    """Whether a stored request is asked whatever robots.txt says, as its meta has it. Reads it again: ask rarely."""
    if data.startswith(IN_MEMORY):
        return data.startswith(IN_MEMORY + _RULED[True])
    try:
        return bool(read_keys(data, "meta").get(_IGNORES))
    except (ValueError, TypeError, AttributeError, KeyError):
        return False  # it cannot be made again; that is said where it is tried


def crawlable(request: Request) -> str | None:
    """The canonical URL under which a request is scheduled; None for data:, file: and whatever is no web page."""
    try:
        return canonical(request.url)
    except UrlError:
        return None


def link_of(request: Request, url: str, data: bytes, key: bytes) -> Link:
    """A request as a link for the store, under the key that tells it from others."""
    return Link(
        url=url,
        site=site_of(url),
        key=key,
        depth=int(request.meta.get("depth", 0)),
        importance=importance_of(request.priority),
        request=data,
    )


def importance_of(priority: int) -> float:
    """A priority as importance, of which the store has a lane for each halving (`store.contract.class_of`).

    Priorities from -20 to 20 have a lane each; beyond they share lanes, two for each doubling up to 640. Requests of
    one lane go in the order in which they came.
    """
    size = abs(priority)
    step = size if size <= _EXACT else _EXACT + min(math.ceil(2 * math.log2(size / _EXACT)), _BEYOND)
    return math.ldexp(1.0, (step if priority > 0 else -step) + _MIDDLE)
