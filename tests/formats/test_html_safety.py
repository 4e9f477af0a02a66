"""Markup that holds parsers for minutes is parsed in a moment, and keeps its text."""

from __future__ import annotations

import itertools
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from tests.formats.markup import MARKUP
from webfountain.formats.html_safety import MAX_DEPTH, MAX_ORDINARY_BYTES, is_ordinary_markup, tame

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = {
    "nested": "<div>" * 100_000 + "deep" + "</div>" * 100_000 + "<p>after</p>",
    "unclosed": "<b>" * 100_000 + "deep<p>after</p>",
    "attributes": "<p " + " ".join(f"a{i}" for i in range(500_000)) + ">deep</p><p>after</p>",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_markup_is_tamed_and_keeps_its_text(name: str) -> None:
    """What it costs beside ordinary markup: `tests/benchmarks/bench_markup.py`."""
    tree = LexborHTMLParser(tame(HOSTILE[name].encode()))
    assert tree.body is not None
    assert tree.body.text(separator=" ").split() == ["deep", "after"]


def test_what_follows_a_deep_place_is_nested_as_it_was() -> None:
    body = "<div>" * 1000 + "x" * 70_000 + "</div>" * 1000 + "<main><a href=/y>y</a></main>"
    tree = LexborHTMLParser(tame(body.encode()))
    link = tree.css_first("body > main > a")
    assert link is not None
    assert link.attributes["href"] == "/y"


def test_ordinary_pages_are_left_as_they_are() -> None:
    small = b"<div>" * MAX_DEPTH
    large = b"<table>" + b"<tr><td>cell<br><img src=x>" * 5000 + b"</table>" + b"<div><i>z</i></div>" * 3000
    assert tame(small) is small
    assert tame(large) is large


@pytest.mark.parametrize("name", sorted(MARKUP))
@pytest.mark.parametrize("size", [3_000, 12_000, 60_000])
def test_what_is_called_ordinary_is_a_tree_of_bounded_size(name: str, size: int) -> None:
    body = MARKUP[name](size).encode()
    if is_ordinary_markup(body):
        assert len(LexborHTMLParser(body).css("*")) < 100_000


@pytest.mark.parametrize(
    "name",
    [
        "formatting elements opened again in each paragraph",
        "formatting elements whose ends hide in cells",
        "formatting elements whose ends hide in comments",
        "adoption agency",
        "attributes",
        "attributes with less-than signs",
        "attributes with greater-than signs",
        "attributes with quotes in quotes",
        "depth",
    ],
)
def test_20_kb_that_could_hold_the_loop_are_not_ordinary(name: str) -> None:
    assert not is_ordinary_markup(MARKUP[name](20_000).encode())


@given(st.lists(st.tuples(st.sampled_from(sorted(MARKUP)), st.integers(1, 5_000)), min_size=1, max_size=6))
def test_no_mixture_that_is_called_ordinary_has_a_large_tree(parts: list[tuple[str, int]]) -> None:
    body = "".join(MARKUP[name](size) for name, size in parts).encode()
    if is_ordinary_markup(body):
        assert len(LexborHTMLParser(body).css("*")) < 100_000


TAG_PARTS = ('">', "'>", '="', "='", '=" ', '"', "'", "<a ", "</a ", '<a x="y">', " ='z' ", ">", "/", "text ", 'b="c" ')


@given(st.lists(st.sampled_from([*TAG_PARTS, "names"]), min_size=4, max_size=60), st.integers(1, 40))
def test_no_element_of_what_is_called_ordinary_has_many_attributes(parts: list[str], times: int) -> None:
    """However quotes and apostrophes are nested: a tag is as long as the parser finds it."""
    numbers = itertools.count()
    named = (" ".join(f"n{next(numbers)}" for _ in range(250)) if part == "names" else part for part in parts * times)
    body = "".join(named).encode()[:MAX_ORDINARY_BYTES]
    if len(body) > 3 * 4096 and is_ordinary_markup(body):
        assert max(len(node.attributes) for node in LexborHTMLParser(body).css("*")) < 1024


def test_pages_for_readers_are_ordinary() -> None:
    icons = b'<li><a class="x" href="/a?b=1&c=2"><i class="icon icon-home"></i>Home &gt; "x"</a></li>' * 100
    prose = b'<p>Some <b>bold</b>, some <em class="e">emphasis</em> and <code class="literal">code</code>.</p>' * 100
    script = b"<script>" + b"for (var i = 0; i &lt; n; i++) { a[i] = 'b' + c; }\n" * 200 + b"</script>"
    assert is_ordinary_markup(b"<!doctype html><title>T</title>" + icons + prose + script)


@pytest.mark.shared
def test_most_real_pages_are_ordinary(shared_data: Path) -> None:
    with zipfile.ZipFile(shared_data / "timeweb" / "timeweb.zip") as web:
        names = [name for name in web.namelist() if name.startswith("blobs/")][::20]
        bodies = [body for body in map(web.read, names) if len(body) <= MAX_ORDINARY_BYTES]
    assert sum(map(is_ordinary_markup, bodies)) > 0.95 * len(bodies)
