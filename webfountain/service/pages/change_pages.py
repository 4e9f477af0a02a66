"""The values for the page of changes, which lists the change log, newest first, with readable diffs.

One request reads a bounded number of entries. If few entries match the filter, the page says how far back it has read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, get_args

import msgspec
from msgspec import Meta

from webfountain.records import ChangeVerdict
from webfountain.service.pages.word_diff import WordBudget, diff_rows
from webfountain.service.streams import ChangeFilter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.api.collection import StoredCollection
    from webfountain.records import Change
    from webfountain.service.pages.word_diff import DiffRow

__all__ = ["MAX_READ", "ChangeItem", "ChangesPageQuery", "changes_page", "items_of"]

MAX_READ: Final = 3000
"""Maximum number of entries that one page reads."""
_ITEMS: Final = 30


class ChangesPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of the web page with the change log."""

    before: Annotated[str, Meta(max_length=30, pattern=r"^\d*(\.\d+)?$")] = ""
    """The page shows only entries before this time, UTC seconds."""
    site: Annotated[str, Meta(max_length=2000)] = ""
    prefix: Annotated[str, Meta(max_length=2000)] = ""
    verdict: Annotated[str, Meta(max_length=20)] = ""
    least: Annotated[str, Meta(max_length=3, pattern=r"^\d*$")] = ""
    """The page shows only changes that affect at least this percentage of the text."""
    view: Literal["inline", "side"] = "inline"

    @property
    def filter(self) -> ChangeFilter:
        """Filter made from the query parameters. Raise InputError for an invalid verdict."""
        return ChangeFilter.of(self.site, self.prefix, self.verdict, int(self.least or 0))


class ChangeItem(NamedTuple):
    """An entry of the change log, with the rows of its diff."""

    entry: Change
    rows: list[DiffRow]
    share: float | None
    """Share of the text that changed; None if it was not computed."""


def changes_page(collection: StoredCollection, query: ChangesPageQuery) -> Mapping[str, Any]:
    at = collection.status().at
    before = float(query.before or 0) or at + 3600.0
    items, reached = items_of(collection, query, before)
    return {
        "items": items,
        "at": at,
        "older": reached,
        "verdicts": get_args(ChangeVerdict),
        "filters": msgspec.structs.asdict(query),
    }


def items_of(
    collection: StoredCollection, query: ChangesPageQuery, before: float, *, url: str = "", most: int = _ITEMS
) -> tuple[list[ChangeItem], float | None]:
    """Return the newest matching entries before a time, and the time from which the list continues (None: no more)."""
    found: list[Change] = []
    wanted = query.filter
    for number, entry in enumerate(collection.details.entries_before(before)):
        if len(found) >= most or number >= MAX_READ:
            return _items(found), (found[-1].at if len(found) >= most else entry.at)
        if wanted.accepts(entry) and (not url or entry.url == url):
            found.append(entry)
    return _items(found), None


def _items(entries: list[Change]) -> list[ChangeItem]:
    budget = WordBudget()
    return [
        ChangeItem(
            each,
            diff_rows(each.diff, budget) if each.diff else [],
            None if each.resemblance is None else 1.0 - each.resemblance,
        )
        for each in entries
    ]
