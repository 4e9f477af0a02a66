"""Markup that holds parsers for minutes is parsed in a moment, and keeps its text."""

from __future__ import annotations

import time

import pytest
from selectolax.lexbor import LexborHTMLParser

from webfountain.formats.html_limits import MAX_DEPTH, tame

HOSTILE = {
    "nested": "<div>" * 100_000 + "deep" + "</div>" * 100_000 + "<p>after</p>",
    "unclosed": "<b>" * 100_000 + "deep<p>after</p>",
    "attributes": "<p " + " ".join(f"a{i}" for i in range(500_000)) + ">deep</p><p>after</p>",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_markup_is_parsed_in_a_moment_and_keeps_its_text(name: str) -> None:
    """In twenty times what ordinary markup of the size takes; untamed, nested markup takes thousands."""
    body = HOSTILE[name].encode()
    ordinary = b"<p>text</p>" * (len(body) // 11)
    start = time.thread_time()
    LexborHTMLParser(ordinary)
    between = time.thread_time()
    tree = LexborHTMLParser(tame(body))
    assert time.thread_time() - between < 20 * (between - start)
    assert tree.body is not None
    assert tree.body.text(separator=" ").split() == ["deep", "after"]


def test_what_follows_a_deep_place_is_nested_as_it_was() -> None:
    body = "<div>" * 1000 + "x" * 70_000 + "</div>" * 1000 + "<main><a href=/y>y</a></main>"
    tree = LexborHTMLParser(tame(body.encode()))
    link = tree.css_first("body > main > a")
    assert link is not None
    assert link.attributes["href"] == "/y"


def test_ordinary_pages_are_left_as_they_are() -> None:
    small = b"<div>" * (MAX_DEPTH + 5)
    large = b"<table>" + b"<tr><td>cell<br><img src=x>" * 5000 + b"</table>" + b"<div><i>z</i></div>" * 3000
    assert tame(small) is small
    assert tame(large) is large
