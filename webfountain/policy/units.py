"""Durations, sizes and CSS selectors as people write them, parsed and formatted."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["DURATION_FORM", "Duration", "PositiveDuration", "Selector", "Size", "spell_duration", "spell_size"]

DURATION_FORM: Final = 'a number with ms, s, m, h, d or w, such as "1.5h"'
SIZE_FORM: Final = 'a number with kB, MB, GB or TB, powers of 1000, such as "10MB"'

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_BYTES: Final = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_NUMBER: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z]{1,2})", re.ASCII)


def _read(value: object, units: dict[str, float] | dict[str, int], form: str) -> float:
    """Return the value of a number with a unit, in seconds or bytes. The text of a ValueError says which values are
    allowed.
    """
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found[2] not in units:
        raise ValueError(f"(allowed: {form})")
    return float(found[1]) * units[found[2]]


class Duration(float):
    """A time span in seconds, 0 or longer."""

    @classmethod
    def parse(cls, value: object) -> Duration:
        """Parse a duration. Raises ValueError if the text is invalid."""
        return cls(_read(value, _SECONDS, DURATION_FORM))


class PositiveDuration(Duration):
    """A time span in seconds, longer than 0."""

    @classmethod
    def parse(cls, value: object) -> PositiveDuration:
        """Parse a duration. Raises ValueError if the text is invalid or the duration is 0."""
        seconds = _read(value, _SECONDS, DURATION_FORM)
        if not seconds:
            raise ValueError(f"(allowed: {DURATION_FORM}, longer than 0)")
        return cls(seconds)


class Size(int):
    """A number of bytes, at least 1."""

    @classmethod
    def parse(cls, value: object) -> Size:
        """Parse a size. Raises ValueError if the text is invalid or means less than one byte."""
        size = cls(round(_read(value, _BYTES, SIZE_FORM)))
        if size < 1:
            raise ValueError(f"(allowed: {SIZE_FORM}, at least one byte)")
        return size


class Selector(str):
    """A CSS selector."""

    __slots__ = ()

    @classmethod
    def parse(cls, value: object) -> Selector:
        """Check a CSS selector. Raises ValueError if the text is invalid."""
        from webfountain.formats.page_units import is_selector  # noqa: PLC0415  (10 ms, and few policies select)

        if not isinstance(value, str) or not is_selector(value):
            raise ValueError('(allowed: a CSS selector such as "article", ".price" or "#main > table")')
        return cls(value)


def spell_duration(seconds: float) -> str:
    """Format a duration in the largest unit that gives a whole number, such as "15m". If no unit gives a whole number,
    the unit is s or ms.
    """
    for unit in ("w", "d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return f"{seconds * 1000:g}ms" if 0 < seconds < 1 else f"{seconds:.12g}s"


def spell_size(size: int) -> str:
    """Format a size in the largest unit that gives a whole number, such as "10MB". If no unit gives a whole number, the
    unit is kB.
    """
    for unit in ("TB", "GB", "MB"):
        if size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return f"{size / 1000:.12g}kB"
