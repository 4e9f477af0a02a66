"""The values for the page of full-text search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from webfountain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webfountain.api.collection import StoredCollection

__all__ = ["SearchPageQuery", "search_page"]


class SearchPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of the page of search."""

    words: Annotated[str, Meta(max_length=1000)] = ""
    site: Annotated[str, Meta(max_length=2000)] = ""
    verdict: Annotated[str, Meta(max_length=20)] = ""


def search_page(collection: StoredCollection, query: SearchPageQuery) -> Mapping[str, Any]:
    """Return the results of a search, and how far the index is."""
    values: dict[str, Any] = {"asked": query, "found": None, "index": collection.search.progress()}
    if not query.words.strip() or not values["index"].on:
        return values
    try:
        found = collection.search.find(query.words, site=query.site, verdict=query.verdict, limit=20)
    except InputError as error:
        return values | {"problem": str(error)}
    return values | {"found": found.items}
