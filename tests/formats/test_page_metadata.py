"""Metadata of a page: each value with its source, the most trusted first, and never an error."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webfountain.formats.document import tree_of
from webfountain.formats.page_metadata import PageMetadata, metadata_of

URL = "https://example.org/news/1"


def metadata(html: str) -> PageMetadata:
    return metadata_of(tree_of(html.encode(), None), URL)


def test_json_ld_counts_more_than_meta_elements() -> None:
    found = metadata(
        """<html lang="en"><title>T</title><link rel="canonical" href="/news/one">
        <meta name="author" content="M. Eta"><meta name="description" content="D  d">
        <script type="application/ld+json">{"@graph": [{"@type": "Organization", "name": "Org"},
        {"@type": "NewsArticle", "headline": "H", "author": [{"name": "J. Son"}],
        "datePublished": "2026-05-03T10:00:00Z"}]}
        </script>"""
    )
    assert (found.title, found.author, found.description, found.kind) == ("H", "J. Son", "D d", "NewsArticle")
    assert found.published == 1_777_802_400.0
    assert found.canonical == "https://example.org/news/one"
    assert found.language == "en"
    assert found.sources["author"] == "json-ld"
    assert found.sources["description"] == "meta"


def test_open_graph_and_time_elements_are_read() -> None:
    found = metadata(
        """<meta property="og:title" content="O"><meta property="article:modified_time" content="2026-05-04">
        <time datetime="2026-05-01">1 May</time>"""
    )
    assert (found.title, found.sources["title"]) == ("O", "opengraph")
    assert found.modified == 1_777_852_800.0
    assert (found.published, found.sources["published"]) == (1_777_593_600.0, "time")


def test_what_is_no_date_is_left_out() -> None:
    assert metadata('<meta name="date" content="yesterday">').published is None


@given(st.text(max_size=200))
def test_broken_json_is_no_error(text: str) -> None:
    metadata(f'<title>T</title><script type="application/ld+json">{text}</script>')
