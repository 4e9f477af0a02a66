"""The index: an SQLite file with the words of each held page in FTS5, and the cursor of the last indexed text.

The index contains the words but not the texts, which saves space. A changed page gets a new number. The words under the
old number of a page stay in the file (`stale`) until the index is built again. One process writes the file; many may
read it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import xxhash

from webfountain.errors import InputError, StoreError
from webfountain.search.search_query import fts_query, ranking_query
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["MAX_TEXT", "FoundPage", "IndexedText", "SearchFilter", "SearchIndex", "SearchState"]

MAX_TEXT: Final = 1_000_000
"""At most this many characters of each text are indexed."""
MAX_FOUND: Final = 100
_RANKED: Final = 5_000
"""Maximum number of pages that are ranked. If more pages than this match, only the newest are ranked."""
_FORMAT: Final = 3
_BUSY_S: Final = 30.0
_FREE_SHARE: Final = 0.02
"""`shrink` removes free database pages if they are more than this share of the file."""
_FREED: Final = 1000
"""Maximum number of database pages that one call of `shrink` removes: 4 MB."""
_NEWEST: Final = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER NOT NULL UNIQUE, url TEXT NOT NULL, fetched REAL, verdict TEXT,
    title TEXT, round INTEGER
);
CREATE VIRTUAL TABLE IF NOT EXISTS words
    USING fts5(text, title, place, content='', tokenize="unicode61 remove_diacritics 2");
"""
"""The text is the first column of `words`, because FTS5 needs two bytes more per word and page in any other column."""
_DROP: Final = "DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS pages; DROP TABLE IF EXISTS state; VACUUM;"
"""A kill may come between the statements of this script, so the whole script must also work a second time."""


class IndexedText(NamedTuple):
    """A page to index. `text` is None if the page is no longer held."""

    url: str
    verdict: str
    fetched: float | None
    title: str | None
    text: str | None


class SearchFilter(msgspec.Struct, frozen=True):
    """A filter of the pages that a search may find. An empty field accepts every page; times are UTC seconds."""

    site: str = ""
    since: float | None = None
    until: float | None = None
    verdict: str = ""


class FoundPage(msgspec.Struct, frozen=True):
    """A page that a search found."""

    url: str
    title: str | None
    fetched: float | None
    verdict: str


class SearchState(msgspec.Struct, frozen=True):
    """The state of an index."""

    cursor: str | None
    """Cursor of the last indexed text; None if no text is indexed yet."""
    pages: int
    stale: int
    """Number of index entries for texts that are outdated, because their page has changed or is gone."""


