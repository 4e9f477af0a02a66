r"""Sets of characters as ranges of code points, such as the meaning of the class ``[^\w-]`` in a regular expression.

Place in the walk: they are used while the patterns of a policy file are translated (`policy.linear_syntax`). The sets
are those of Python's `re` and do not depend on the syntax of RE2.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ALL", "ASCII", "CharacterSet", "both", "category", "folded", "outside", "union"]

CharacterSet = tuple[tuple[int, int], ...]
"""Ranges of code points, both ends included, in order, without overlap."""

_LAST: Final = 0x10FFFF
ALL: Final[CharacterSet] = ((0, 0xD7FF), (0xE000, _LAST))
"""All characters except surrogates, which UTF-8 cannot contain."""
ASCII: Final[CharacterSet] = ((0, 0x7F),)

_LAST_CASED: Final = 0x1FFFF
_LAST_WORD: Final = 0x33FFF
"""Last code point that may be a letter, digit or space."""


def union(*sets: Iterable[tuple[int, int]]) -> CharacterSet:
    """Return the characters that are in any of the sets."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(itertools.chain(*sets)):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def outside(inner: CharacterSet) -> CharacterSet:
    """Return all characters that are not in the set."""
    gaps, at = [], 0
    for first, last in inner:
        if at < first:
            gaps.append((at, first - 1))
        at = last + 1
    if at <= _LAST:
        gaps.append((at, _LAST))
    return both(tuple(gaps), ALL)


def both(one: CharacterSet, other: CharacterSet) -> CharacterSet:
    """Return the characters that are in both sets."""
    shared, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        first, last = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if first <= last:
            shared.append((first, last))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(shared)


@functools.cache
def category(letter: str, *, flags: int) -> CharacterSet:
    r"""Return the characters of ``\w``, ``\d`` or ``\s`` under Python's flags; `letter` is w, d or s."""
    found = re.finditer(rf"\{letter}+", _characters(_LAST_WORD), flags & re.ASCII)
    return both(tuple((match.start(), match.end() - 1) for match in found), ALL)


@functools.lru_cache(1024)
def folded(ranges: Sequence[tuple[int, int]], *, flags: int) -> CharacterSet:
    """Return the characters that equal a character of `ranges` in Python if case is ignored."""
    spelled = "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in ranges)
    if not spelled:
        return ()
    found = re.findall(f"[{spelled}]", _cased(), re.IGNORECASE | flags & re.ASCII)
    return union(ranges, [(ord(each), ord(each)) for each in found])


@functools.cache
def _characters(last: int) -> str:
    return "".join(map(chr, range(last + 1)))


@functools.cache
def _cased() -> str:
    return "".join(each for each in _characters(_LAST_CASED) if each.lower() != each or each.upper() != each)
