"""Sitemaps and feeds that mean harm: bounded memory and time whatever they hold, and what can be read is read.

Each is read by the sandbox's process, which is ended at 256 MB and 2 s of CPU time; that it was not is the bound.
"""

from __future__ import annotations

import gzip
import resource
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.formats.markup import MEGABYTES, packed
from webfountain.formats.document import text_of
from webfountain.formats.links import LinkExtractor
from webfountain.formats.media_type import ContentType
from webfountain.formats.sitemap import SitemapFile, read_sitemap
from webfountain.sandbox.reader import FencedReader

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST = b"<urlset><url><loc>http://a.example/1</loc></url>"
GOOD: list[tuple[str, float | None]] = [("http://a.example/1", None)]


PARTS = {
    "ampersands": b"&",
    "ampersands in an entry": b"&amp;&x",
    "empty elements": b"<a/>",
    "empty entries": b"<url/>",
    "comments": b"<!---->",
    "instructions": b"<?a?>",
    "text": b"lorem ipsum ",
    "one url": b"x",
    "depth": b"<a>",
    "attributes": b"<a b='c' d='e'/>",
    "character references": b"&#55357;&#56832;",
    "cdata": b"<![CDATA[x]]>",
}
STARTS = {"one url": FIRST + b"<url><loc>http://a.example/", "ampersands in an entry": FIRST + b"<url><loc>"}


@pytest.fixture(scope="module")
def reader() -> Iterator[FencedReader]:
    reader = FencedReader(LinkExtractor())
    yield reader
    reader.close()


@pytest.mark.parametrize("name", sorted(PARTS))
def test_50_mb_of_anything_in_a_small_gzip_are_read_within_bounds(reader: FencedReader, name: str) -> None:
    found = reader.read_sitemap(packed(STARTS.get(name, FIRST), PARTS[name]))
    assert isinstance(found, SitemapFile)
    assert found.pages == GOOD


def test_8_mb_of_empty_gzip_members_are_read_within_bounds(reader: FencedReader) -> None:
    members = gzip.compress(FIRST + b"</urlset>") + gzip.compress(b"") * 400_000
    assert reader.read_sitemap(members) == SitemapFile(GOOD, [], "bad_gzip")


def test_an_emoji_that_is_written_as_two_surrogates_is_an_emoji() -> None:
    feed = b"<rss><channel><item><title>&#55357;&#56832;</title><link>http://a.example/&#xD83D;&#xDE00;</link></item>"
    assert read_sitemap(feed + b"</channel></rss>").pages == [("http://a.example/\U0001f600", None)]
    page = text_of(b"<x><title>&#55357;&#56832;</title>&#55357; alone &#56832;</x>", ContentType("text/xml", None))
    assert (page.title, page.text) == ("\U0001f600", "\U0001f600 \ufffd alone \ufffd")


def test_what_crosses_a_piece_is_read_as_it_stands() -> None:
    for size in range(65_500, 65_560):
        url = "http://a.example/?a=1&amp;b=&#55357;&#56832;"
        body = f"<urlset><!--{'x' * (size - 80)}--><url><loc>{url}</loc></url></urlset>".encode()
        assert read_sitemap(body).pages == [("http://a.example/?a=1&b=\U0001f600", None)]


@given(st.binary(max_size=400) | st.lists(st.sampled_from([*PARTS.values(), FIRST, b"</loc>", b"]]>"])).map(b"".join))
def test_no_bytes_raise(body: bytes) -> None:
    read_sitemap(body)
    read_sitemap(gzip.compress(body))
    text_of(body, ContentType("application/xml", None))


@pytest.mark.soak
def test_no_mixture_in_a_feed_takes_a_gigabyte() -> None:
    reader = FencedReader(LinkExtractor())

    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.sampled_from([*PARTS.values(), b"<url><loc>", b"&x", b"</loc>", b"'"]), min_size=1, max_size=5),
        st.integers(1, MEGABYTES),
    )
    def read(parts: list[bytes], megabytes: int) -> None:
        found = reader.read_sitemap(packed(FIRST, b"".join(parts), megabytes=megabytes))
        assert found in ("parse-time", "parse-memory") or isinstance(found, SitemapFile)

    try:
        read()
    finally:
        reader.close()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 400_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_000_000
