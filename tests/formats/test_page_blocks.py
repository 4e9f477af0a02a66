"""Blocks of a page: what begins and ends one, how deep a page may nest, how many there are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webfountain.formats.document import tree_of
from webfountain.formats.page_blocks import MAX_BLOCKS, blocks_of


def kinds(html: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks_of(tree_of(html.encode(), None))]


def test_blocks_come_in_document_order_with_their_kind() -> None:
    html = "a<h2>b</h2><ul><li>c</li></ul><pre>d</pre><table><tr><td>e</td><td>f</td></tr></table><p>g<hr>h"
    assert kinds(html) == [
        ("paragraph", "a"),
        ("heading", "b"),
        ("item", "c"),
        ("code", "d"),
        ("table", "e\tf"),
        ("paragraph", "g"),
        ("rule", ""),
        ("paragraph", "h"),
    ]


def test_a_table_that_lays_out_a_page_is_no_table() -> None:
    html = "<table><tr><td><p>a</p></td><td><table><tr><td>b</td><td>c</td></tr></table></td></tr></table>"
    assert kinds(html) == [("paragraph", "a"), ("table", "b\tc")]


def test_scripts_forms_and_hidden_text_are_no_blocks() -> None:
    html = "<p>a<script>b</script><button>c</button><span hidden>d</span></p><select><option>e</select>"
    assert kinds(html) == [("paragraph", "a")]


def test_skipped_elements_end_no_block_however_many_there_are() -> None:
    assert kinds("<p>a<!-- b -->c<svg><p>d</svg>e<xmp><p>f</xmp></p>")[0] == ("paragraph", "ac")
    assert kinds("<p>" + "a<!-- b -->" * 300) == [("paragraph", "a" * 300)]
    assert kinds("<p>a<xmp><p>b</xmp>") == [("paragraph", "a"), ("code", "<p>b")]


def test_a_tag_with_a_bracket_in_its_name_hides_nothing_behind_it() -> None:
    assert kinds("<p>one<l<p><i>two</i></p><p>three")[-1] == ("paragraph", "three")


def test_deep_and_long_pages_are_bounded() -> None:
    assert len(blocks_of(tree_of(b"<div>" * 20_000 + b"x", None))) == 1
    assert len(blocks_of(tree_of(b"<p>x</p>" * (MAX_BLOCKS + 10), None))) == MAX_BLOCKS


TAGS = ["p", "div", "ul", "li", "a", "b", "h1", "table", "tr", "td", "pre", "blockquote", "br", "nav"]
PARTS = st.one_of(st.sampled_from(TAGS).map("<{}>".format), st.sampled_from(TAGS).map("</{}>".format), st.just("word "))


@given(st.lists(PARTS, max_size=60))
def test_no_markup_loses_or_repeats_a_word(parts: list[str]) -> None:
    html = "".join(parts)
    tree = tree_of(html.encode(), None)
    assert tree.body is not None
    assert sum(block.text.count("word") for block in blocks_of(tree)) == tree.body.text().count("word")
