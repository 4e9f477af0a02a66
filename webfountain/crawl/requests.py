"""Convert the requests of a Scrapy project to plain data for the store, and back.

The attributes of a request become msgpack. Its callbacks become names, because a store cannot contain functions.
Methods of the spider, functions of its package, and a `functools.partial` of either can be stored. A lambda or a method
of another object cannot be stored. Looking up a name imports nothing and runs no code of the spider, because an
attacker may have changed the names in the store. A request that is not plain data, for example with a lambda as
callback, stays in memory until it is made (`memory_requests`).
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
from typing import TYPE_CHECKING, Any, Final

from scrapy.http import Request

from webfountain.crawl.values import NameMissing, UnstorableValue, Values, path_of, read_keys
from webfountain.errors import UrlError
from webfountain.records import Link
from webfountain.urls import canonical, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scrapy import Spider

__all__ = [
    "Callbacks",
    "Packer",
    "crawlable",
    "depth_of",
    "fields_of",
    "ignores_robots",
    "importance_of",
    "is_placeholder",
    "is_unique",
    "link_of",
    "placeholder",
    "says_ignore_robots",
]

_IGNORES: Final = "dont_obey_robotstxt"
_IN_MEMORY: Final = b"\xc1in memory"
"""First bytes of every placeholder; no msgpack value begins with 0xc1."""
_RULED: Final = {False: b" ", True: b"!"}
"""Second part of a placeholder, one byte: whether the request's meta contains `dont_obey_robotstxt`."""
_KEY_BYTES: Final = 20
_UNIQUE: Final = b"1"
"""Last byte of the placeholder of a request with `dont_filter`; other placeholders end with the request's key."""
_DEEPEST: Final = 2**31
_EXACT: Final = 20
_BEYOND: Final = 10
_MIDDLE: Final = -3.25
"""Binary logarithm of the importance that priority 0 has; it is the middle of the store's classes of importance."""


class Callbacks:
    """Converter between the callbacks of one spider and their names."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider
        self._names: dict[Any, str] = {}

    def name(self, callback: Callable[..., Any] | None) -> Any:
        """Return the method name under which a callback is stored, or a dict for a function or a `functools.partial`.

        Raises
        ------
        UnstorableValue
            if the callback has no name; keep the request in memory.
        """
        if callback is None:
            return None
        if type(callback) is functools.partial:
            return {"partial": self.name(callback.func), "args": list(callback.args), "kwargs": callback.keywords}
        if inspect.isfunction(callback):
            return self._name_of_function(callback)
        function = getattr(callback, "__func__", None)
        owner = getattr(callback, "__self__", None)
        if function is None or (owner is not self._spider and owner not in type(self._spider).__mro__):
            raise UnstorableValue(f"{callback!r} is not a method of the spider")
        if function not in self._names:
            self._names[function] = self._find(callback, function)
        return self._names[function]

    def callback(self, name: Any) -> Any:
        """Return the callback for a stored name.

        Raises
        ------
        NameMissing
            if there is no such method or function, perhaps only in this version of the project.
        """
        if name is None:
            return None
        if isinstance(name, dict) and "partial" in name:
            return functools.partial(self.callback(name["partial"]), *name["args"], **name["kwargs"])
        if isinstance(name, dict) and "function" in name:
            if (function := self._function_at(name.get("module"), name["function"])) is None:
                raise NameMissing(f"the package of the spider {self._spider.name!r} has no function {name!r}")
            return function
        if not isinstance(name, str) or self._function_of(name) is None:
            raise NameMissing(f"the spider {self._spider.name!r} has no method {name!r}")
        return getattr(self._spider, name)

    def _find(self, callback: Callable[..., Any], function: Any) -> str:
        """Return the name of the spider attribute that contains the callback."""
        for name in (getattr(function, "__name__", ""), *self._attributes()):
            if self._function_of(name) is function:
                return str(name)
        raise UnstorableValue(f"no attribute of the spider is the callback {callback!r}")

    def _name_of_function(self, function: Callable[..., Any]) -> Any:
        """Return the name of a static method of the spider, or of a function of a module."""
        name = function.__name__
        if isinstance(inspect.getattr_static(self._spider, name, None), staticmethod):
            if self._function_of(name) is function:
                return name
        elif self._function_at(function.__module__, name) is function:
            return {"module": function.__module__, "function": name}
        raise UnstorableValue(f"{function!r} is neither a method nor a function of the spider's package")

    def _function_at(self, module: Any, name: Any) -> Any:
        """Return a function that a loaded module of the spider's package defines, or None."""
        package = type(self._spider).__module__.partition(".")[0]
        if not isinstance(module, str) or not isinstance(name, str) or module.partition(".")[0] != package:
            return None
        found = vars(sys.modules[module]).get(name) if module in sys.modules else None
        return found if inspect.isfunction(found) and found.__module__ == module else None

    def _attributes(self) -> Iterator[str]:
        yield from vars(self._spider)
        for kind in type(self._spider).__mro__:
            yield from vars(kind)

    def _function_of(self, name: str) -> Any:
        """Return the function behind a method of the spider, or None if the spider has no method of this name."""
        found = inspect.getattr_static(self._spider, name, None)
        if isinstance(found, types.MethodType):  # set on the instance
            return found.__func__ if found.__self__ is self._spider else None
        if isinstance(found, classmethod | staticmethod):
            found = found.__func__
        return found if inspect.isfunction(found) and name not in vars(self._spider) else None


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


def placeholder(key: bytes, *, ignores_robots: bool, unique: bool) -> bytes:
    """Return the data that the store keeps for a request in memory."""
    return _IN_MEMORY + _RULED[ignores_robots] + key + (_UNIQUE if unique else b"")


def is_placeholder(data: bytes | None) -> bool:
    """Return whether the stored form of a request is a placeholder."""
    return data is not None and data.startswith(_IN_MEMORY)


def is_unique(place: bytes) -> bool:
    """Return whether a placeholder stands for a request with `dont_filter`."""
    return len(place) > len(_IN_MEMORY) + 1 + _KEY_BYTES


def ignores_robots(data: bytes) -> bool:
    """Return whether the meta of a stored request says that robots.txt is ignored."""
    if is_placeholder(data):
        return data.startswith(_IN_MEMORY + _RULED[True])
    try:
        return says_ignore_robots(read_keys(data, "meta"))
    except (ValueError, TypeError, AttributeError, KeyError):
        return False  # it cannot be restored; the code that tries to restore it reports that


def says_ignore_robots(meta: Mapping[str, Any]) -> bool:
    """Return whether the meta of a request says that robots.txt is ignored."""
    return bool(meta.get(_IGNORES))


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
