"""Markdown of a page's blocks: rendered again it has the same words in the same order."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.formats.held_out_pages import held_out_pages
from tests.formats.labelled_pages import LabelledPage, labelled_pages, words_of
from webfountain.formats.document import tree_of
from webfountain.formats.markdown import markdown_of, plain_text_of
from webfountain.formats.page_blocks import blocks_of

BASE = "http://example.org/a/b.html"
RENDERER = MarkdownIt("commonmark").enable("table")


def markdown(html: str) -> str:
    return markdown_of(blocks_of(tree_of(html.encode(), None)), BASE)


def rendered_words(text: str) -> list[str]:
    html = re.sub(r"<img[^>]*>", "", RENDERER.render(text))
    tree = tree_of(html.encode(), None)
    return words_of(tree.body.text() if tree.body is not None else "")


@pytest.mark.parametrize("page", [*labelled_pages(), *held_out_pages()], ids=lambda page: page.name)
def test_rendered_again_it_has_the_same_words_in_order(page: LabelledPage) -> None:
    blocks = blocks_of(tree_of(page.html.encode(), None))
    assert rendered_words(markdown_of(blocks, BASE)) == words_of(plain_text_of(blocks))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h2>A <em>b</em></h2>", "## A *b*"),
        ("<p>x <b>y</b> <code>z`</code></p>", "x **y** `` z` ``"),
        ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n    - b\n- c"),
        ("<ol><li>a</li><li>b<br>c</li></ol>", "1. a\n2. b  \n    c"),
        ("<p><a href='../c?d=(1)#e'>t</a> <a href='mailto:x'>m</a></p>", "[t](http://example.org/c?d=%281%29#e) m"),
        ("<p><img src='/i.png'></p><p>t</p>", "t"),
        ("<p>t <img src='/i.png' alt='A pier'></p>", "t ![A pier](http://example.org/i.png)"),
        ("<p>t <img src='/a)b.png' alt='A'></p>", "t ![A](http://example.org/a%29b.png)"),
        ("<p><a href='#a b\n\\'>t</a> u</p>", "[t](http://example.org/a/b.html#a%20b%0A%5C) u"),
        ("<pre class='language-py'>a\n  b</pre>", "```py\na\n  b\n```"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n\n> b"),
        ("<table><tr><th>A|B</th><th>C</th></tr><tr><td>1</td></tr></table>", "| A\\|B | C |\n| --- | --- |\n| 1 |"),
        ("<p>a</p><hr><p>b</p>", "a\n\n---\n\nb"),
        ("<p># no heading</p><p>1. no item</p>", "\\# no heading\n\n1\\. no item"),
        ("<p>*no* [link](x) &amp;amp;</p>", "\\*no\\* \\[link\\](x) \\&amp;"),
    ],
)
def test_each_element_has_its_form(html: str, expected: str) -> None:
    assert markdown(html) == expected


@given(st.lists(st.text(alphabet="ab `*_#[]()<>|\\-+1.>\n~", min_size=1, max_size=30), min_size=1, max_size=4))
def test_no_text_of_a_page_becomes_markup(texts: list[str]) -> None:
    html = "".join(f"<p>{text.replace('<', '&lt;')}</p>" for text in texts)
    blocks = blocks_of(tree_of(html.encode(), None))
    assert rendered_words(markdown_of(blocks, BASE)) == words_of(plain_text_of(blocks))


HOSTILE = {
    "pieces with one mark": "<p>" + "<b>x</b>" * 100_000,
    "a wide row above many": "<table><tr>" + "<td>x" * 20_000 + "<tr><td>x" * 20_000,
    "deep lists": "<ul>" * 500 + "<li>x" * 40_000,
    "deep quotations": "<blockquote>" * 500 + "<p>x" * 40_000,
    "many marks around": "<b id=1><i id=2>" * 200 + "x<span></span>" * 60_000,
}


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE)
def test_no_page_makes_much_more_markdown_than_it_has(html: str) -> None:
    assert len(markdown(html)) < 12 * len(html)
