"""Error messages about a policy file, each with the key, its value and the allowed values.

msgspec reports only a place such as ``$.cycle.periods`` and the expected type.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.allowed_values import allowed_words
from webfountain.errors import PolicyError
from webfountain.policy.tables import PolicyFile

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["at_key", "cut", "explain", "reason_of"]

_PLACE: Final = re.compile(r" - at `\$\.?(.*)`$", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`$", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`$")
_STEP: Final = re.compile(r"[^.\[\]]+")
_GONE: Final = {
    **dict.fromkeys(
        ("signals.siblings", "signals.sections", "signals.history", "signals.forgetting"), "the crawl always uses it"
    ),
    "signals.weekdays": "it had no effect",
}
"""Maps each removed key to the reason why it was removed."""


def at_key(path: Path, key: str, value: object, allowed: str) -> PolicyError:
    return PolicyError(f"{path}: {key}: {cut(value)} is not allowed here (allowed: {allowed})")


def reason_of(error: Exception) -> str:
    """Return the reason why a file could not be read, without the file's name."""
    if isinstance(error, UnicodeDecodeError):
        return f"is not text in UTF-8 (byte {error.start}); save it with this encoding"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def explain(message: str, data: dict[str, Any], *, within: str = "", root: type[msgspec.Struct] = PolicyFile) -> str:
    """Convert an error of msgspec to ``key.path: VALUE what is wrong (allowed …)``. `data` is the data that msgspec
    checked.

    `root` is the expected type of `data`. `within` is the key path of `data` in the file.
    """
    found = _PLACE.search(message)
    place = found[1] if found else ""
    complaint = message[: found.start()] if found else message
    unknown, missing = _UNKNOWN.match(complaint), _MISSING.match(complaint)
    if unknown:
        return _explain_unknown(place, unknown[1], within, root)
    if missing:
        return f"{_under(_under(within, place), missing[1])} is missing (required)"
    value = cut(_value_at(data, place))
    shown = _under(within, place)
    shown = f"{shown}: {value}" if shown else value
    if complaint.startswith(("is ", "cannot ")):
        return f"{shown} {complaint}"
    if complaint.startswith("("):
        return f"{shown} is not allowed {complaint}"
    allowed = allowed_words(_type_at(place, root)) or complaint
    return f"{shown} is not allowed (allowed: {allowed}{' that is not empty' if value == repr('') else ''})"


def _under(place: str, key: str) -> str:
    return f"{place}.{key}" if place and key else place or key


def cut(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else shown[:97] + "..."


def _explain_unknown(place: str, key: str, within: str, root: type[msgspec.Struct]) -> str:
    name = _under(_under(within, place), key)
    keys = _table_at(place, root).__struct_fields__
    if name in _GONE:
        return f"{name} was removed, because {_GONE[name]}; delete the line (allowed: {', '.join(keys)})"
    near = difflib.get_close_matches(key, keys, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{name} is an unknown key ({hint}allowed: {', '.join(keys)})"


def _steps(place: str) -> list[str]:
    return _STEP.findall(place)


def _value_at(data: Any, place: str) -> object:
    """Return the value at a key path such as ``collection.seeds[3].url``."""
    for step in _steps(place):
        data = data[int(step)] if isinstance(data, list) else data[step]
    return data


def _type_at(place: str, root: type[msgspec.Struct]) -> msgspec.inspect.Type:
    """Return the type that msgspec expects at a key path below `root`."""
    kind: msgspec.inspect.Type = msgspec.inspect.type_info(root)
    for step in _steps(place):
        if isinstance(kind, msgspec.inspect.VarTupleType):
            kind = kind.item_type
        elif isinstance(kind, msgspec.inspect.UnionType):
            kind = _member(kind, step)
        elif isinstance(kind, msgspec.inspect.StructType):
            kind = _field(kind, step)
    return kind


def _member(kind: msgspec.inspect.UnionType, step: str) -> msgspec.inspect.Type:
    for each in kind.types:
        if isinstance(each, msgspec.inspect.StructType):
            return _field(each, step)
        if isinstance(each, msgspec.inspect.VarTupleType):
            return each.item_type
    return kind


def _field(kind: msgspec.inspect.StructType, name: str) -> msgspec.inspect.Type:
    return next(field.type for field in kind.fields if field.name == name)


def _table_at(place: str, root: type[msgspec.Struct]) -> type[msgspec.Struct]:
    kind = _type_at(place, root)
    types = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    return next(t.cls for t in types if isinstance(t, msgspec.inspect.StructType))
