r"""Translation of Python's regular expressions to RE2, which searches in time linear in the text.

Expressions are parsed with Python's own parser. Each character class is replaced by the ranges of code points that
Python matches. Look-around, back-references and possessive repeats raise ValueError, because RE2 does not support them.

RE2 differs from Python in two points: ``\b`` knows only ASCII, and ``$`` does not match before a last line feed. The
*plain* form is for texts on which Python and RE2 agree: ASCII texts without a line feed at the end, such as URLs. The
*full* form is for texts with characters outside ASCII or with a last line feed. Before a search with the full form,
some characters of the text are replaced (`Spelling`):

- If the expression contains ``\b`` or ``\B``, each word character beyond ASCII gets a ``_`` on both sides, and ``_``
  itself is replaced by a word character beyond ASCII. Word boundaries by ASCII are then the same as by Unicode.
- If the expression contains ``$``, every line feed of the text is replaced, except one at its very end. ``$`` then
  matches as under ``(?m)``.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Expressions", "Spelling", "category", "translate"]

_CharacterSet = tuple[tuple[int, int], ...]
"""Ranges of code points, both ends included, in order, without overlap."""

_LAST: Final = 0x10FFFF
_ALL: Final[_CharacterSet] = ((0, 0xD7FF), (0xE000, _LAST))
"""All characters except surrogates, which UTF-8 cannot contain."""
_ASCII: Final[_CharacterSet] = ((0, 0x7F),)

_LAST_CASED: Final = 0x1FFFF
_LAST_WORD: Final = 0x33FFF
"""Last code point that may be a letter, digit or space."""

_parser: Final = importlib.import_module("re._parser")

_UNDERSCORE: Final = 0x10FFFE
_LINE_FEED: Final = 0x10FFFF
"""Unicode noncharacters with which `Spelling` replaces other characters, after it has removed noncharacters from the
text.
"""
_REPLACEMENT: Final = "\ufffd"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NO_CHARACTERS: Final = {_UNDERSCORE: _REPLACEMENT, _LINE_FEED: _REPLACEMENT}
_MOST_REPEATS: Final = 1000
"""Maximum number of copies that RE2 may make for the repeats of one expression, such as ``{3,5}``; this limit bounds
the search time.
"""
_SHORT: Final = {"{0,}": "*", "{1,}": "+", "{0,1}": "?"}
_LF: Final = ((10, 10),)
_SENTINELS: Final[_CharacterSet] = ((_UNDERSCORE, _LINE_FEED),)
_LOW_LINE: Final = ((0x5F, 0x5F),)

_ANSWERS: Final = {
    "ASSERT": "look-around such as (?=...): make its content a part of the pattern, or use a second pattern",
    "GROUPREF": "back-references such as \\1: write the alternatives out",
    "ATOMIC_GROUP": "atomic groups such as (?>...): write (?:...)",
    "POSSESSIVE_REPEAT": "possessive repeats such as a++: write a+",
}
_ANSWERS["ASSERT_NOT"] = _ANSWERS["ASSERT"]
_ANSWERS["GROUPREF_EXISTS"] = _ANSWERS["GROUPREF"]


def _union(*sets: Iterable[tuple[int, int]]) -> _CharacterSet:
    """Return the characters that are in any of the sets."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(itertools.chain(*sets)):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def _outside(inner: _CharacterSet) -> _CharacterSet:
    """Return all characters that are not in the set."""
    gaps, at = [], 0
    for first, last in inner:
        if at < first:
            gaps.append((at, first - 1))
        at = last + 1
    if at <= _LAST:
        gaps.append((at, _LAST))
    return _both(tuple(gaps), _ALL)


def _both(one: _CharacterSet, other: _CharacterSet) -> _CharacterSet:
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
def category(letter: str, *, flags: int) -> _CharacterSet:
    r"""Return the characters of ``\w``, ``\d`` or ``\s`` under Python's flags; `letter` is w, d or s."""
    found = re.finditer(rf"\{letter}+", _characters(_LAST_WORD), flags & re.ASCII)
    return _both(tuple((match.start(), match.end() - 1) for match in found), _ALL)


@functools.lru_cache(1024)
def _folded(ranges: Sequence[tuple[int, int]], *, flags: int) -> _CharacterSet:
    """Return all characters that equal a character of `ranges` when Python ignores case."""
    spelled = "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in ranges)
    if not spelled:
        return ()
    found = re.findall(f"[{spelled}]", _cased(), re.IGNORECASE | flags & re.ASCII)
    return _union(ranges, [(ord(each), ord(each)) for each in found])


@functools.cache
def _characters(last: int) -> str:
    return "".join(map(chr, range(last + 1)))


@functools.cache
def _cased() -> str:
    return "".join(each for each in _characters(_LAST_CASED) if each.lower() != each or each.upper() != each)


_ASCII_OF_LINES: Final = _both(_ASCII, _outside(_LF))


