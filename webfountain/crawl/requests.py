"""Another project's requests: as plain data in the store until their turn, else in memory.

Place in the walk: in add-on mode its door, and its end where the engine gets the request back. What
`Request.to_dict` tells becomes msgpack; callbacks are names of the spider's methods. A request that holds
anything else (a lambda as callback, a response in meta) has no such form: it is kept here, the store holds its place
in the queue, and the page that yielded it is not settled before it (`flight`), so that another run makes it again.

Python values as msgpack and back: what another project's requests carry in meta, cb_kwargs and attributes. Never
pickle. What is read again is data, or an instance of a class that the project itself named: a scrapy.Item, a
dataclass, an attrs or pydantic class, an Enum, a named tuple. Such a class is taken by its path from the modules that
are loaded; one that is not is imported only when it lies in a package of the project's own. Instances get their
fields without a call of ``__init__``. Subclasses of str, int, float, bytes, dict, list, tuple, set, frozenset,
datetime and date come back as what they are a subclass of: a link's text is an lxml object that is a str.

Which requests of another project's spider are duplicates: by the project's own filter, or by ours. Place in the walk:
in add-on mode before its door. With Scrapy's default filter the store decides, across runs; what came lately in this
run is dropped here, so that the engine says so as ever (signal `request_dropped`, stat `dupefilter/filtered`); of what
the store alone knew the scheduler says the same, a moment later. A
DUPEFILTER_CLASS of the project's own decides alone: what it lets through is a request of its own, whatever the store
knows.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import importlib
import inspect
import logging
import math
import os
import sys
import uuid
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attr
import msgspec
from itemadapter import ItemAdapter
from scrapy import Item
from scrapy.dupefilters import RFPDupeFilter
from scrapy.http import Request
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.misc import build_from_crawler, load_object

from webfountain.errors import UrlError
from webfountain.records import Link
from webfountain.urls import canonical, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter

    from webfountain.crawl.flight import Flight
    from webfountain.metrics import Metrics
    from webfountain.records import Lease

__all__ = [
    "ClassMissing",
    "Duplicates",
    "LostInMemory",
    "NotPlain",
    "Packer",
    "RequestStore",
    "Taken",
    "Values",
    "crawlable",
    "ignores_robots",
    "importance_of",
    "link_of",
    "path_of",
    "read_keys",
]

logger = logging.getLogger(__name__)

_MAX_INT: Final = 1 << 63
_CODES: Final[dict[type, int]] = {tuple: 1, set: 2, frozenset: 3, datetime.datetime: 4, datetime.date: 5, dict: 6}
_NAMED: Final = 7
"""Extension code of what is one of `_KINDS`: its name there and its content."""
_INSTANCE: Final = 8
"""… of an instance of a project's class: what kind of class, its path, its content."""


class NotPlain(Exception):
    """A value that has no form as data; the text says which."""


class ClassMissing(ValueError):
    """A stored instance whose class this process does not have, or may not make."""


class Values:
    """Reads values again. `packages`: names of the top-level packages from which a class may be imported."""

    def __init__(self, packages: Iterable[str] = ()) -> None:
        self._packages = frozenset(packages)

    @staticmethod
    def pack(value: Any) -> bytes:
        """A value as msgpack. Raises NotPlain."""
        try:
            return msgspec.msgpack.encode(_flat(value))
        except (OverflowError, RecursionError) as error:
            raise NotPlain(str(error)) from None

    def unpack(self, data: bytes | memoryview) -> Any:
        """The value again.

        Raises
        ------
        ClassMissing
            when a class that it needs is not here (any more); ValueError, TypeError or KeyError for what no `pack`
            has written.
        """
        return msgspec.msgpack.decode(data, ext_hook=self._extended)

    def class_at(self, path: str) -> type[Any]:
        """The class at ``module:qualified.name``. Raises ClassMissing."""
        module_name, _, name = path.partition(":") if ":" in path else path.rpartition(".")
        module = sys.modules.get(module_name)
        if module is None and module_name.partition(".")[0] in self._packages:
            try:
                module = importlib.import_module(module_name)
            except ImportError as error:
                raise ClassMissing(f"{path} cannot be imported ({error})") from None
        found: Any = module
        for part in name.split("."):
            found = None if found is None else vars(found).get(part)
        if not isinstance(found, type):
            raise ClassMissing(f"the class {path} is not loaded")
        return found

    def _extended(self, code: int, data: memoryview) -> Any:
        content = self.unpack(data)
        if code == _NAMED:
            name, inner = content
            return _KINDS[name][2](inner)
        if code == _INSTANCE:
            kind, path, inner = content
            return self._instance(kind, self.class_at(path), inner)
        return _plain(code, content)

    @staticmethod
    def _instance(kind: str, cls: type[Any], content: Any) -> Any:
        """Without its ``__init__``, and only of a class that is still of the kind that it was."""
        if kind != _kind_of(cls):
            raise ClassMissing(f"{path_of(cls)} is no {kind} any more")
        if kind == "enum":
            name, value = content
            return cls.__members__[name] if name in cls.__members__ else cls(value)
        if kind == "namedtuple":
            return tuple.__new__(cls, content)
        if kind == "pydantic":
            return cls.model_construct(**content)
        instance: Any = object.__new__(cls)
        if kind == "item":
            instance._values = content
        else:
            for name, value in content.items():
                object.__setattr__(instance, name, value)
        return instance


