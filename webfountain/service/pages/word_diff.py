"""Convert a unified diff into rows for people: the old and the new line next to each other, with changed words marked.

Long lines are cut. If comparing the words would cost too much, whole lines are marked.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from webfountain.service.pages.strangers_text import cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["DiffRow", "WordBudget", "Words", "diff_rows"]

MAX_LINE: Final = 2000
"""Maximum number of characters of a line in a diff; longer lines are cut."""
MAX_ROWS: Final = 400
"""Maximum number of rows that are shown for one diff."""
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_TOKEN: Final = re.compile(r"\w+|\s+|[^\w\s]")
Kind = Literal["same", "changed", "removed", "added", "gap"]


class Words(NamedTuple):
    """A part of a line in a diff. `marked` is True if the part differs from the other line."""

    text: str
    marked: bool


class DiffRow(NamedTuple):
    """A row of a diff: the old line and the new line. `before` is None for an added line, `after` is None for a removed
    line."""

    kind: Kind
    before: tuple[Words, ...] | None
    after: tuple[Words, ...] | None


class WordBudget:
    """Limit on the number of word comparisons for one page."""

    def __init__(self, most: int = 60_000) -> None:
        self._left = most

    def allows(self, cost: int) -> bool:
        """Return whether the limit allows `cost` more comparisons, and if so, count them."""
        if cost > self._left:
            return False
        self._left -= cost
        return True


def diff_rows(diff: str, budget: WordBudget) -> list[DiffRow]:
    """Return the rows of a unified diff, at most MAX_ROWS."""
    rows: list[DiffRow] = []
    for row in _rows(diff.splitlines(), budget):
        rows.append(row)
        if len(rows) >= MAX_ROWS:
            return [*rows, DiffRow("gap", None, None)]
    return rows


def _rows(lines: Sequence[str], budget: WordBudget) -> Iterator[DiffRow]:
    removed: list[str] = []
    added: list[str] = []
    is_first = True
    for line in lines:
        mark, text = line[:1], cut(line[1:], MAX_LINE)
        if mark == "-" and not (is_first and line.startswith("---")):
            if added:
                yield from _block(removed, added, budget)
            removed.append(text)
        elif mark == "+" and not (is_first and line.startswith("+++")):
            added.append(text)
        else:
            yield from _block(removed, added, budget)
            if _HUNK.match(line):
                if not is_first:
                    yield DiffRow("gap", None, None)
                is_first = False
            elif mark == " ":
                same = (Words(text, False),)
                yield DiffRow("same", same, same)
    yield from _block(removed, added, budget)


def _block(removed: list[str], added: list[str], budget: WordBudget) -> Iterator[DiffRow]:
    """Yield the diff rows of the removed and added lines, then clear both lists."""
    for i in range(max(len(removed), len(added))):
        before = removed[i] if i < len(removed) else None
        after = added[i] if i < len(added) else None
        if before is None:
            yield DiffRow("added", None, (Words(after or "", True),))
        elif after is None:
            yield DiffRow("removed", (Words(before, True),), None)
        else:
            yield DiffRow("changed", *_words(before, after, budget))
    removed.clear()
    added.clear()


def _words(before: str, after: str, budget: WordBudget) -> tuple[tuple[Words, ...], tuple[Words, ...]]:
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if not budget.allows(len(old) * len(new)):
        return (Words(before, True),), (Words(after, True),)
    left: list[Words] = []
    right: list[Words] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if a < b:
            left.append(Words("".join(old[a:b]), tag != "equal"))
        if c < d:
            right.append(Words("".join(new[c:d]), tag != "equal"))
    return tuple(left), tuple(right)