class Spelling(NamedTuple):
    """Which characters of a text are replaced before a search with the full form of an expression."""

    boundaries: bool
    last_line_feed: bool

    def spell(self, text: str) -> bytes:
        """Return a text in UTF-8, with some characters replaced. A lone surrogate becomes U+FFFD."""
        if self.boundaries:
            words = {ord(each): f"_{each}_" for each in set(text) if each > "\x7f" and each.isalnum()}
            text = text.translate(words | _NO_CHARACTERS | {ord("_"): f"_{chr(_UNDERSCORE)}_"})
        elif self.last_line_feed and ("\U0010fffe" in text or "\U0010ffff" in text):
            text = text.translate(_NO_CHARACTERS)
        if self.last_line_feed:
            text = text[:-1].replace("\n", chr(_LINE_FEED)) + text[-1:]
        try:
            return text.encode()
        except UnicodeEncodeError:
            return _SURROGATE.sub(_REPLACEMENT, text).encode()


class Expressions(NamedTuple):
    """The translations of an expression to RE2's syntax, with the `Spelling` for the full form.

    `lines` is a translation for texts with one URL per line; a match never spans two lines.
    """

    plain: str
    lines: str
    full: str
    spelling: Spelling


def translate(text: str) -> Expressions:
    """Translate an expression from Python's syntax to RE2's. Raise ValueError if the expression is wrong or needs a
    feature that RE2 lacks.
    """
    try:
        tree = _parser.parse(text)
        flags = tree.state.flags
        anchors = set(_anchors(tree, flags))
        spelling = _spelling(anchors)
        if "\\B" in {name for name, _ in anchors} and tree.getwidth()[0] == 0:
            raise ValueError("cannot be searched, because \\B alone matches no character; add a character beside it")
        if _copies(tree) > _MOST_REPEATS:
            raise ValueError(
                f"cannot be searched, because it has more than {_MOST_REPEATS} counted repeats; use * or +"
            )
        plain = _Writer(None).sequence(tree, flags)
        lines = _Writer(None, by_line=True).sequence(tree, flags)
        full = _Writer(spelling).sequence(tree, flags)
    except (re.error, OverflowError) as error:
        hint = " (* repeats what stands before it; .* matches any text)" if "nothing to repeat" in str(error) else ""
        raise ValueError(f"is not a Python regular expression: {error}{hint}") from None
    except RecursionError:
        raise ValueError("cannot be searched, because it has too many nested groups") from None
    return Expressions(plain, lines, full, spelling)


def _copies(tree: Any) -> int:
    """Return how many copies RE2 makes for the repeats of an expression, for example five of ``a`` for ``a{3,5}``."""
    copies = 0
    for operation, argument in tree:
        match str(operation):
            case "BRANCH":
                copies += sum(map(_copies, argument[1]))
            case "SUBPATTERN":
                copies += _copies(argument[3])
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inner = argument
                times = least if most is _parser.MAXREPEAT else most
                copies += max(times, times * _copies(inner)) if times > 1 else _copies(inner)
    return copies


def _spelling(anchors: set[tuple[str, bool]]) -> Spelling:
    boundaries = {is_ascii for name, is_ascii in anchors if name in ("\\b", "\\B")}
    if len(boundaries) > 1:
        raise ValueError("cannot be searched, because it has \\b both with and without (?a); write two patterns")
    has_lines = any(name == "lines" for name, _ in anchors)
    has_end = any(name == "$" for name, _ in anchors)
    if has_lines and has_end:
        raise ValueError(
            "cannot be searched, because it has $ both with and without (?m); write \\Z for the end of the text"
        )
    return Spelling(boundaries=False in boundaries, last_line_feed=has_end)


def _anchors(tree: Any, flags: int) -> Any:
    r"""Yield each position assertion of an expression, such as ``\b``: its name, and whether it is limited to ASCII."""
    for operation, argument in tree:
        match str(operation):
            case "AT":
                yield _anchor(str(argument), flags), bool(flags & re.ASCII)
            case "BRANCH":
                for branch in argument[1]:
                    yield from _anchors(branch, flags)
            case "SUBPATTERN":
                yield from _anchors(argument[3], _within(flags, argument))
            case "MAX_REPEAT" | "MIN_REPEAT":
                yield from _anchors(argument[2], flags)


def _anchor(name: str, flags: int) -> str:
    match name:
        case "AT_BOUNDARY":
            return "\\b"
        case "AT_NON_BOUNDARY":
            return "\\B"
        case "AT_BEGINNING" | "AT_END" if flags & re.MULTILINE:
            return "lines"
        case "AT_END":
            return "$"
    return "text"


def _within(flags: int, group: Any) -> int:
    """Return the flags inside a group such as ``(?i:...)``."""
    _, added, removed, _ = group
    if added & (re.ASCII | re.UNICODE):
        flags &= ~(re.ASCII | re.UNICODE)
    return int((flags | added) & ~removed)


