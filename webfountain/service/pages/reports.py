"""Reports: the tables of the web pages as CSV or JSON, and the values for a printable page.

A long table is read and sent in parts, to save memory and to let other requests run in between.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from webfountain.errors import InputError
from webfountain.records import State  # noqa: TC001  (msgspec reads it)
from webfountain.report.copy import MAX_VERSIONS
from webfountain.service.pages.change_pages import ChangesPageQuery
from webfountain.service.pages.overview import first_sites, summary_of
from webfountain.service.pages.search_pages import Day, SearchPageQuery, found_pages
from webfountain.service.pages.site_pages import is_listed, part_of_sites
from webfountain.store.site_orders import SiteOrder  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webfountain.api.collection import StoredCollection
    from webfountain.service.operation import NoParameters

__all__ = ["MAX_ROWS", "TABLES", "ReportQuery", "ReportTable", "as_csv", "report_page", "report_part"]

MAX_ROWS: Final = 1_000_000
"""Maximum number of rows of a table."""
_PART: Final = 1000
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""Characters with which a spreadsheet formula begins."""

Part = tuple["Iterable[Any]", str | None]
"""Rows of a table, and a cursor for the next part. The cursor is None after the last row."""


class ReportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of a table. Some tables require the parameter `site`, `url` or `words`."""

    format: Literal["csv", "json"] = "csv"
    site: Annotated[str, Meta(max_length=2000)] = ""
    url: Annotated[str, Meta(max_length=8000)] = ""
    words: Annotated[str, Meta(max_length=1000)] = ""
    step: Literal["minute", "hour", "day"] = "hour"
    state: State | None = None
    verdict: Annotated[str, Meta(max_length=20)] = ""
    prefix: Annotated[str, Meta(max_length=2000)] = ""
    least: Annotated[str, Meta(max_length=3, pattern=r"^\d*$")] = ""
    sort: SiteOrder = "name"
    only: Literal["", "failing", "waiting"] = ""
    since: Day = ""
    until: Day = ""


class ReportTable(NamedTuple):
    """A table: its title, and a function that returns the next rows after a cursor."""

    title: str
    read: Callable[[StoredCollection, ReportQuery, str], Part]
    about: Literal["", "site", "url", "words"] = ""
    """Query parameter that the table needs."""


def report_page(collection: StoredCollection, _: NoParameters) -> Mapping[str, Any]:
    """Return the values for the printable page."""
    found = summary_of(collection)
    days = collection.history("day", since=found["status"].at - 90 * 86400.0)
    tables = [(name, each.title) for name, each in TABLES.items() if not each.about]
    return found | {"days": days[-31:], "sites": first_sites(collection, "pages", limit=50), "tables": tables}


def report_part(
    collection: StoredCollection, table: str, query: ReportQuery, after: str
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the part of a table after a cursor, and the cursor for the next part (None at the end).

    Raises
    ------
    InputError
        when the query lacks a field, or the site or page is not known.
    """
    about = TABLES[table].about
    if about and not getattr(query, about):
        raise InputError(f"{about} is missing; the table {table} needs it")
    rows, place = TABLES[table].read(collection, query, after)
    return [msgspec.to_builtins(each, enc_hook=lambda value: value.item()) for each in rows], place


def _sites(collection: StoredCollection, query: ReportQuery, after: str) -> Part:
    found, place = part_of_sites(collection, query.sort, after=after, limit=_PART)
    return [each for each in found if is_listed(each, query.only)], place


def _pages(collection: StoredCollection, query: ReportQuery, after: str) -> Part:
    return collection.pages(query.site, state=query.state, after=after, limit=_PART)


def _changes(collection: StoredCollection, query: ReportQuery, after: str) -> Part:
    wanted = ChangesPageQuery("", query.site, query.prefix, query.verdict, query.least).filter
    found = collection.changes(since=after or None, limit=_PART)
    rows = [each for each in found if wanted.accepts(each)]
    return rows, found[-1].cursor if len(found) == _PART else None


def _history(collection: StoredCollection, query: ReportQuery, _: str) -> Part:
    return collection.history(query.step, since=0.0), None


def _ants(collection: StoredCollection, _: ReportQuery, __: str) -> Part:
    rows = []
    for each in collection.live():
        row = msgspec.to_builtins(each)
        row.pop("live")
        rows.append(row)
    return rows, None


def _active(collection: StoredCollection, _: ReportQuery, __: str) -> Part:
    return [{"ant": each.owner, **msgspec.to_builtins(site)} for each in collection.live() for site in each.live], None


def _of_plan(part: Literal["by_period", "cycles"]) -> Callable[[StoredCollection, ReportQuery, str], Part]:
    def read(collection: StoredCollection, _: ReportQuery, __: str) -> Part:
        plan = collection.details.plan(at=collection.status().at).plan
        return [] if plan is None else plan[part], None

    return read


def _sections(collection: StoredCollection, query: ReportQuery, _: str) -> Part:
    return collection.details.sections(query.site).items, None


def _waiting(collection: StoredCollection, query: ReportQuery, _: str) -> Part:
    return collection.details.waiting(query.site, limit=_PART), None


def _links(collection: StoredCollection, query: ReportQuery, _: str) -> Part:
    found = collection.details.links(query.url, limit=_PART)
    out = [{"from": query.url, "to": each.url, "followed": each.followed} for each in found.out]
    return out + [{"from": each.url, "to": query.url, "followed": each.followed} for each in found.into], None


def _search(collection: StoredCollection, query: ReportQuery, _: str) -> Part:
    asked = SearchPageQuery(query.words, query.site, query.verdict, query.since, query.until)
    return found_pages(collection, asked, limit=100).items, None


def _versions(collection: StoredCollection, query: ReportQuery, _: str) -> Part:
    return collection.versions(query.url, limit=MAX_VERSIONS), None


TABLES: Final[Mapping[str, ReportTable]] = {
    "sites": ReportTable("sites", _sites),
    "changes": ReportTable("change log", _changes),
    "history": ReportTable("history by the hour", _history),
    "ants": ReportTable("crawling processes", _ants),
    "active": ReportTable("active sites and why they wait", _active),
    "plan": ReportTable("plan by period", _of_plan("by_period")),
    "cycles": ReportTable("forecast and found", _of_plan("cycles")),
    "blocks": ReportTable("blocks", lambda collection, _, __: (collection.blocks(), None)),
    "pages": ReportTable("pages of a site", _pages, "site"),
    "sections": ReportTable("sections of a site", _sections, "site"),
    "waiting": ReportTable("queue of a site", _waiting, "site"),
    "checks": ReportTable("checks of a page", lambda found, query, _: (found.details.checks(query.url), None), "url"),
    "versions": ReportTable("versions of a page", _versions, "url"),
    "links": ReportTable("links of a page", _links, "url"),
    "search": ReportTable("pages found", _search, "words"),
}


def as_csv(rows: Sequence[Mapping[str, Any]], *, with_head: bool) -> str:
    """Return rows as CSV. An apostrophe before some values keeps spreadsheets from running them as formulas."""
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
