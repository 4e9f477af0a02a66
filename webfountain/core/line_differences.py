"""Find the parts of a page that differ between two copies: positions, orders and lines.

- a *position*, such as the second line of the footer, shows another line than before;
- the *order* of an element's lines differs, because a line moved inside its element;
- a *line*, given by its element and its text, has come or gone.

If a line is inserted into an element, the lines below, which only move down, do not count as different.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from zlib import crc32

from webfountain.core.text_diff import edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["ABSENT", "Difference", "Differences", "differences_of", "without_noise"]

Line = tuple[int, str, int, str]
"""A line of a page: its position, its text, its element, and its form in a diff. A line at position 0 is never
noise."""
LineT = TypeVar("LineT", bound=Line)
ABSENT: Final = 0
"""Digest that is used for a part that a page lacks."""


class Difference(NamedTuple):
    """A part of a page that differs between two copies.

    - `now`: a digest of what the new copy shows there, or `ABSENT`
    - `text`: the line to show
    - `element`, `position`: those of a line that has come or gone; 0 for other parts
    """

    now: int
    text: str
    element: int = 0
    position: int = 0


class Differences(NamedTuple):
    """Differences between two copies.

    - `old`, `new`: numbers of the differing lines of each copy
    - `parts`: the parts that differ
    - `resting`: positions and orders that are the same in both copies
    - `moved`: lines that only moved inside their element
    """

    old: frozenset[int]
    new: frozenset[int]
    parts: Mapping[int, Difference]
    resting: frozenset[int]
    moved: frozenset[int]


def differences_of(old: Sequence[Line], new: Sequence[Line]) -> Differences:
    changed_old: list[int] = []
    changed_new: list[int] = []
    for edit in edits([each[1] for each in old], [each[1] for each in new]):
        changed_old += range(edit.old_from, edit.old_to)
        changed_new += range(edit.new_from, edit.new_to)
    # Lines at position 0 are no part of anything that is learned.
    gone = [(_number(old[i]), old[i]) for i in changed_old if old[i][0]]
    come = [(_number(new[i]), new[i]) for i in changed_new if new[i][0]]
    more = Counter(number for number, _ in come)
    more.subtract(number for number, _ in gone)
    moved = {number for number, _ in gone if not more[number]}
    before, now = ({each[0]: each[1] for each in lines} for lines in (old, new))
    parts = _positions([[each for number, each in side if number not in moved] for side in (gone, come)], before, now)
    parts |= _orders({each[2] for number, each in come if number in moved}, new)
    for number, line in [*gone, *come]:
        if more[number]:
            parts[number] = Difference(1 if more[number] > 0 else ABSENT, line[1], line[2] or 1, line[0])
    same = {place for place, text in now.items() if before.get(place) == text}
    same |= {each[2] for each in old} & {each[2] for each in new}
    return Differences(
        frozenset(changed_old), frozenset(changed_new), parts, frozenset(same - parts.keys()), frozenset(moved)
    )


def _positions(
    sides: Sequence[Sequence[Line]], before: Mapping[int, str], now: Mapping[int, str]
) -> dict[int, Difference]:
    """Return the positions that differ. A position differs if its line was replaced, or if only one copy has the
    position.
    """
    gone, come = ({each[0] for each in side} for side in sides)
    differing = (gone & come) | (gone - now.keys()) | (come - before.keys())
    return {each: Difference(_digest(now.get(each)), now.get(each) or before[each]) for each in differing}


def _orders(elements: set[int], lines: Iterable[Line]) -> dict[int, Difference]:
    """Return, for each of the `elements`, a difference with the element's lines in the order of the new copy."""
    texts: dict[int, list[str]] = {}
    for each in lines:
        if each[2] in elements:
            texts.setdefault(each[2], []).append(each[1])
    return {element: Difference(_digest("\n".join(each)), each[0]) for element, each in texts.items()}


def _number(line: Line) -> int:
    """Return a number that identifies a line by its element and its text."""
    return crc32(b"=" + line[1].encode("utf-8", "replace"), line[2])


def _digest(text: str | None) -> int:
    return ABSENT if text is None else crc32(text.encode("utf-8", "replace")) or 1


def without_noise(
    lines: Sequence[LineT], changed: frozenset[int], differences: Differences, noise: frozenset[int]
) -> list[LineT]:
    """Return the lines, except changed lines whose position, text or order is noise."""
    return [
        each
        for at, each in enumerate(lines)
        if at not in changed
        or not each[0]
        or not (
            each[0] in noise or (number := _number(each)) in noise or (number in differences.moved and each[2] in noise)
        )
    ]