class SearchIndex:
    """A search index in an SQLite file. Only one thread at a time may use the index."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        try:
            self._base = self._opened(read_only=read_only)
        except sqlite3.Error as error:
            raise StoreError(f"{path}: the search index cannot be opened: {error}") from None

    # ---------------------------------------------------------------- writing

    def apply(self, texts: Sequence[IndexedText], cursor: str) -> None:
        """Index texts, and store the cursor that follows them, in one transaction. A repeated call changes nothing."""
        number = self._number("round")
        with self._step():
            for each in texts:
                self._base.execute("DELETE FROM pages WHERE key = ?", (_key(each.url),))
                if each.text is not None:
                    self._insert(each, number)
            self._put("cursor", cursor)

    def begin_round(self) -> None:
        """Begin a pass in which all pages are indexed again."""
        with self._step():
            self._put("round", str(self._number("round") + 1))
            self._base.execute("DELETE FROM state WHERE name = 'cursor'")

    def end_round(self) -> None:
        """End a pass over all pages: remove the pages that were not indexed in the pass."""
        with self._step():
            self._base.execute("DELETE FROM pages WHERE round < ?", (self._number("round"),))

    def clear(self) -> None:
        """Empty the index, to build it again without stale entries."""
        with self._step():
            self._base.execute("DELETE FROM pages")
            self._base.execute("INSERT INTO words(words) VALUES('delete-all')")
            self._base.execute("DELETE FROM state WHERE name IN ('cursor', 'inserted')")

    def shrink(self) -> bool:
        """Remove free database pages from the file. Return False if the file has only few free pages."""
        free, pages = (self._base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count"))
        if free <= pages * _FREE_SHARE:
            return False
        try:
            # `execute` would make one step of this statement, which removes one page.
            self._base.executescript(f"PRAGMA incremental_vacuum({_FREED})")
        except sqlite3.Error as error:
            raise StoreError(f"{self._path}: the search index cannot be written: {error}") from None
        return True

    def close(self) -> None:
        """Close the file. A second call has no effect."""
        self._base.close()

    def _insert(self, each: IndexedText, number: int) -> None:
        row = (_key(each.url), each.url, each.fetched, each.verdict, each.title, number)
        added = self._base.execute(
            "INSERT INTO pages(key, url, fetched, verdict, title, round) VALUES(?, ?, ?, ?, ?, ?)", row
        )
        text = (added.lastrowid, (each.text or "")[:MAX_TEXT], each.title or "", _place(site_of(each.url)))
        self._base.execute("INSERT INTO words(rowid, text, title, place) VALUES(?, ?, ?, ?)", text)
        self._put("inserted", str(self._number("inserted") + 1))

    # ---------------------------------------------------------------- reading

    def find(self, query: str, wanted: SearchFilter, *, limit: int = 20) -> list[FoundPage]:
        """Return the pages that a query finds, the best first.

        For a very common word, only the newest pages are ranked.

        Raises
        ------
        InputError
            when the query is empty, or the limit is out of range.
        """
        if not 1 <= limit <= MAX_FOUND:
            raise InputError(f"limit {limit} is out of range (allowed: 1 to {MAX_FOUND})")
        match, ranked = _scoped(fts_query(query), wanted), ranking_query(query)
        values: dict[str, object] = {"match": match, "ids": None}
        try:
            if ranked is not None:
                found = self._base.execute(_NEWEST, (match, _RANKED)).fetchall()
                values = {"match": _scoped(ranked, wanted), "ids": json.dumps([number for (number,) in found])}
            rows = self._base.execute(
                "SELECT url, title, fetched, verdict FROM "
                "(SELECT rowid AS number, bm25(words, 1.0, 4.0, 0.0) AS score FROM words WHERE words MATCH :match "
                "AND rowid >= :first AND (:ids IS NULL OR rowid IN (SELECT value FROM json_each(:ids)))) "
                "JOIN pages ON pages.id = number "
                "WHERE (:since IS NULL OR fetched >= :since) AND (:until IS NULL OR fetched < :until) "
                "AND (:verdict = '' OR verdict = :verdict) ORDER BY score LIMIT :limit",
                values | {
                    "first": found[-1][0] if ranked and found else self._first_ranked(match), "since": wanted.since,
                    "until": wanted.until, "verdict": wanted.verdict, "limit": limit,
                },
            ).fetchall()  # fmt: skip
        except sqlite3.OperationalError as error:
            raise StoreError(f"{self._path}: the search index cannot be read: {error}") from None
        return [FoundPage(url, title, fetched, verdict) for url, title, fetched, verdict in rows]

    def state(self) -> SearchState:
        pages = self._base.execute("SELECT count(*) FROM pages").fetchone()[0]
        return SearchState(self._text("cursor"), pages, max(self._number("inserted") - pages, 0))

    def urls(self) -> Iterator[tuple[str, str | None, float | None]]:
        """Yield URL, title and time of each page, in order of URL. The call sorts all pages."""
        yield from self._base.execute("SELECT url, title, fetched FROM pages ORDER BY url")

    def _first_ranked(self, match: str) -> int:
        """Return the lowest page number to rank: only the newest `_RANKED` matches are ranked."""
        found = self._base.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 1 OFFSET ?", (match, _RANKED)
        ).fetchone()
        return 0 if found is None else int(found[0])

    # ------------------------------------------------------------ internal

    def _opened(self, *, read_only: bool) -> sqlite3.Connection:
        if read_only:
            base = sqlite3.connect(
                f"file:{self._path.absolute()}?mode=ro", uri=True, timeout=_BUSY_S, check_same_thread=False
            )
        else:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            base = sqlite3.connect(self._path, timeout=_BUSY_S, check_same_thread=False)
        base.isolation_level = None
        try:
            found = base.execute("PRAGMA user_version").fetchone()[0]
            if found > _FORMAT or (read_only and found not in (0, _FORMAT)):
                raise InputError(f"{self._path}: another version of webfountain made this index; build it again")
            if not read_only:
                base.execute("PRAGMA auto_vacuum = INCREMENTAL")
                base.execute("PRAGMA journal_mode = WAL")
                base.execute("PRAGMA synchronous = NORMAL")
                if 0 < found < _FORMAT:  # an older format; nothing is lost, because it is built again from the copies
                    base.executescript(_DROP)
                base.executescript(_SCHEMA)
                base.execute(f"PRAGMA user_version = {_FORMAT}")
        except BaseException:
            base.close()
            raise
        return base

    @contextlib.contextmanager
    def _step(self) -> Iterator[None]:
        try:
            self._base.execute("BEGIN IMMEDIATE")
            yield
            self._base.execute("COMMIT")
        except BaseException as error:
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"{self._path}: the search index cannot be written: {error}") from None
            raise

    def _text(self, name: str) -> str | None:
        found = self._base.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return None if found is None else str(found[0])

    def _number(self, name: str) -> int:
        return int(self._text(name) or 0)

    def _put(self, name: str, value: str) -> None:
        self._base.execute("INSERT OR REPLACE INTO state VALUES(?, ?)", (name, value))


def _scoped(query: str, wanted: SearchFilter) -> str:
    """Return an FTS5 query of titles and texts, restricted to the filter's site if it names one."""
    match = "{title text} : (" + query + ")"
    return f'({match}) AND place : "{_place(wanted.site)}"' if wanted.site else match


def _key(url: str) -> int:
    """Return a page's key in the index: a number, which takes half the space of the URL."""
    return int.from_bytes(xxhash.xxh3_64_digest(url.encode("utf-8", "replace")), "big", signed=True)


def _place(site: str) -> str:
    """Return the word that stands for a site in the index."""
    return "s" + xxhash.xxh3_64_hexdigest(site.encode())
