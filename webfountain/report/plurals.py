"""Write numbers with their noun, for people: `1 page`, `2,000 pages`."""

from __future__ import annotations

from typing import Final

__all__ = ["counted"]

_ODD: Final = {"entry": "entries", "copy": "copies", "fetch": "fetches"}


def counted(many: int, noun: str) -> str:
    """Return a number and its noun, in the plural unless the number is one. If the noun has several words, the first
    one is changed."""
    first, blank, rest = noun.partition(" of ")
    plural = _ODD.get(first.rpartition(" ")[2])
    words = first if many == 1 else first[: first.rfind(" ") + 1] + plural if plural else f"{first}s"
    return f"{many:,} {words}{blank}{rest}"
