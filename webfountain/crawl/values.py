"""Python values as msgpack and back: what another project's requests carry in meta, cb_kwargs and attributes.

Never pickle. What is read again is data, or an instance of a class that the project itself named: a scrapy.Item, a
dataclass, an attrs or pydantic class, an Enum, a named tuple. Such a class is taken by its path from the modules
that are loaded; one that is not is imported only when it lies in a package of the project's own. Instances get their
fields without a call of ``__init__``. Subclasses of str, int, float, bytes, dict, list, tuple, set, frozenset,
datetime and date come back as what they are a subclass of: a link's text is an lxml object that is a str.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import sys
import uuid
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Final

import attr
import msgspec
from itemadapter import ItemAdapter
from scrapy import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["ClassMissing", "NotPlain", "Values", "path_of", "read_keys"]

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
