"""Scrapy requests as plain data and back: how another project's requests live in the frontier.

Place in the walk: its door, in add-on mode. What `Request.to_dict` tells becomes msgpack, never pickle: what is
read again can only be data, whoever wrote the store. Tuples, sets and times come back as what they were. A
request that holds anything else (a lambda as callback, an object in meta) has no such form: `pack` says so.
"""

from __future__ import annotations

import datetime
import os
from typing import TYPE_CHECKING, Any, Final

import msgspec
from scrapy.http import Request
from scrapy.utils.request import request_from_dict

from webfountain.crawl.flight import FLIGHT
from webfountain.errors import UrlError
from webfountain.records import Link
from webfountain.urls import canonical, site_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Spider

__all__ = ["NotPlain", "Packer", "crawlable", "link_of", "meta_of"]

_PLAIN: Final = frozenset({type(None), bool, float, str, bytes})
_CODES: Final[dict[type, int]] = {tuple: 1, set: 2, frozenset: 3, datetime.datetime: 4, datetime.date: 5, dict: 6}
_MAX_INT: Final = 1 << 63


class NotPlain(Exception):
    """A request that cannot be stored; the text says what in it is no plain data."""


class Packer:
    """Writes and reads the requests of one spider."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider
        self._names: dict[Any, str] = {}

    def pack(self, request: Request) -> bytes:
        """The request as msgpack. Raises NotPlain."""
        data = {name: getattr(request, name) for name in request.attributes}
        data["callback"] = self._name(request.callback)
        data["errback"] = self._name(request.errback)
        data["headers"] = dict(request.headers)
        data["meta"] = {key: value for key, value in request.meta.items() if key != FLIGHT}
        kind = type(request)
        if kind is not Request:
            data["_class"] = f"{kind.__module__}.{kind.__qualname__}"
        try:
            return msgspec.msgpack.encode(_flat(data))
        except (OverflowError, RecursionError) as error:
            raise NotPlain(str(error)) from None

    def unpack(self, data: bytes) -> Request:
        """The request again. Raises ValueError when the spider has lost the methods that it names."""
        return request_from_dict(msgspec.msgpack.decode(data, ext_hook=_unflat), spider=self._spider)

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
            if getattr(getattr(self._spider, name, None), "__func__", None) is not function:
                raise NotPlain(f"{method!r} is not found in the spider by its name")
            self._names[function] = name
        return name


def _flat(value: Any) -> Any:
    """`value` with what msgpack does not know marked as an extension. Raises NotPlain."""
    kind = type(value)
    if kind in _PLAIN or (kind is int and -_MAX_INT <= value < _MAX_INT):
        return value
    if kind is list:
        return [_flat(item) for item in value]
    if kind is dict:
        return _flat_dict(value)
    if kind in (tuple, set, frozenset):
        return _ext(kind, [_flat(item) for item in value])
    if kind in (datetime.datetime, datetime.date):
        return _ext(kind, value.isoformat())
    raise NotPlain(f"{kind.__module__}.{kind.__qualname__} is no plain data")


def _flat_dict(value: dict[Any, Any]) -> Any:
    """Text keys are msgpack's own; others (header names are bytes) make a list of pairs."""
    if all(type(key) is str for key in value):
        return {key: _flat(item) for key, item in value.items()}
    return _ext(dict, [[_flat(key), _flat(item)] for key, item in value.items()])


def _ext(kind: type, content: Any) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(_CODES[kind], msgspec.msgpack.encode(content))


def _unflat(code: int, data: memoryview) -> Any:
    content = msgspec.msgpack.decode(data, ext_hook=_unflat)
    if code == _CODES[datetime.datetime]:
        return datetime.datetime.fromisoformat(content)
    if code == _CODES[datetime.date]:
        return datetime.date.fromisoformat(content)
    if code == _CODES[dict]:
        return {_key(key): item for key, item in content}
    return {1: tuple, 2: set, 3: frozenset}[code](content)


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def crawlable(request: Request) -> str | None:
    """The canonical URL under which a request is scheduled; None for data:, file: and whatever is no web page."""
    try:
        return canonical(request.url)
    except UrlError:
        return None


def meta_of(data: bytes) -> dict[str, Any]:
    """The meta of a packed request. Raises ValueError, TypeError or KeyError for what is none."""
    meta: dict[str, Any] = msgspec.msgpack.decode(data, ext_hook=_unflat)["meta"]
    return meta


def link_of(request: Request, url: str, data: bytes, fingerprint: bytes) -> Link:
    """A request as a link. One with `dont_filter` is itself and no other, however often it is yielded."""
    return Link(
        url=url,
        site=site_of(url),
        key=fingerprint + os.urandom(8) if request.dont_filter else fingerprint,
        depth=int(request.meta.get("depth", 0)),
        importance=float(request.priority),
        request=data,
    )
