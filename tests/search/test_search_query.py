"""Whatever a person types is either refused or a query that SQLite takes."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.errors import InputError
from webfountain.search.search_query import fts_query, words_of

TEXTS = ("the quick brown fox", "the slow brown bear", "a new release of the fox")


def found(query: str) -> list[int]:
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
        base.executemany("INSERT INTO words VALUES(?)", [(text,) for text in TEXTS])
        return [n - 1 for (n,) in base.execute("SELECT rowid FROM words WHERE words MATCH ?", (fts_query(query),))]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("fox", [0, 2]), ("the brown", [0, 1]), ('"brown fox"', [0]), ("the -brown", [2]), ("rel*", [2]),
        ("fox AND bear", []), ('fox OR"', []), ("FOX", [0, 2]), ('"quick brown', [0]),
        ('the -"new release" -slow', [0]),
    ],
)  # fmt: skip
def test_words_phrases_exclusions_and_prefixes(query: str, expected: list[int]) -> None:
    assert found(query) == expected


@given(st.text(max_size=60))
def test_no_text_is_a_query_that_sqlite_refuses(text: str) -> None:
    with contextlib.suppress(InputError):
        found(text)
        assert words_of(text)


@pytest.mark.parametrize("query", ["", "  ", "-fox", '""', "!!!", "x " * 21])
def test_a_query_without_a_word_or_with_too_many_is_refused(query: str) -> None:
    with pytest.raises(InputError, match="search"):
        fts_query(query)
