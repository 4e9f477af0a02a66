"""Compare two texts in bounded time.

Each part of the comparison is limited, because a hostile page could otherwise take much time. The equal beginning and
end of both texts are cut off first. What remains of the texts is divided at tokens that occur exactly once in both
(patience diff). The shortest edit script is computed for each gap between matched tokens. If the search for the edit
script of a gap takes too long, the edit replaces the whole gap. The result is always a correct edit.

Source: Myers 1986, "An O(ND) Difference Algorithm and Its Variations", section 4 (the greedy algorithm).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["DIFF_BYTES", "DiffBlocks", "TextEdit", "blocks_of_diff", "edits", "unified"]

DIFF_BYTES: Final = 20_000
"""Largest size of a stored diff, bytes of UTF-8."""
MAX_LINES: Final = 4000
"""Maximum number of lines of a text that are compared."""
MAX_LINE: Final = 2000
"""Maximum number of characters of a line that are compared."""
WORK: Final = 25_000
"""Largest number of search steps that the comparison of two texts may take, about 5 ms."""
DEPTH: Final = 4
"""Maximum depth of the recursive division at unique tokens."""
_CONTEXT: Final = 1
"""Number of equal lines shown before and after a change."""
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
DIFF_STEPS: Final = 20_000
"""Largest number of search steps that comparing the words of all lines of a diff may take, about 4 ms."""
_LINE_STEPS: Final = 5000
"""Largest number of search steps that comparing the words of one line may take."""
_Pair = tuple[int, int]
"""Positions of a common token in the old and the new text."""


class TextEdit(NamedTuple):
    """Replacement of the old tokens `old_from` to `old_to` (excluded) by new tokens."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


class _Gap(NamedTuple):
    """A run of old tokens and a run of new tokens that are still to be compared."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int
    depth: int


def edits(old: Sequence[str], new: Sequence[str], *, work: int = WORK) -> list[TextEdit]:
    """Return the edits, in order, that turn the old tokens into the new tokens. Between two edits the texts are equal.

    The time is O(n) for n tokens, plus at most `work` steps of about 200 ns each.
    """
    numbers: dict[str, int] = {}
    old_ids = [numbers.setdefault(token, len(numbers)) for token in old]
    new_ids = [numbers.setdefault(token, len(numbers)) for token in new]
    pairs = _Comparison(old_ids, new_ids, work).pairs()
    found, i, j = [], 0, 0
    for x, y in [*pairs, (len(old), len(new))]:
        if x > i or y > j:
            found.append(TextEdit(i, x, j, y))
        i, j = x + 1, y + 1
    return found


class _Comparison:
    """Finds the equal tokens of two texts within a limit of steps."""

    def __init__(self, old: Sequence[int], new: Sequence[int], work: int) -> None:
        self._old, self._new, self._left = old, new, work

    def pairs(self) -> list[_Pair]:
        """Return the positions of equal tokens, in order."""
        found: list[_Pair] = []
        gaps = [_Gap(0, len(self._old), 0, len(self._new), 0)]
        while gaps:
            gap = self._without_ends(gaps.pop(), found)
            if gap.old_from == gap.old_to or gap.new_from == gap.new_to:
                continue
            anchors = self._unique(gap) if gap.depth < DEPTH else []
            if not anchors:
                found += self._shortest(gap)
                continue
            found += anchors
            i, j = gap.old_from, gap.new_from
            for x, y in [*anchors, (gap.old_to, gap.new_to)]:
                gaps.append(_Gap(i, x, j, y, gap.depth + 1))
                i, j = x + 1, y + 1
        return sorted(found)

    def _without_ends(self, gap: _Gap, found: list[_Pair]) -> _Gap:
        """Remove from a gap the lines that are equal at its beginning and at its end. Add these lines to `found`, and
        return the rest of the gap."""
        old, new = self._old, self._new
        i, x, j, y, depth = gap
        while i < x and j < y and old[i] == new[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        while i < x and j < y and old[x - 1] == new[y - 1]:
            x, y = x - 1, y - 1
            found.append((x, y))
        return _Gap(i, x, j, y, depth)

    def _unique(self, gap: _Gap) -> list[_Pair]:
        old, new = self._old[gap.old_from : gap.old_to], self._new[gap.new_from : gap.new_to]
        old_counts, new_counts = Counter(old), Counter(new)
        place = {token: y for y, token in enumerate(new, gap.new_from) if new_counts[token] == 1}
        both = [
            (x, place[token]) for x, token in enumerate(old, gap.old_from) if old_counts[token] == 1 and token in place
        ]
        return _longest_rising(both)

    def _shortest(self, gap: _Gap) -> list[_Pair]:
        """Return the equal tokens of the shortest edit script; none if the search takes too many steps."""
        old_set = set(self._old[gap.old_from : gap.old_to])
        common = old_set.intersection(self._new[gap.new_from : gap.new_to])
        if not common:
            return []
        xs = [x for x in range(gap.old_from, gap.old_to) if self._old[x] in common]
        ys = [y for y in range(gap.new_from, gap.new_to) if self._new[y] in common]
        found = self._greedy([self._old[x] for x in xs], [self._new[y] for y in ys])
        return [(xs[i], ys[j]) for i, j in found]

    def _greedy(self, old: Sequence[int], new: Sequence[int]) -> list[_Pair]:
        """Run Myers' greedy algorithm."""
        n, m = len(old), len(new)
        furthest = {1: 0}
        rounds: list[dict[int, int]] = []
        for d in range(n + m + 1):
            if self._left <= 0:
                return []
            rounds.append(dict(furthest))
            self._left -= d
            for k in range(-d, d + 1, 2):
                down = k == -d or (k != d and furthest[k - 1] < furthest[k + 1])
                x = furthest[k + 1] if down else furthest[k - 1] + 1
                begin, y = x, x - k
                while x < n and y < m and old[x] == new[y]:
                    x, y = x + 1, y + 1
                self._left -= 1 + x - begin
                furthest[k] = x
                if x >= n and y >= m:
                    return _walked_back(rounds, n, m)
        return []


