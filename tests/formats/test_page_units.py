"""The lines of a page and their places, on pages that nest deeply, have long names or ends that are missing."""

from __future__ import annotations

import pytest

from webfountain.formats.document import DocumentReader, tree_of
from webfountain.formats.links import LinkExtractor
from webfountain.formats.media_type import ContentType
from webfountain.formats.page_blocks import blocks_of
from webfountain.formats.page_units import ReadingRules, units_of_page
from webfountain.sandbox.reader import CPU_S, FencedReader

HTML = ContentType("text/html", None)
RULES = ReadingRules(main=True, units=True)


def test_a_line_below_more_elements_than_python_may_call_functions_has_a_place() -> None:
    document = DocumentReader(LinkExtractor()).read_at_once(b"<div class=a>" * 1900 + b"x", HTML, None, RULES)
    assert document is not None
    assert [unit.line for unit in document.units or ()] == ["x"]


@pytest.mark.parametrize(
    "body",
    [
        "".join(f'<div class="{number} {"a" * 8000}">x</div>' for number in range(60)),
        "<p>x" + " " * 400_000 + "y<br>z",
        "<img hidden>" * 60_000 + "x",
        "<xmp>" + "<!--" * 100_000 + "</xmp>x",
        "<xmp>" + "<script>" * 50_000 + "</xmp>x",
        f'<a href="{"a" * 7000}">' + "<p>x</p>" * 40_000 + "</a><p>y",
    ],
    ids=["a long class", "white space", "hidden images", "comments without end", "scripts without end", "a long link"],
)
def test_no_page_takes_more_than_linear_time_and_memory(body: str) -> None:
    assert CPU_S == 2.0
    reader = FencedReader(LinkExtractor())
    try:
        assert reader.read(body.encode(), HTML, None, RULES).error is None
    finally:
        reader.close()


def test_text_that_the_parser_writes_as_it_is_has_no_tags_in_it() -> None:
    blocks = blocks_of(
        tree_of(b"<p>a<noembed><p>n</noembed><xmp><b>1</b> &lt;</xmp><p>b<plaintext></plaintext><p>c", None)
    )
    assert [block.text for block in blocks] == ["a", "<b>1</b> &lt;", "b", "</plaintext><p>c"]


@pytest.mark.parametrize("selector", [".price", "td", "b", "div"])
def test_an_element_that_always_counts_does_so_wherever_it_stands(selector: str) -> None:
    tree = tree_of(
        b"<div><p>A text with <b class=price>a price</b>.</div>"
        b"<table><tr><td>Name<td class=price>12<tr><td>a<td>b</table>",
        None,
    )
    always = {unit.line: unit.place == 0 for unit in units_of_page(tree, ReadingRules(units=True, always=(selector,)))}
    assert always == {
        "A text with a price.": selector in (".price", "b", "div"),
        "Name\t12": selector in (".price", "td"),
        "a\tb": selector in (".price", "td"),
    }
