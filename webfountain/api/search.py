"""Full-text search of a collection that has an index (`webfountain index`, `serve --search`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain.errors import InputError, RepositoryError
from webfountain.search.follower import MAX_COUNTED, behind
from webfountain.search.search_index import SearchFilter, SearchIndex
from webfountain.search.search_query import words_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webfountain.store.contract import FrontierStore

__all__ = ["INDEX_FILE", "CollectionSearch", "SearchAnswer", "SearchHit", "SearchProgress"]

INDEX_FILE: Final = "search.sqlite"
"""Name of the index in the store's folder."""
_EXCERPT: Final = 240
"""Maximum number of characters of an excerpt."""


class SearchHit(msgspec.Struct, frozen=True):
    """A page that a search found."""

    url: str
    title: str | None
    fetched: float | None
    verdict: str
    excerpt: str | None
    """Excerpt of the copy around the first match, or None if the copy cannot be read."""


class SearchProgress(msgspec.Struct, frozen=True):
    """State of the index."""

    on: bool
    """False if there is no index."""
    pages: int = 0
    behind: int | None = None
    """Number of changes that the index does not contain yet, at most 1000. `behind` is None until all pages are in the
    index.
    """
    at_least: bool = False
    """True if `behind` is only a lower bound, because at most 1000 missing changes are counted."""


class SearchAnswer(msgspec.Struct, frozen=True):
    """The pages that a search found, best first."""

    items: list[SearchHit]
    index: SearchProgress


class CollectionSearch:
    """Full-text search in an open collection. `path` is the file of the index, or None if the store has no folder."""

    def __init__(self, store: FrontierStore, path: Path | None, text: Callable[[str], str]) -> None:
        self._store = store
        self._path = path
        self._text = text
        self._index: SearchIndex | None = None

    def progress(self) -> SearchProgress:
        """Return the state of the index, with the number of changes that the index does not contain yet."""
        index = self._opened()
        if index is None:
            return SearchProgress(on=False)
        state = index.state()
        lacks = behind(self._store, state.cursor)
        return SearchProgress(True, state.pages, lacks, lacks == MAX_COUNTED)

    def find(
        self,
        query: str,
        *,
        site: str = "",
        since: float | None = None,
        until: float | None = None,
        verdict: str = "",
        limit: int = 20,
    ) -> SearchAnswer:
        """Return the pages whose titles and texts contain the words of a query.

        All words must occur; "words in quotes" must occur in this order; -word must not occur; word* stands for all
        words with this beginning.

        Raises
        ------
        InputError
            when there is no index, or the query has no word.
        """
        index = self._opened()
        if index is None:
            raise InputError(
                "search: there is no index (`webfountain index --follow` or `webfountain serve --search` makes one)"
            )
        wanted = SearchFilter(site, since, until, verdict)
        found, words = index.find(query, wanted, limit=limit), words_of(query)
        hits = [
            SearchHit(each.url, each.title, each.fetched, each.verdict, self._excerpt(each.url, words))
            for each in found
        ]
        return SearchAnswer(hits, self.progress())

    def close(self) -> None:
        """Close the index."""
        if self._index is not None:
            self._index.close()
            self._index = None

    def _opened(self) -> SearchIndex | None:
        if self._path is None or not self._path.is_file():
            self.close()
            return None
        if self._index is None:
            self._index = SearchIndex(self._path, read_only=True)
        return self._index

    def _excerpt(self, url: str, words: list[str]) -> str | None:
        try:
            text = " ".join(self._text(url)[:100_000].split())
        except (InputError, RepositoryError):
            return None
        pattern = "|".join(map(re.escape, words))
        place = re.search(pattern, text, re.IGNORECASE) if pattern else None
        begin = max((place.start() if place else 0) - _EXCERPT // 3, 0)
        cut = text[begin : begin + _EXCERPT]
        return ("…" if begin else "") + cut + ("…" if begin + _EXCERPT < len(text) else "")