class _Writer:
    """Writes an expression in RE2's syntax, as the plain form, the form for lines or the full form."""

    def __init__(self, spelling: Spelling | None, *, by_line: bool = False) -> None:
        self._spelling = spelling
        self._by_line = by_line

    def sequence(self, tree: Any, flags: int) -> str:
        """Return the RE2 syntax of a sequence of Python's operations."""
        return "".join(self._operation(str(operation), argument, flags) for operation, argument in tree)

    def _operation(self, name: str, argument: Any, flags: int) -> str:
        match name:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN" | "FAILURE":
                return self._characters(_one_of(name, argument, flags))
            case "BRANCH":
                return f"(?:{'|'.join(self.sequence(branch, flags) for branch in argument[1])})"
            case "SUBPATTERN":
                return f"(?:{self.sequence(argument[3], _within(flags, argument))})"
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeat(argument, flags) + ("?" if name == "MIN_REPEAT" else "")
            case "AT":
                return self._place(str(argument), flags)
        raise ValueError(f"cannot be searched in linear time because of its {_ANSWERS.get(name, name)}")

    def _repeat(self, argument: Any, flags: int) -> str:
        least, most, inner = argument
        bounds = f"{{{least},}}" if most is _parser.MAXREPEAT else f"{{{least},{most}}}"
        return f"(?:{self.sequence(inner, flags)}){_SHORT.get(bounds, bounds)}"

    def _place(self, name: str, flags: int) -> str:
        if self._by_line and "BOUNDARY" not in name:
            return "(?m:$)" if "END" in name else "(?m:^)"
        match _anchor(name, flags):
            case "lines":
                return "(?m:^)" if name == "AT_BEGINNING" else "(?m:$)"
            case "$":
                return "\\z" if self._spelling is None else "(?m:$)"
            case "text":
                return "\\z" if name == "AT_END_STRING" else "\\A"
            case place:
                return place

    def _characters(self, wanted: _CharacterSet) -> str:
        """Return a character class in RE2's syntax, for texts in which `Spelling` has replaced characters."""
        if self._spelling is None:
            return _spelled(_both(wanted, _ASCII_OF_LINES if self._by_line else _ASCII))
        boundaries, last_line_feed = self._spelling
        if not (boundaries or last_line_feed):
            return _spelled(wanted)
        wanted = _both(wanted, _outside(_SENTINELS))
        line_feed = ((_LINE_FEED, _LINE_FEED),) if last_line_feed and _both(wanted, _LF) else ()
        if not boundaries:
            return _spelled(_union(wanted, line_feed))
        word = _both(wanted, _wide_words())
        underscore = ((_UNDERSCORE, _UNDERSCORE),) if _both(wanted, _LOW_LINE) else ()
        alone = _spelled(_union(_both(wanted, _alone()), line_feed))
        spelled = _union(word, underscore)
        return f"(?:{alone}|_{_spelled(spelled)}_)" if spelled else alone


def _wide_words() -> _CharacterSet:
    """Return all word characters outside ASCII."""
    return _both(category("w", flags=0), _outside(_ASCII))


def _alone() -> _CharacterSet:
    return _outside(_union(_wide_words(), _LOW_LINE))


def _one_of(name: str, argument: Any, flags: int) -> _CharacterSet:
    """Return the characters that a single-character operation of a regular expression matches."""
    match name:
        case "LITERAL":
            return _class([(name, argument)], flags)
        case "NOT_LITERAL":
            return _outside(_class([("LITERAL", argument)], flags))
        case "ANY":
            return _ALL if flags & re.DOTALL else _outside(_LF)
        case "IN":
            return _class([(str(item), value) for item, value in argument], flags)
    return ()


def _class(items: list[tuple[str, Any]], flags: int) -> _CharacterSet:
    """Return the characters that a bracketed class matches."""
    ranges: list[tuple[int, int]] = []
    categories: list[_CharacterSet] = []
    is_negated = False
    for name, value in items:
        match name:
            case "NEGATE":
                is_negated = True
            case "LITERAL":
                ranges.append((value, value))
            case "RANGE":
                ranges.append(value)
            case "CATEGORY":
                categories.append(_category(str(value), flags))
            case _:
                raise ValueError(f"cannot be searched in linear time because of its {name}")
    named = _union(ranges)
    if flags & re.IGNORECASE:
        named = _folded(named, flags=flags)
    found = _both(_union(named, *categories), _ALL)
    return _outside(found) if is_negated else found


def _category(name: str, flags: int) -> _CharacterSet:
    """Return the characters of one of Python's categories, such as CATEGORY_NOT_SPACE."""
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[name.rpartition("_")[2]]
    found = category(letter, flags=flags & re.ASCII)
    return _outside(found) if "_NOT_" in name else found


def _spelled(ranges: _CharacterSet) -> str:
    """Return a character class in RE2's syntax."""
    if not ranges:
        return "[^\\x{0}-\\x{10ffff}]"
    spelled = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)
    return f"[{spelled}]"
