"""The values for the page of full-text search."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from webfountain.errors import InputError
from webfountain.search.search_query import words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.api.collection import StoredCollection
    from webfountain.api.search import SearchAnswer

__all__ = ["Day", "SearchPageQuery", "found_pages", "search_page"]

Day = Annotated[str, Meta(max_length=10, pattern=r"^(\d{4}-\d\d-\d\d)?$")]


class SearchPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query parameters of the search page."""

    words: Annotated[str, Meta(max_length=1000)] = ""
    site: Annotated[str, Meta(max_length=2000)] = ""
    verdict: Annotated[str, Meta(max_length=20)] = ""
    since: Day = ""
    """The page finds only copies that were fetched on this day (UTC) or later."""
    until: Day = ""
    """Last day."""


def search_page(collection: StoredCollection, query: SearchPageQuery) -> Mapping[str, Any]:
    """Return the results of a search, and the state of the index."""
    values: dict[str, Any] = {"asked": query, "found": None, "index": collection.search.progress(), "words": ()}
    if not query.words.strip() or not values["index"].on:
        return values
    try:
        found = found_pages(collection, query, limit=20)
    except InputError as error:
        return values | {"problem": str(error)}
    return values | {"found": found.items, "words": words_of(query.words)}


def found_pages(collection: StoredCollection, query: SearchPageQuery, *, limit: int) -> SearchAnswer:
    """Return the pages that match the query best. Raise InputError for a query that cannot be searched."""
    return collection.search.find(
        query.words,
        site=query.site,
        verdict=query.verdict,
        since=_begin_of(query.since, days=0),
        until=_begin_of(query.until, days=1),
        limit=limit,
    )


def _begin_of(day: str, *, days: int) -> float | None:
    """Return the beginning of the date `day` plus `days` days, in UTC seconds. Raise InputError for a day that does not
    exist."""
    try:
        return (datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days)).timestamp() if day else None
    except (ValueError, OverflowError):
        raise InputError(f"{day} is not a day") from None
