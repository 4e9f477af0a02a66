"""Describe in words the values that a field of a policy file or a setting allows, for error messages."""

from __future__ import annotations

import msgspec

__all__ = ["allowed_words"]


def allowed_words(kind: msgspec.inspect.Type) -> str:
    """Describe in words which values a type allows. Return "" if msgspec's error message already describes the allowed
    values.
    """
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            words = allowed_words(inner)
        case msgspec.inspect.VarTupleType(item_type=item):
            words = f"a list, each {allowed_words(item) or 'a text'}"
        case msgspec.inspect.StructType():
            words = "a table"
        case msgspec.inspect.UnionType(types=types):
            words = " or ".join(filter(None, map(allowed_words, types)))
        case _:
            words = _words_of_scalar(kind)
    return words


def _words_of_scalar(kind: msgspec.inspect.Type) -> str:
    match kind:
        case msgspec.inspect.LiteralType(values=values):
            words = " | ".join(map(repr, values))
        case msgspec.inspect.IntType(ge=low, le=high):
            words = "a whole number" + _range(low, high)
        case msgspec.inspect.FloatType(ge=low, gt=above, le=high):
            words = "a number" + (_range(low, high) if above is None else f" above {above:g}, up to {high:g}")
        case msgspec.inspect.BoolType():
            words = "true or false"
        case msgspec.inspect.StrType(pattern=pattern):
            words = f"a text that matches {pattern}" if pattern else "a text"
        case _:
            words = ""
    return words


def _range(low: float | None, high: float | None) -> str:
    """Describe in words the range of allowed numbers."""
    if low is None:
        return ""
    least, most = (each if isinstance(each, int) else f"{each:g}" for each in (low, high or 0))
    return f", {least} or more" if high is None else f", {least} to {most}"