def read_keys(data: bytes, name: str) -> dict[str, Any]:
    """The dict that a packed dict has under `name`, its plain values alone: no class is looked for.

    Raises ValueError, TypeError or KeyError for what no `pack` has written.
    """

    def skim(code: int, inner: memoryview) -> Any:
        content = msgspec.msgpack.decode(inner, ext_hook=skim)
        return None if code in (_NAMED, _INSTANCE) else _plain(code, content)

    found: dict[str, Any] = msgspec.msgpack.decode(data, ext_hook=skim)[name]
    return found


def path_of(cls: type) -> str:
    """Where `Values.class_at` finds a class. Raises NotPlain for one that lies nowhere (made in a function, say)."""
    path = f"{cls.__module__}:{cls.__qualname__}"
    try:
        found: object = Values().class_at(path)
    except ClassMissing:
        found = None
    if found is not cls:
        raise NotPlain(f"{path} is a class that is not found under its name")
    return path


# ---------------------------------------------------------------- one way


def _flat(value: Any) -> Any:
    """`value` with what msgpack does not know marked as an extension."""
    kind = type(value)
    direct = _DIRECT.get(kind)
    if direct is not None:
        return direct(value)
    if (project := _kind_of(kind)) is not None:
        return _ext(_INSTANCE, [project, path_of(kind), _flat(_content(project, value))])
    for base in kind.__mro__[1:]:
        if base in _DIRECT and base is not type(None):
            return _DIRECT[base](value)
    raise NotPlain(f"{kind.__module__}.{kind.__qualname__} is no plain data")


def _kind_of(cls: type[Any]) -> str | None:
    """What kind of a project's class `cls` is; None for all others."""
    if issubclass(cls, tuple):
        return "namedtuple" if hasattr(cls, "_fields") else None
    kinds = {
        "enum": issubclass(cls, Enum),
        "item": issubclass(cls, Item),
        "dataclass": dataclasses.is_dataclass(cls),
        "attrs": attr.has(cls),
        "pydantic": ItemAdapter.is_item_class(cls) and hasattr(cls, "model_construct"),
    }
    return next((kind for kind, holds in kinds.items() if holds), None)


def _content(kind: str, value: Any) -> Any:
    if kind == "enum":
        return [value.name, value.value]
    if kind == "namedtuple":
        return list(value)
    return dict(ItemAdapter(value))


def _flat_int(value: int) -> Any:
    number = int.__pos__(value)
    return number if -_MAX_INT <= number < _MAX_INT else _ext(_NAMED, ["int", str(number)])


def _flat_dict(value: dict[Any, Any]) -> Any:
    """Text keys are msgpack's own; others (header names are bytes) make a list of pairs."""
    if all(type(key) is str for key in value):
        return {key: _flat(item) for key, item in value.items()}
    return _ext(_CODES[dict], [[_flat(key), _flat(item)] for key, item in value.items()])


