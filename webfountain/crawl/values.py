"""Convert the values in a Scrapy request (meta, cb_kwargs, attributes) to msgpack and back.

Pickle is never used. A value can be plain data, or an instance of a class of the project (`ProjectClasses`). The class
can be an Item, a dataclass, an attrs or pydantic class, an Enum or a named tuple. A class is looked up by its path in
the loaded modules; a class is imported only from packages of the project. An instance is restored from its fields
without a call of ``__init__``. If a class only extends a plain type, such as str or dict, its instances are restored as
the plain type.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import ipaddress
import re
import sys
import uuid
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Final

import attr
import msgspec
from itemadapter import ItemAdapter
from scrapy import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["NameMissing", "ProjectClasses", "UnstorableValue", "Values", "path_of", "read_keys"]

_MAX_INT: Final = 1 << 63
_DATETIME: Final = 4
_DICT: Final = 6
_NAMED: Final = 7
"""Msgpack extension code of a value whose kind has a name in `_KINDS`; the extension contains this name and the value.
Kinds with a number in `_KINDS` have this number as their extension code.
"""
_INSTANCE: Final = 8
"""Msgpack extension code of an instance of a project's class; the extension contains the kind of class, its path and
the fields.
"""
_FACTORIES: Final[dict[str, Callable[[], Any]]] = {
    kind.__name__: kind for kind in (list, dict, set, int, float, str, tuple, OrderedDict, Counter)
}
_MARKED: Final = ("int", "surrogates", "zoned", "folded", _DATETIME, _DICT)
"""Kinds for unusual values, such as integers of more than 64 bits; msgpack stores usual values of the same types
directly.
"""
_NETWORK: Final = (
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
)


class UnstorableValue(Exception):
    """Error for a value that cannot be stored as data."""


class NameMissing(ValueError):
    """Error for stored data that names a class, method or function that this process does not have or may not use."""


class ProjectClasses:
    """Look-up of classes by path. Stored classes are imported only from the top-level packages `packages`."""

    def __init__(self, packages: Iterable[str] = ()) -> None:
        self._packages = frozenset(packages)

    def class_at(self, path: str) -> type[Any]:
        """Return the class at ``module:qualified.name``. Raise NameMissing if the class is not found."""
        module_name, _, name = path.partition(":") if ":" in path else path.rpartition(".")
        module = sys.modules.get(module_name)
        if module is None and module_name.partition(".")[0] in self._packages:
            try:
                module = importlib.import_module(module_name)
            except ImportError as error:
                raise NameMissing(f"{path} cannot be imported ({error})") from None
        found: Any = module
        for part in name.split("."):
            found = None if found is None else vars(found).get(part)
        if not isinstance(found, type):
            raise NameMissing(f"the class {path} is not loaded")
        return found

    def instance(self, kind: str, path: str, content: Any) -> Any:
        """Return an instance, made without a call of ``__init__``. Raise NameMissing if the class does not exist or is
        of another kind.
        """
        cls = self.class_at(path)
        if kind != _kind_of(cls):
            raise NameMissing(f"{path_of(cls)} is no longer a {kind}")
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


def path_of(cls: type) -> str:
    """Return the path ``module:qualified.name`` of a class. Raise UnstorableValue for a class without a path, such as a
    class in a function.
    """
    path = f"{cls.__module__}:{cls.__qualname__}"
    try:
        found: object = ProjectClasses().class_at(path)
    except NameMissing:
        found = None
    if found is not cls:
        raise UnstorableValue(f"{path} cannot be imported under its name")
    return path


def _kind_of(cls: type[Any]) -> str | None:
    """Return the kind of a class, such as "dataclass" or "enum", or None for any other class."""
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


def _content_of(kind: str, value: Any) -> Any:
    """Return the fields of an instance, or the name and value of an Enum."""
    if kind == "enum":
        return [value.name, value.value]
    if kind == "namedtuple":
        return list(value)
    return dict(ItemAdapter(value))


class Values:
    """Converter between values and msgpack."""

    def __init__(self, packages: Iterable[str] = ()) -> None:
        self.classes = ProjectClasses(packages)

    @staticmethod
    def pack(value: Any) -> bytes:
        """Return a value as msgpack. Raise UnstorableValue if the value is not plain data."""
        try:
            return msgspec.msgpack.encode(_flat(value))
        except UnstorableValue:
            raise
        except Exception as error:
            # A project's own value may raise any error when it is read, and the request must not be lost.
            raise UnstorableValue(f"{type(error).__name__}: {error}") from None

    def unpack(self, data: bytes | memoryview) -> Any:
        """Restore a value from the msgpack that `pack` returned.

        Raises
        ------
        NameMissing
            if this process does not have a class that the value needs. ValueError, TypeError or KeyError for invalid
            data.
        """
        return msgspec.msgpack.decode(data, ext_hook=self._extended)

    def _extended(self, code: int, data: memoryview) -> Any:
        content = self.unpack(data)
        if code == _INSTANCE:
            return self.classes.instance(*content)
        kind, inner = content if code == _NAMED else (code, content)
        return _KINDS[kind][2](inner)


def read_keys(data: bytes, name: str) -> dict[str, Any]:
    """Return the dict that a packed dict contains under the key `name`. Instances of a project's classes are replaced
    by None.

    Raises ValueError, TypeError or KeyError for invalid data.
    """

    def skim(code: int, inner: memoryview) -> Any:
        content = msgspec.msgpack.decode(inner, ext_hook=skim)
        return None if code in (_NAMED, _INSTANCE) else _KINDS[code][2](content)

    found: dict[str, Any] = msgspec.msgpack.decode(data, ext_hook=skim)[name]
    return found


def _flat(value: Any) -> Any:
    """Convert all parts of a value that msgpack does not know to msgpack extensions."""
    kind = type(value)
    direct = _DIRECT.get(kind)
    if direct is not None:
        return direct(value)
    if (project := _kind_of(kind)) is not None:
        return _ext(_INSTANCE, [project, path_of(kind), _flat(_content_of(project, value))])
    for base in kind.__mro__[1:]:
        if base in _DIRECT and base is not type(None):
            return _DIRECT[base](value)
    raise UnstorableValue(f"{kind.__module__}.{kind.__qualname__} is not plain data")


def _flat_int(value: int) -> Any:
    number = int.__pos__(value)
    return number if -_MAX_INT <= number < _MAX_INT else _ext(_NAMED, ["int", str(number)])


def _flat_str(value: str) -> Any:
    """Return a text, or a msgpack extension if UTF-8 cannot encode the text (lone surrogates)."""
    text = str.__str__(value)
    return text if _is_whole(text) else _ext(_NAMED, ["surrogates", text.encode("utf-8", "surrogatepass")])


def _is_whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _flat_dict(value: dict[Any, Any]) -> Any:
    """Return a dict as a map if all keys are texts, else as a list of pairs."""
    if all(type(key) is str and _is_whole(key) for key in value):
        return {key: _flat(item) for key, item in value.items()}
    return _ext(_DICT, [[_flat(key), _flat(item)] for key, item in value.items()])


def _flat_datetime(value: datetime.datetime) -> Any:
    if isinstance(value.tzinfo, zoneinfo.ZoneInfo) and value.tzinfo.key is not None:
        zoned = [value.replace(tzinfo=None).isoformat(), value.tzinfo.key, value.fold]
        return _ext(_NAMED, ["zoned", zoned])
    if value.fold:
        return _ext(_NAMED, ["folded", datetime.datetime.isoformat(value)])
    return _ext(_DATETIME, datetime.datetime.isoformat(value))


def _flat_time(value: datetime.time) -> Any:
    text = datetime.time.isoformat(value)
    return [text, value.fold] if value.fold else text


def _time(content: Any) -> datetime.time:
    text, fold = (content, 0) if isinstance(content, str) else content
    return datetime.time.fromisoformat(text).replace(fold=fold)


def _ext(code: int, content: Any) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, msgspec.msgpack.encode(content))


def _marked(kind: int | str) -> Callable[[Any], Any]:
    """Return a function that converts the values of a kind to msgpack extensions."""
    content = _KINDS[kind][1]
    if isinstance(kind, int):
        return lambda value: _ext(kind, _flat(content(value)))
    return lambda value: _ext(_NAMED, [kind, _flat(content(value))])


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
        raise UnstorableValue(f"a defaultdict of {value.default_factory!r} is not plain data")
    return name


def _defaultdict(content: Any) -> defaultdict[Any, Any]:
    name, pairs = content
    return defaultdict(None if name is None else _FACTORIES[name], _unpaired(pairs))


def _pairs(value: dict[Any, Any]) -> list[list[Any]]:
    return [[key, item] for key, item in value.items()]


def _unpaired(content: Any) -> Any:
    return ((_key(key), item) for key, item in content)


def _path(kind: type[PurePath], text: str) -> PurePath:
    """Return a `Path` if this operating system has this kind of path, else a pure path."""
    return Path(text) if issubclass(type(Path()), kind) else kind(text)


_KINDS: Final[dict[int | str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    1: (tuple, list, tuple),
    2: (set, list, set),
    3: (frozenset, list, frozenset),
    _DATETIME: (datetime.datetime, str, datetime.datetime.fromisoformat),
    5: (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    _DICT: (dict, list, lambda pairs: dict(_unpaired(pairs))),
    "int": (int, str, int),
    "surrogates": (str, str, lambda content: content.decode("utf-8", "surrogatepass")),
    "zoned": (datetime.datetime, str, _zoned),
    "folded": (datetime.datetime, str, lambda text: datetime.datetime.fromisoformat(text).replace(fold=1)),
    "time": (datetime.time, _flat_time, _time),
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
    "fraction": (Fraction, str, Fraction),
    "range": (range, lambda value: [value.start, value.stop, value.step], lambda content: range(*content)),
    "pattern": (re.Pattern, lambda value: [value.pattern, value.flags], lambda content: re.compile(*content)),
    "ellipsis": (type(...), lambda _: None, lambda _: ...),
    **{kind.__name__: (kind, str, kind) for kind in _NETWORK},
    "uuid": (uuid.UUID, str, uuid.UUID),
    "posix-path": (PurePosixPath, str, lambda text: _path(PurePosixPath, text)),
    "windows-path": (PureWindowsPath, str, lambda text: _path(PureWindowsPath, text)),
    # If a type has two names, the later one is written; both can be read.
    "path": (type(Path()), str, Path),
    "pure-posix-path": (PurePosixPath, str, PurePosixPath),
    "pure-windows-path": (PureWindowsPath, str, PureWindowsPath),
    "bytearray": (bytearray, bytes, bytearray),
    "complex": (complex, lambda value: [value.real, value.imag], lambda content: complex(*content)),
    "ordered": (OrderedDict, _pairs, lambda content: OrderedDict(_unpaired(content))),
    "counter": (Counter, _pairs, lambda content: Counter(dict(_unpaired(content)))),
    "defaultdict": (defaultdict, lambda value: [_factory(value), _pairs(value)], _defaultdict),
    "deque": (deque, lambda value: [list(value), value.maxlen], lambda content: deque(*content)),
}
"""For each kind, by number or name: the type of its values, and the functions that convert a value to plain content and
back.
"""


_DIRECT: Final[dict[type, Callable[[Any], Any]]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    float: float.__pos__,
    str: _flat_str,
    bytes: lambda value: b"".join((value,)),
    int: _flat_int,
    list: lambda value: [_flat(item) for item in value],
    dict: _flat_dict,
    datetime.datetime: _flat_datetime,
    **{type_: _marked(kind) for kind, (type_, _, _) in _KINDS.items() if kind not in _MARKED},
}
