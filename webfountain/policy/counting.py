"""Compile the rules of a policy that decide which differences between two copies of a page count as a change.

Before two copies of a page are compared, the parts whose changes do not count are removed from both. The current rules
are applied even to the old copy, so that an edited rule does not look like a changed page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar
from zlib import crc32

import msgspec

from webfountain.policy.patterns import Pattern  # noqa: TC001  # msgspec reads it from the annotations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webfountain.formats.page_units import ReadingRules
    from webfountain.policy.collection import Collection

__all__ = ["CountingRules", "counting_rules"]

_T = TypeVar("_T")
_MONTHS: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DATES: Final = re.compile(
    r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\b\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.)? {_MONTHS}\.?(?:,? \d{{4}})?\b"
    rf"|\b{_MONTHS}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\b\.?)?"
    r"|\b(?:\d{1,4}|an?|one) (?:second|minute|hour|day|week|month|year)s? ago\b",
    re.IGNORECASE,
)
_NUMBERS: Final = re.compile(r"\d[\d.,\u00a0\u202f']*")
_KINDS: Final[Mapping[str, Callable[[str], str]]] = {
    # Dates contain numbers, so they go first.
    "dates": lambda line: _DATES.sub("", line),
    "numbers": lambda line: _NUMBERS.sub("", line),
    "case": str.casefold,
}


class CountingRules(msgspec.Struct, frozen=True):
    """The rules of one policy that decide which differences count as a change.

    - `reading`: the rules for the reader of pages. The other fields are applied to the lines that it returns.
    - `by_lines`: whether lines are compared instead of the whole visible text.
    - `stamp`: a hash of the rules, kept with each page. It differs if other lines count. What is learned about a page
      does not change it.
    """

    reading: ReadingRules
    min_change: float
    ignore_text: tuple[Pattern, ...] = ()
    kinds: tuple[str, ...] = ()
    learns: bool = False
    by_lines: bool = False
    stamp: bytes = b""

    def counted(self, text: str) -> str:
        """Remove the parts of a text whose changes do not count, and all lines that then contain no words."""
        if not self.ignore_text and not self.kinds:
            return text
        found = text.split("\n")
        for pattern in self.ignore_text:
            found = pattern.without(found)
        for kind in self.kinds:
            found = list(map(_KINDS[kind], found))
        return "\n".join(words for line in found if (words := " ".join(line.split())))


def counting_rules(collection: Collection, policy: str) -> CountingRules:
    """Return the rules of a policy that decide which differences count as a change. A key that the policy omits comes
    from the collection's `[content]` or `[change]` table.
    """
    from webfountain.formats.page_units import ReadingRules  # noqa: PLC0415  (30 ms; `status` reads no page)

    table = collection.policies[policy]
    content, change, own = collection.tables.content, collection.change, table.change
    is_main = _first(table.content.text, content.text) == "main"
    rules = {name: _first(getattr(own, name), getattr(change, name)) for name in own.__struct_fields__}
    names = ("select", "ignore", "ignore_text", "ignore_kinds", "learn")
    by_lines = is_main or any(rules[name] for name in names)
    diff = collection.changes.diff
    shown = "text" if isinstance(diff, bool) else diff
    # The text of the main content has one line per block, so it is enough if no place matters.
    is_text_enough = is_main and shown == "text" and not (rules["select"] or rules["ignore"] or rules["learn"])
    reading = ReadingRules(
        main=is_main,
        units=bool(by_lines or diff) and not is_text_enough,
        select=tuple(map(str, rules["select"])),
        ignore=tuple(map(str, rules["ignore"])),
        always=tuple(map(str, rules["always"])),
        metadata=_first(table.content.metadata, content.metadata),
        extractors=content.extractors,
        shown=shown,
    )
    kinds = tuple(kind for kind in _KINDS if kind in rules["ignore_kinds"])
    named = (reading.main, reading.select, reading.ignore, [each.pattern for each in rules["ignore_text"]], kinds)
    return CountingRules(
        reading,
        rules["min_change"],
        rules["ignore_text"],
        kinds,
        rules["learn"],
        by_lines,
        crc32(repr(named).encode()).to_bytes(4, "big") if by_lines else b"",
    )


def _first(own: _T | None, given: _T) -> _T:
    return given if own is None else own