def _flat_datetime(value: datetime.datetime) -> Any:
    if isinstance(value.tzinfo, zoneinfo.ZoneInfo) and value.tzinfo.key is not None:
        zoned = [value.replace(tzinfo=None).isoformat(), value.tzinfo.key, value.fold]
        return _ext(_NAMED, ["zoned", zoned])
    return _ext(_CODES[datetime.datetime], value.isoformat())


def _sequence(kind: type) -> Callable[[Any], Any]:
    return lambda value: _ext(_CODES[kind], [_flat(item) for item in value])


def _ext(code: int, content: Any) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, msgspec.msgpack.encode(content))


def _named(name: str) -> Callable[[Any], Any]:
    return lambda value: _ext(_NAMED, [name, _flat(_KINDS[name][1](value))])


# -------------------------------------------------------------- the other


def _plain(code: int, content: Any) -> Any:
    if code == _CODES[datetime.datetime]:
        return datetime.datetime.fromisoformat(content)
    if code == _CODES[datetime.date]:
        return datetime.date.fromisoformat(content)
    if code == _CODES[dict]:
        return {_key(key): item for key, item in content}
    return {1: tuple, 2: set, 3: frozenset}[code](content)


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def _zoned(content: Any) -> datetime.datetime:
    text, zone, fold = content
    return datetime.datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=fold)


def _factory(value: defaultdict[Any, Any]) -> str | None:
    if value.default_factory is None:
        return None
    name = getattr(value.default_factory, "__name__", "")
    if _FACTORIES.get(name) is not value.default_factory:
        raise NotPlain(f"a defaultdict of {value.default_factory!r} is no plain data")
    return name


def _defaultdict(content: Any) -> defaultdict[Any, Any]:
    name, pairs = content
    return defaultdict(None if name is None else _FACTORIES[name], {_key(key): item for key, item in pairs})


def _pairs(value: dict[Any, Any]) -> list[list[Any]]:
    return [[key, item] for key, item in value.items()]


def _unpaired(content: Any) -> Any:
    return ((_key(key), item) for key, item in content)


def _path(kind: type[PurePath], text: str) -> PurePath:
    """A path that can be opened, where it is one of this system."""
    return Path(text) if issubclass(type(Path()), kind) else kind(text)


_FACTORIES: Final[dict[str, Callable[[], Any]]] = {
    kind.__name__: kind for kind in (list, dict, set, int, float, str, tuple, OrderedDict, Counter)
}
_KINDS: Final[dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "int": (int, str, int),
    "zoned": (datetime.datetime, str, _zoned),
    "time": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "timedelta": (
        datetime.timedelta,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda content: datetime.timedelta(*content),
    ),
    "timezone": (
        datetime.timezone,
        lambda value: value.utcoffset(None),
        lambda content: datetime.UTC if not content else datetime.timezone(content),
    ),
    "zone": (zoneinfo.ZoneInfo, str, zoneinfo.ZoneInfo),
    "decimal": (Decimal, str, Decimal),
    "uuid": (uuid.UUID, str, uuid.UUID),
    "posix-path": (PurePosixPath, str, lambda text: _path(PurePosixPath, text)),
    "windows-path": (PureWindowsPath, str, lambda text: _path(PureWindowsPath, text)),
    "bytearray": (bytearray, bytes, bytearray),
    "complex": (complex, lambda value: [value.real, value.imag], lambda content: complex(*content)),
    "ordered": (OrderedDict, _pairs, lambda content: OrderedDict(_unpaired(content))),
    "counter": (Counter, _pairs, lambda content: Counter(dict(_unpaired(content)))),
    "defaultdict": (defaultdict, lambda value: [_factory(value), _pairs(value)], _defaultdict),
    "deque": (deque, lambda value: [list(value), value.maxlen], lambda content: deque(*content)),
}
"""Kinds that are no project's: the type, its content, and the value again."""


_DIRECT: Final[dict[type, Callable[[Any], Any]]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    float: float.__pos__,
    str: str.__str__,
    bytes: lambda value: b"".join((value,)),
    int: _flat_int,
    list: lambda value: [_flat(item) for item in value],
    dict: _flat_dict,
    tuple: _sequence(tuple),
    set: _sequence(set),
    frozenset: _sequence(frozenset),
    datetime.datetime: _flat_datetime,
    datetime.date: lambda value: _ext(_CODES[datetime.date], datetime.date.isoformat(value)),
    **{kind: _named(name) for name, (kind, _, _) in _KINDS.items() if name not in ("int", "zoned")},
}


