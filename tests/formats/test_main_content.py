"""The main content of a page, held to pages that were labelled by hand."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING

import pytest

from tests.formats.card_pages import card_pages
from tests.formats.labelled_pages import LabelledPage, labelled_pages, words_of
from webfountain.formats.document import tree_of
from webfountain.formats.main_content import main_blocks
from webfountain.formats.markdown import plain_text_of
from webfountain.formats.page_blocks import blocks_of

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGES = labelled_pages()


def main_text(html: str) -> str:
    return plain_text_of(main_blocks(blocks_of(tree_of(html.encode(), None))))


def f1(found: Sequence[str], truth: Sequence[str]) -> float:
    """Harmonic mean of precision and recall, by words with their counts."""
    common = sum((Counter(found) & Counter(truth)).values())
    return 2 * common / (len(found) + len(truth))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_main_content_of_a_labelled_page_is_found(page: LabelledPage) -> None:
    assert f1(words_of(main_text(page.html)), page.main) > 0.94


def test_over_all_labelled_pages_it_is_found_nearly_whole() -> None:
    assert fmean(f1(words_of(main_text(page.html)), page.main) for page in PAGES) > 0.99


def test_linked_cards_are_teasers_below_an_article_and_content_where_they_are_most_of_the_page() -> None:
    assert fmean(f1(words_of(main_text(page.html)), page.main) for page in card_pages()) > 0.97


def test_a_paragraph_that_is_a_link_stays_among_others() -> None:
    link = "A whole sentence that is one link, because the author says there where the report is found. Really."
    html = f"<main><p>{'A text. ' * 30}</p><p><a href=/r>{link}</a></p><p>The end.</p></main>"
    assert link in main_text(html)


def test_code_is_kept_byte_for_byte() -> None:
    code = "def f(x):\n\treturn  x  # twice\n\n    <b>"
    html = f"<main><p>See</p><pre>{code.replace('<', '&lt;')}</pre></main>"
    assert main_text(html) == f"See\n{code}"


def test_a_page_that_is_all_navigation_keeps_its_text() -> None:
    assert main_text("<nav><a href='/a'>One</a> <a href='/b'>Two</a></nav>") == "One Two"


def test_a_wrapper_that_is_named_like_a_sidebar_is_no_boilerplate() -> None:
    text = "A long text. " * 20
    assert main_text(f"<body class='x'><div class='has-sidebar sidebar'><p>{text}</p></div></body>").startswith(
        "A long"
    )


def test_hidden_elements_are_left_out() -> None:
    assert main_text("<p>seen</p><p hidden>a</p><p style='display: none'>b</p>") == "seen"


def test_a_heading_without_content_below_it_is_left_out() -> None:
    html = "<main><h1>T</h1><p>Text here.</p><h2>Empty</h2><h2>Full</h2><h3>Inner</h3><p>More text.</p></main>"
    assert main_text(html) == "T\nText here.\nFull\nInner\nMore text."
