"""A stranger's text stays text, in its place, and hides nothing."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.service.pages.strangers_text import _INVISIBLE, cut, plain, shown, web_url, with_marks


@given(st.text(max_size=100))
def test_a_shown_text_has_no_markup_of_its_own_and_nothing_invisible(text: str) -> None:
    found = str(shown(text))
    inside = found.removeprefix("<bdi>").removesuffix("</bdi>")
    without_marks = re.sub(r'<span class="hidden-char">\[U\+[0-9A-F]{4,6}\]</span>', "", inside)
    assert not set("<>\"'") & set(without_marks)
    assert not _INVISIBLE.search(found)
    assert html.unescape(without_marks) == _INVISIBLE.sub("", cut(text))


@given(st.text(max_size=100), st.integers(5, 100))
def test_a_plain_text_is_cut_and_has_nothing_invisible(text: str, most: int) -> None:
    assert not _INVISIBLE.search(plain(text, most))
    assert len(cut(text, most)) <= most


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "//evil.example/", "/path", "",
        "http://", " http://a.example/", "http://a.example/\u202e", "java\nscript:alert(1)", "http://[", "ftp://a.example/",
    ],
)  # fmt: skip
def test_only_urls_of_the_web_are_linked(url: str) -> None:
    assert web_url(url) is None


def test_urls_of_the_web_are_linked() -> None:
    for url in ("http://a.example/?q=<b>", "https://a.example:8443/x#y"):
        assert web_url(url) == url


def test_words_are_marked_within_one_isolated_text() -> None:
    found = with_marks("a <b>Gentle</b> un-gentle ungentle gentleman\u202e", ["gentle", "a("])
    assert found == (
        "<bdi>a &lt;b&gt;<mark>Gentle</mark>&lt;/b&gt; un-<mark>gentle</mark> ungentle <mark>gentle</mark>man"
        '<span class="hidden-char">[U+202E]</span></bdi>'
    )
    assert with_marks("none", []) == "<bdi>none</bdi>"