def _walked_back(rounds: Sequence[dict[int, int]], x: int, y: int) -> list[_Pair]:
    found = []
    for d in range(len(rounds) - 1, -1, -1):
        furthest, k = rounds[d], x - y
        down = k == -d or (k != d and furthest[k - 1] < furthest[k + 1])
        before = k + 1 if down else k - 1
        from_x = furthest[before]
        from_y = from_x - before
        while x > max(from_x, 0) and y > max(from_y, 0):
            x, y = x - 1, y - 1
            found.append((x, y))
        x, y = from_x, from_y
    return found


def _longest_rising(pairs: Sequence[_Pair]) -> list[_Pair]:
    """Return the longest subsequence of pairs that rises in both positions, in O(n log n)."""
    tails: list[int] = []  # for each length, the smallest last position of a rising sequence
    ends: list[int] = []  # for each length, the last pair of this sequence
    before: list[int] = []
    for at, (_, y) in enumerate(pairs):
        length = bisect_left(tails, y)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [y]
        ends[length : length + 1] = [at]
    found, at = [], ends[-1] if ends else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def unified(before: str, text: str) -> str:
    """Return a unified diff of two visible texts, without file names, of at most `DIFF_BYTES`.

    Only `MAX_LINES` lines and `MAX_LINE` characters per line are compared. The call takes about 10 ms for two pages of
    20 kB.
    """
    old, new = ([line[:MAX_LINE] for line in whole.splitlines()[:MAX_LINES]] for whole in (before, text))
    kept: list[str] = []
    room = DIFF_BYTES
    for line in _unified_lines(old, new, edits(old, new)):
        room -= len(line.encode(errors="replace")) + 1
        if room < 0:
            break
        kept.append(line + "\n")
    return "".join(kept)


def _unified_lines(old: Sequence[str], new: Sequence[str], changes: Sequence[TextEdit]) -> Iterator[str]:
    """Return the lines of a unified diff, hunk by hunk."""
    for hunk in _hunks(changes):
        first, last = hunk[0], hunk[-1]
        lead = min(first.old_from, _CONTEXT)
        tail = min(len(old) - last.old_to, _CONTEXT)
        i = first.old_from - lead
        yield (f"@@ -{_range(i, last.old_to + tail)} +{_range(first.new_from - lead, last.new_to + tail)} @@")
        for edit in hunk:
            yield from (" " + line for line in old[i : edit.old_from])
            yield from ("-" + line for line in old[edit.old_from : edit.old_to])
            yield from ("+" + line for line in new[edit.new_from : edit.new_to])
            i = edit.old_to
        yield from (" " + line for line in old[i : i + tail])


def _hunks(changes: Sequence[TextEdit]) -> Iterator[list[TextEdit]]:
    """Group edits whose context lines would touch."""
    hunk: list[TextEdit] = []
    for edit in changes:
        if hunk and edit.old_from - hunk[-1].old_to > 2 * _CONTEXT:
            yield hunk
            hunk = []
        hunk.append(edit)
    if hunk:
        yield hunk


def _range(begin: int, end: int) -> str:
    """Return the range of the lines `begin` to `end` (excluded) for a hunk's header."""
    many = end - begin
    if many == 1:
        return str(begin + 1)
    return f"{begin + 1 if many else begin},{many}"


class DiffBlocks(NamedTuple):
    """The removed, added and changed blocks of a unified diff. In changed blocks, the changed words are marked.

    Marks look like this: ``a price of [-12-]{+13+} EUR``.
    """

    removed: tuple[str, ...]
    added: tuple[str, ...]
    words: tuple[str, ...]


def blocks_of_diff(diff: str) -> DiffBlocks:
    """Return the blocks of a unified diff. All lines share the limit `DIFF_STEPS`, so the time is bounded."""
    lines = diff.split("\n")
    pairs = min(sum(line.startswith("-") for line in lines), sum(line.startswith("+") for line in lines))
    steps = min(_LINE_STEPS, DIFF_STEPS // max(pairs, 1))
    removed: list[str] = []
    added: list[str] = []
    words: list[str] = []
    old: list[str] = []
    new: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("-"):
            if new:
                words += _marked_words(old, new, steps)
                old, new = [], []
            old.append(line[1:])
            removed.append(line[1:])
        elif line.startswith("+"):
            new.append(line[1:])
            added.append(line[1:])
        else:
            words += _marked_words(old, new, steps)
            old, new = [], []
    return DiffBlocks(tuple(removed), tuple(added), tuple(words))


def _marked_words(old: Sequence[str], new: Sequence[str], steps: int) -> list[str]:
    """Return the replaced lines with their changed words marked."""
    both = min(len(old), len(new))
    found = [_marked_line(before, after, steps) for before, after in zip(old[:both], new[:both], strict=True)]
    found += [f"[-{line}-]" for line in old[both:]]
    return found + [f"{{+{line}+}}" for line in new[both:]]


def _marked_line(before: str, after: str, steps: int) -> str:
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    parts: list[str] = []
    at = 0
    for edit in edits(old, new, work=steps):
        parts.append("".join(old[at : edit.old_from]))
        if gone := "".join(old[edit.old_from : edit.old_to]):
            parts.append(f"[-{gone}-]")
        if came := "".join(new[edit.new_from : edit.new_to]):
            parts.append(f"{{+{came}+}}")
        at = edit.old_to
    return "".join([*parts, *old[at:]])
