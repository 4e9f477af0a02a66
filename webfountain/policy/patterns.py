"""Compile the regular expressions of policy files.

Patterns are searched in canonical URLs and in the texts of pages. RE2 searches in time linear in the text;
`policy.linear_syntax` translates Python's syntax for RE2.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Self

from re2 import _re2

from webfountain.policy.linear_syntax import translate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Pattern", "any_of", "any_of_lines", "compile_pattern"]

_MOST_BYTES: Final = 16 << 20
"""Maximum memory of one expression, in bytes; an expression that needs more is searched more slowly."""
_MOST_STEPS: Final = 100_000
MAX_SEARCHES: Final = 100_000
"""Maximum number of searches that `Pattern.without` makes in one page."""
_UNANCHORED: Final = _re2.RE2.Anchor.UNANCHORED
_NOWHERE: Final = -1


class Pattern:
    """A compiled regular expression. Two patterns are equal if their source texts (`pattern`) are equal."""

    __slots__ = ("_full", "_plain", "_runs", "_spelling", "full", "lines", "pattern", "plain")

    def __init__(self, pattern: str) -> None:
        """Compile an expression. The text of a ValueError says what is wrong with the expression; the caller adds the
        name of the key.
        """
        self.pattern = pattern
        self.plain, self.lines, self.full, self._spelling = translate(pattern)
        self._plain = _compiled(self.plain)
        self._full = self._plain if self.full == self.plain else _compiled(self.full)
        self._runs: tuple[_re2.RE2, _re2.RE2] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.pattern == self.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def __repr__(self) -> str:
        return f"compile_pattern({self.pattern!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.pattern,)

    def search(self, text: str) -> bool:
        """Return whether the expression is found anywhere in a text."""
        expression, spelled = self._prepared(text)
        return bool(expression.Match(_UNANCHORED, spelled, 0, len(spelled))[0][0] != _NOWHERE)

    def occurs(self, text: str, count: int) -> bool:
        """Return whether a text contains at least `count` non-overlapping matches of the expression."""
        expression, spelled = self._prepared(text)
        at, end = 0, len(spelled)
        for _ in range(count):
            if at > end:
                return False
            first, last = expression.Match(_UNANCHORED, spelled, at, end)[0]
            if first == _NOWHERE:
                return False
            at = last if last > first else last + 1
        return True

    def without(self, lines: Sequence[str]) -> list[str]:
        """Remove all matches of the expression from the lines. After MAX_SEARCHES searches (about 0.15 s), leave the
        rest of the text as it is.

        The returned lines are only for comparison with each other, because their letters outside ASCII may be enclosed
        in underscores.
        """
        if self._runs is None:
            self._runs = _in_a_row(self._plain, self.plain), _in_a_row(self._full, self.full)
        found, left = [], MAX_SEARCHES
        for line in lines:
            if left <= 0:
                found.append(line)
                continue
            is_plain = line.isascii() and not line.endswith("\n")
            spelled = line.encode() if is_plain else self._spelling.spell(line)
            rest, searches = _without(self._runs[not is_plain], spelled, left)
            found.append(rest)
            left -= searches
        return found

    def _prepared(self, text: str) -> tuple[_re2.RE2, bytes]:
        """Return the form of the expression that suits a text, and the text in UTF-8 for that form."""
        if text.isascii() and not text.endswith("\n"):
            return self._plain, text.encode()
        return self._full, self._spelling.spell(text)


@functools.lru_cache(1024)
def compile_pattern(text: str) -> Pattern:
    """Compile an expression, or return it from a cache. The text of a ValueError says what is wrong with the
    expression; the caller adds the name of the key.
    """
    return Pattern(text)


def any_of(patterns: Sequence[Pattern]) -> Callable[[str], bool] | None:
    """Return a function that says whether a URL matches any of the patterns; return None if there are no patterns. The
    function searches all patterns at once if RE2 can join them.
    """
    if len(patterns) <= 1:
        return patterns[0].search if patterns else None
    try:
        joined = _compiled("|".join(pattern.plain for pattern in patterns))
    except ValueError:
        return lambda text: any(pattern.search(text) for pattern in patterns)

    def search(text: str) -> bool:
        if text.isascii() and not text.endswith("\n"):
            spelled = text.encode()
            return bool(joined.Match(_UNANCHORED, spelled, 0, len(spelled))[0][0] != _NOWHERE)
        return any(pattern.search(text) for pattern in patterns)

    return search


def any_of_lines(patterns: Sequence[Pattern]) -> Callable[[str], bool]:
    """Return a function that searches a text with one URL per line for all patterns at once.

    The function returns False if no URL matches any pattern, and True if some URL may match. One call of RE2 for all
    URLs saves time, because each call releases Python's global lock (GIL), which costs more than a search.
    """
    if not patterns:
        return lambda text: False
    try:
        joined = _compiled("|".join(pattern.lines for pattern in patterns))
    except ValueError:
        return lambda text: True

    def search(text: str) -> bool:
        if not text.isascii():
            return True
        spelled = text.encode()
        return bool(joined.Match(_UNANCHORED, spelled, 0, len(spelled))[0][0] != _NOWHERE)

    return search


def _in_a_row(compiled: _re2.RE2, expression: str) -> _re2.RE2:
    """Return an expression that finds several adjacent matches of `expression` in one search."""
    try:
        return _compiled(f"(?:{expression})+")
    except ValueError:  # the expression alone is nearly too large
        return compiled


def _without(expression: _re2.RE2, text: bytes, most: int) -> tuple[str, int]:
    """Remove the matches of an expression from a text, in at most `most` searches. Return the new text and how many
    searches were made.
    """
    kept, at, end, searches = [], 0, len(text), 0
    while at <= end and searches < most:
        first, last = expression.Match(_UNANCHORED, text, at, end)[0]
        searches += 1
        if first == _NOWHERE:
            break
        kept.append(text[at:first])
        if last == first:
            kept.append(text[first : first + 1])
            last += 1
        at = last
    return b"".join([*kept, text[at:]]).decode("utf-8", "replace"), searches


def _compiled(expression: str) -> _re2.RE2:
    options = _re2.RE2.Options()
    options.log_errors = False  # RE2 writes to stderr
    options.max_mem = _MOST_BYTES
    options.never_capture = True
    compiled = _re2.RE2(expression.encode(), options)
    if not compiled.ok():
        raise ValueError(
            "cannot be searched, because it is too large; use fewer repeats, such as + or * instead of {1,1000}"
        )
    if compiled.ProgramSize() > _MOST_STEPS:
        raise ValueError(
            f"cannot be searched, because it has {compiled.ProgramSize()} steps of at most {_MOST_STEPS};"
            " use fewer repeats, such as + or * instead of {1,1000}"
        )
    return compiled
