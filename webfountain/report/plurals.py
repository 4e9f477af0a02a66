"""Write numbers with their noun, for people: `1 page`, `2,000 pages`, `3 days`."""

from __future__ import annotations

from typing import Final

__all__ = ["counted", "spell_span"]

_ODD: Final = {"entry": "entries", "copy": "copies", "fetch": "fetches"}


def counted(many: int, noun: str) -> str:
    """Return a number and its noun in singular or plural: `1 page`, `2 pages of a site`."""
    first, blank, rest = noun.partition(" of ")
    plural = _ODD.get(first.rpartition(" ")[2])
    words = first if many == 1 else first[: first.rfind(" ") + 1] + plural if plural else f"{first}s"
    return f"{many:,} {words}{blank}{rest}"


def spell_span(seconds: float) -> str:
    """Return a length of time in words, such as `36 hours`, in the largest unit of which there are at least two."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return counted(round(seconds / length), unit)
    return counted(max(1, round(seconds)), "second")
