"""Reports: the tables of a collection as CSV and JSON, and the values for the page to print.

A table is sent in parts, so that a long one occupies neither the store's thread nor the memory.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from webfountain.service.pages.overview import summary_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.api.collection import StoredCollection
    from webfountain.service.operation import Nothing

__all__ = ["MAX_ROWS", "ReportQuery", "as_csv", "report_page", "report_part"]

MAX_ROWS: Final = 1_000_000
"""Maximum number of rows of a table."""
_PART: Final = 1000
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a cell that a spreadsheet would take for a formula."""


class ReportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of a table."""

    format: Literal["csv", "json"] = "csv"
    site: Annotated[str, Meta(max_length=2000)] = ""
    step: Literal["minute", "hour", "day"] = "hour"


def report_page(collection: StoredCollection, _: Nothing) -> Mapping[str, Any]:
    """Return the values for the page to print."""
    found = summary_of(collection)
    days = collection.history("day", since=found["status"].at - 90 * 86400.0)
    return found | {"days": days[-31:], "sites": collection.sites(limit=50)}


def report_part(
    collection: StoredCollection, table: str, query: ReportQuery, after: str
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the part of a table after a place, and the place from which to continue, which is None at the end.

    Raises
    ------
    InputError
        when the site is not known.
    """
    rows: Sequence[Any]
    if table == "sites":
        found = collection.sites(after=after, limit=_PART)
        rows, place = found, found[-1].site if len(found) == _PART else None
    elif table == "pages":
        rows, place = collection.pages(query.site, after=after, limit=_PART)
    elif table == "changes":
        entries = collection.changes(since=after or None, limit=_PART)
        rows, place = entries, entries[-1].cursor if len(entries) == _PART else None
    else:
        rows, place = collection.history(query.step, since=0.0), None
    return [msgspec.to_builtins(each, enc_hook=lambda value: value.item()) for each in rows], place


def as_csv(rows: Sequence[Mapping[str, Any]], *, with_head: bool) -> str:
    """Return rows as CSV. No cell begins as a formula of a spreadsheet does."""
    text = io.StringIO()
    writer = csv.writer(text)
    if rows and with_head:
        writer.writerow(rows[0])
    for row in rows:
        writer.writerow([_cell(value) for value in row.values()])
    return text.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, dict | list):
        value = msgspec.json.encode(value).decode()
    if isinstance(value, str):
        value = value.replace("\x00", "\ufffd")
        return f"'{value}" if value.startswith(_FORMULA) else value
    return value
