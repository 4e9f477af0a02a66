"""The follower brings the search index up to date with the change log, one batch at a time."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from webfountain.errors import CursorLost
from webfountain.report.texts import ListPlace, is_list_cursor, texts, texts_since
from webfountain.search.search_index import IndexedText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webfountain.errors import RepositoryError
    from webfountain.repository.repository import Pages
    from webfountain.search.search_index import SearchIndex
    from webfountain.store.contract import FrontierStore

__all__ = ["POLL_S", "Follower", "behind"]

POLL_S: Final = 0.5
"""Time between two polls of the change log, in seconds."""
MAX_COUNTED: Final = 1000
_BATCH: Final = 200
_STALE_SHARE: Final = 0.5
"""The index is built again when the ratio of its stale entries to its pages exceeds this."""


class Follower:
    """Follower that keeps one index up to date with one store. The follower calls `unreadable` for each copy that
    cannot be read.
    """

    def __init__(
        self, store: FrontierStore, copies: Pages, index: SearchIndex, *, unreadable: Callable[[RepositoryError], None]
    ) -> None:
        self._store = store
        self._copies = copies
        self._index = index
        self._unreadable = unreadable
        self._tried: tuple[str | None, str] | None = None

    def catch_up(self) -> int:
        """Index all new texts, and return the number of pages. If the cursor is no longer valid, index all pages
        again."""
        before = self._index.state()
        if before.stale > 1000 + before.pages * _STALE_SHARE:
            self._index.clear()
        place = self._index.state().cursor, self._store.changes.end()
        if place == self._tried:
            self._index.shrink()
            return 0  # nothing is new, or all new copies are unreadable
        try:
            done = self._follow(place[0])
        except CursorLost:
            self._index.begin_round()
            done = self._follow(None)
        self._tried = self._index.state().cursor, place[1]
        return done

    def follow(self, *, until: Callable[[], bool]) -> None:
        """Bring the index up to date again and again, until `until` returns True."""
        while not until():
            if not self.catch_up():
                time.sleep(POLL_S)

    def _follow(self, cursor: str | None) -> int:
        is_list = cursor is None or is_list_cursor(cursor)
        if is_list:
            behind_place = None if cursor is None else ListPlace.parse(cursor)
            rows = texts(self._store, self._copies, behind=behind_place, unreadable=self._unreadable)
        else:
            assert cursor is not None
            rows = texts_since(self._store, self._copies, cursor, unreadable=self._unreadable)
        done, last = self._apply(rows)
        if is_list and last is not None and not is_list_cursor(last):
            self._index.end_round()
        return done

    def _apply(self, rows: Iterator[dict[str, Any]]) -> tuple[int, str | None]:
        done, last = 0, None
        while batch := list(islice(rows, _BATCH)):
            last = str(batch[-1]["cursor"])
            self._index.apply([_text(row) for row in batch], last)
            done += len(batch)
        return done, last


def behind(store: FrontierStore, cursor: str | None) -> int | None:
    """Return how many change-log entries an index lacks, at most MAX_COUNTED.

    Return None while the follower indexes the list of all pages, or if it must index this list again.
    """
    if cursor is None or is_list_cursor(cursor):
        return None
    try:
        return len(store.changes.after(cursor, MAX_COUNTED))
    except CursorLost:
        return None


def _text(row: dict[str, Any]) -> IndexedText:
    return IndexedText(row["url"], row["verdict"], row["fetched"], row["title"], row["text"])