IN_MEMORY: Final = b"\xc1in memory"
"""Begins what the store keeps of a request that is no plain data; 0xc1 begins nothing in msgpack."""
_RULED: Final = {False: b" ", True: b"!"}
"""Follows it: whether the request's meta says `dont_obey_robotstxt`."""
_IGNORES: Final = "dont_obey_robotstxt"
_EXACT: Final = 20
_BEYOND: Final = 10
_MIDDLE: Final = -3.25
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
            fingerprint = _as_wide(fingerprint + os.urandom(8))
        stats = self._crawler.stats
        try:
            link = link_of(request, url, self._packer.pack(request), fingerprint)
        except NotPlain as why:
            self._warn(request, why)
        else:
            stats.inc_value("scheduler/enqueued/disk")
            return link
        key = _as_wide(fingerprint + self._run)
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

    def known(self, link: Link) -> Request:
        """The request of a link that the store knew before: it is not made, and was not enqueued after all."""
        stats = self._crawler.stats
        stats.inc_value("scheduler/enqueued", -1)
        stats.inc_value("scheduler/enqueued/disk", -1)
        try:
            return self._packer.unpack(link.request or b"")
        except (ClassMissing, ValueError, TypeError, KeyError):
            return Request(link.url)

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


def _as_wide(fingerprint: bytes) -> bytes:
    """A key of the width that fingerprints have: a shared store keeps those of a site side by side."""
    return hashlib.sha1(fingerprint, usedforsecurity=False).digest()


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
    """A priority as importance, of which the store has two lanes for each halving (`store.contract.class_of`).

    Priorities from -20 to 20 have a lane each; beyond they share lanes, two for each doubling up to 640. Requests of
    one lane go in the order in which they came.
    """
    size = abs(priority)
    step = size if size <= _EXACT else _EXACT + min(math.ceil(2 * math.log2(size / _EXACT)), _BEYOND)
    return float(2.0 ** ((step if priority > 0 else -step) / 2 + _MIDDLE))


class Duplicates:
    """The duplicate filter of one run. `size`: web requests that are remembered; all others are.

    Settings read: DUPEFILTER_CLASS, DUPEFILTER_DEBUG.
    """

    def __init__(self, crawler: Crawler, *, size: int) -> None:
        self._crawler = crawler
        self._size = size
        self._recent: OrderedDict[bytes, None] = OrderedDict()
        kind = load_object(crawler.settings["DUPEFILTER_CLASS"])
        self.decides = kind is not RFPDupeFilter
        """Whether the project's own filter decides, and nobody else."""
        if self.decides:
            self._filter: BaseDupeFilter = build_from_crawler(kind, crawler)
        else:
            debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
            self._filter = RFPDupeFilter(debug=debug, fingerprinter=crawler.request_fingerprinter)

    async def open(self) -> None:
        """The crawl begins."""
        if (opening := self._filter.open()) is not None:
            await maybe_deferred_to_future(opening)

    async def close(self, reason: str) -> None:
        """The crawl is over."""
        if (closing := self._filter.close(reason)) is not None:
            await maybe_deferred_to_future(closing)

    def holds(self, request: Request, *, web: bool) -> bool:
        """Whether a request is to be dropped as one that came before; remembers it if not. `web`: the store knows its
        kind, so that it may be forgotten here."""
        if request.dont_filter or not self._knows(request, web=web):
            return False
        self.log(request)
        return True

    def log(self, request: Request) -> None:
        """The store knew a request: it is counted, and named in the log, as one that the filter dropped."""
        assert self._crawler.spider is not None
        self._filter.log(request, self._crawler.spider)

    def _knows(self, request: Request, *, web: bool) -> bool:
        if self.decides or not web:
            return self._filter.request_seen(request)
        fingerprint = self._crawler.request_fingerprinter.fingerprint(request)
        if fingerprint in self._recent:
            return True
        self._recent[fingerprint] = None
        if len(self._recent) > self._size:
            self._recent.popitem(last=False)
        return False
