"""Convert the text that a person types into a query of SQLite's FTS5.

All words must occur; "words in quotes" must occur in this order; the word after a minus sign (-word) must not occur;
word* stands for all words that begin with "word".
"""

from __future__ import annotations

import re
from typing import Final

from webfountain.errors import InputError

__all__ = ["MAX_TERMS", "fts_query", "ranking_query", "words_of"]

MAX_TERMS: Final = 20
_TERM: Final = re.compile(r'(-?)(?:"([^"]*)"?|([^\s"]+))')
_WORD: Final = re.compile(r"\w+")


def fts_query(text: str) -> str:
    """Return the FTS5 query for a text. The query quotes each word, so that FTS5 reads no word as an operator.

    Raises
    ------
    InputError
        when it has no word that must occur, or too many.
    """
    wanted, unwanted = list[str](), list[str]()
    for minus, phrase, word in _TERM.findall(text):
        term = _quoted(phrase or word, is_prefix=word.endswith("*"))
        if term:
            (unwanted if minus else wanted).append(term)
    if not wanted:
        raise InputError("search: give at least one word that must occur")
    if len(wanted) + len(unwanted) > MAX_TERMS:
        raise InputError(f"search: {len(wanted) + len(unwanted)} terms (allowed: up to {MAX_TERMS})")
    return " ".join(["(" + " AND ".join(wanted) + ")", *(f"NOT {term}" for term in unwanted)])


def ranking_query(text: str) -> str | None:
    """If the text contains a phrase, return an FTS5 query of the single words that must occur, else None.

    Ranking uses single words, because FTS5 would have to count a phrase in the whole index.
    """
    found = list[str]()
    has_phrase = False
    for minus, phrase, word in _TERM.findall(text):
        words = [] if minus else [f'"{each}"' for each in _WORD.findall(phrase or word)]
        if words and word.endswith("*"):
            words[-1] += "*"
        elif len(words) > 1:
            has_phrase = True
        found += words
    return " AND ".join(dict.fromkeys(found)) if has_phrase else None


def words_of(text: str) -> list[str]:
    """Return the words that excerpts highlight: those that must occur, in lower case."""
    found = [phrase or word for minus, phrase, word in _TERM.findall(text) if not minus]
    return [word.lower() for each in found for word in _WORD.findall(each)]


def _quoted(term: str, *, is_prefix: bool) -> str:
    words = _WORD.findall(term)
    if not words:
        return ""
    return '"' + " ".join(words) + '"' + ("*" if is_prefix else "")
