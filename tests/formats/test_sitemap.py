"""Sitemaps: their forms, their times, their bounds, and what a hostile one may not do."""

from __future__ import annotations

import gzip
import tracemalloc
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.collections import collection_of
from webfountain.formats.sitemap import (
    MAX_SITEMAP_BYTES,
    MAX_SITEMAP_ENTRIES,
    SMALL_SITEMAP_BYTES,
    SitemapFile,
    is_small_sitemap,
    lastmod_of,
    read_sitemap,
)
from webfountain.frontier.pages.sitemap_reader import SitemapContent, SitemapParser
from webfountain.metrics import STATS, Metrics
from webfountain.policy.judge import Judge
from webfountain.records import Fetch, FetchResult
from webfountain.urls import fingerprint

SITE = "https://docs.example.org"
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
TENTH = datetime(2026, 11, 10, tzinfo=UTC).timestamp()


def urlset(*locs: str, lastmod: str = "") -> bytes:
    inner = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return f"<urlset {NS}>{''.join(f'<url><loc>{loc}</loc>{inner}</url>' for loc in locs)}</urlset>".encode()


# ------------------------------------------------------------------------------ the file


def test_a_sitemap_gives_its_urls_with_the_time_of_their_last_change() -> None:
    body = urlset("https://a.example/1", " https://a.example/2?a=1&amp;b=2\n", lastmod="2026-11-10")
    assert read_sitemap(body) == SitemapFile(
        [("https://a.example/1", TENTH), ("https://a.example/2?a=1&b=2", TENTH)], []
    )


def test_an_index_gives_sitemaps() -> None:
    body = f"<?xml version='1.0'?><sitemapindex {NS}><sitemap><loc>/s1.xml</loc></sitemap></sitemapindex>".encode()
    assert read_sitemap(body) == SitemapFile([], ["/s1.xml"])


@pytest.mark.parametrize("prefix", ["", "\n  ", "\ufeff"])
def test_the_text_form_gives_its_lines(prefix: str) -> None:
    body = f"{prefix}https://a.example/1\r\n\r\nhttps://a.example/2\nnonsense\n".encode()
    assert read_sitemap(body).pages == [("https://a.example/1", None), ("https://a.example/2", None)]


@pytest.mark.parametrize(
    "body",
    [
        "<rss><channel><item><title>t</title><link>https://a.example/1</link>"
        "<pubDate>Tue, 10 Nov 2026 00:00:00 GMT</pubDate></item></channel></rss>",
        '<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://a.example/"/><entry>'
        '<link rel="self" href="/no"/><link href="https://a.example/1"/><published>2020-01-01</published><updated>2026-11-10T01:00:00+01:00'
        "</updated></entry></feed>",
        '<rdf:RDF xmlns:rdf="r" xmlns:dc="d"><item><link>https://a.example/1</link><dc:date>2026-11-10</dc:date></item></rdf:RDF>',
    ],
)
def test_feeds_are_sitemaps_too(body: str) -> None:
    assert read_sitemap(body.encode()) == SitemapFile([("https://a.example/1", TENTH)], [])


def test_gzip_is_unpacked_all_members_of_it() -> None:
    body = urlset("https://a.example/1", "https://a.example/2")
    assert read_sitemap(gzip.compress(body)) == read_sitemap(body)
    assert read_sitemap(gzip.compress(body[:50]) + gzip.compress(body[50:])) == read_sitemap(body)


def test_a_sitemap_is_small_by_its_size_when_unpacked_and_by_all_that_follows() -> None:
    small, large = gzip.compress(bytes(SMALL_SITEMAP_BYTES - 1)), gzip.compress(bytes(SMALL_SITEMAP_BYTES + 1))
    assert is_small_sitemap(bytes(SMALL_SITEMAP_BYTES))
    assert is_small_sitemap(small)
    too_large = [bytes(SMALL_SITEMAP_BYTES + 1), large, small + small, small[:-9], small + bytes(SMALL_SITEMAP_BYTES)]
    assert not any(map(is_small_sitemap, too_large))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_an_xml_sitemap_may_be_in_any_usual_encoding(encoding: str) -> None:
    assert read_sitemap(urlset("https://a.example/é").decode().encode(encoding)).pages == [
        ("https://a.example/é", None)
    ]


def test_a_bare_ampersand_is_forgiven() -> None:
    assert read_sitemap(urlset("https://a.example/?a=1&b=2&copy=3")).pages == [
        ("https://a.example/?a=1&b=2&copy=3", None)
    ]
    assert read_sitemap(urlset("<![CDATA[https://a.example/?a=1&b=2]]>")).pages == [
        ("https://a.example/?a=1&b=2", None)
    ]


def test_a_sitemap_without_entries_is_in_order() -> None:
    assert read_sitemap(urlset()) == SitemapFile([], [])


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026", "2026-01-01T00:00:00+00:00"),
        ("2026-11", "2026-11-01T00:00:00+00:00"),
        ("2026-11-10", "2026-11-10T00:00:00+00:00"),
        ("2026-11-10T10:30Z", "2026-11-10T10:30:00+00:00"),
        ("2026-11-10T10:30:15.25+02:00", "2026-11-10T08:30:15.250000+00:00"),
        ("2026-11-10T10:30:15", "2026-11-10T10:30:15+00:00"),
        ("Tue, 10 Nov 2026 10:30:15 +0100", "2026-11-10T09:30:15+00:00"),
    ],
)
def test_times_are_read_as_utc(text: str, utc: str) -> None:
    assert lastmod_of(text) == datetime.fromisoformat(utc).timestamp()


@given(st.text(max_size=30) | st.text("0123456789-:TZ+. ", max_size=30))
def test_any_text_is_a_time_or_none(text: str) -> None:
    assert lastmod_of(text) is None or isinstance(lastmod_of(text), float)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "no_sitemap"),
        (b"not a sitemap", "no_sitemap"),
        (b"<html><body><a href='https://a.example/'>x</a></body></html>", "no_sitemap"),
        (b"<", "broken"),
        (b"\x1f\x8bnonsense", "bad_gzip"),
        (gzip.compress(urlset("https://a.example/"), mtime=0)[:-20], "bad_gzip"),
        (b"<a>" * 100_000, "no_sitemap"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><urlset><url><loc>&a;</loc></url></urlset>', "entities"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><urlset><url><loc>&a;</loc></url></urlset>'.encode("utf-16"), "entities"),
        (
            b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/hostname">]><urlset><url><loc>&f;</loc></url></urlset>',
            "entities",
        ),
    ],
)
def test_what_is_wrong_becomes_a_word(body: bytes, error: str) -> None:
    assert read_sitemap(body).error == error


def test_the_entries_before_a_break_are_kept() -> None:
    assert read_sitemap(urlset("https://a.example/1", "https://a.example/2")[:-30]).pages[0] == (
        "https://a.example/1",
        None,
    )


def test_an_external_document_type_is_not_fetched() -> None:
    body = b'<!DOCTYPE urlset SYSTEM "file:///etc/hostname">' + urlset("https://a.example/1")
    assert read_sitemap(body).pages == [("https://a.example/1", None)]


def test_entries_are_bounded() -> None:
    many = "".join(f"https://a.example/{n}\n" for n in range(MAX_SITEMAP_ENTRIES + 5)).encode()
    found = read_sitemap(many)
    assert (len(found.pages), found.error) == (MAX_SITEMAP_ENTRIES, "too_many")
    assert read_sitemap(b"https://a.example/\n" * MAX_SITEMAP_ENTRIES).error is None


def test_a_decompression_bomb_is_cut_at_the_bound() -> None:
    bomb = gzip.compress(b" " * (MAX_SITEMAP_BYTES + 1000), compresslevel=1)
    tracemalloc.start()
    found = read_sitemap(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.error == "too_large"
    assert peak < 2.2 * MAX_SITEMAP_BYTES


@given(
    st.binary(max_size=200)
    | st.binary(max_size=100).map(lambda body: gzip.compress(body, mtime=0))
    | st.text("<>&;!/[]urlsetloc \"'", max_size=80).map(str.encode)
)
def test_any_bytes_are_read_without_a_traceback(body: bytes) -> None:
    assert isinstance(read_sitemap(body), SitemapFile)


# ---------------------------------------------------------------------------- the shelf


def read(
    body: bytes,
    *,
    status: int | None = 200,
    error: str | None = None,
    at: float = TENTH + 86_400,
    believe_dates: bool = True,
) -> SitemapContent:
    judge = Judge(collection_of("[policies.default]\ndeny = ['/private/']\n"), year=2026)
    shelf = SitemapParser(judge, believe_dates=believe_dates)
    fetch = Fetch(1, "sitemap", f"{SITE}/maps/sitemap.xml", SITE, None)
    return shelf.read(FetchResult(fetch, at, 0.1, status=status, body=body, error=error), site=SITE, at=at)


def test_a_sitemaps_urls_become_links_one_hop_from_the_seeds() -> None:
    reading = read(urlset(f"{SITE}/a#x", "../b", f"{SITE}/a"))
    assert [(link.url, link.depth, link.source) for link in reading.links] == [
        (f"{SITE}/a", 1, ""),
        (f"{SITE}/b", 1, ""),
    ]
    assert reading.links[0].key == fingerprint(f"{SITE}/a")
    assert reading.counts["sitemap/urls"] == 2


def test_they_pass_the_judge_and_the_refused_are_counted() -> None:
    reading = read(urlset("https://elsewhere.example/", f"{SITE}/private/x", "http://[", "mailto:x", f"{SITE}/a"))
    assert [link.url for link in reading.links] == [f"{SITE}/a"]
    assert (reading.counts["sitemap/foreign"], reading.counts["judge/denied"]) == (1, 1)
    assert reading.counts["sitemap/error/bad_url"] == 2


def test_lastmod_is_kept_for_the_sitemaps_own_site_unless_it_lies_in_the_future() -> None:
    assert read(urlset(f"{SITE}/a", lastmod="2026-11-10")).modified == {fingerprint(f"{SITE}/a"): TENTH}
    assert read(urlset(f"{SITE}/a", lastmod="2026-11-12")).modified == {}
    assert read(urlset("https://elsewhere.example/a", lastmod="2026-11-10")).modified == {}
    assert read(urlset(f"{SITE}/a")).modified == {}


def test_dates_that_are_not_believed_are_left_aside_and_nothing_else() -> None:
    body = urlset(f"{SITE}/a", f"{SITE}/b", lastmod="2026-11-10")
    believed, not_believed = read(body), read(body, believe_dates=False)
    assert len(believed.modified) == 2
    assert not_believed.modified == {}
    assert (not_believed.links, not_believed.counts) == (believed.links, believed.counts)


def test_an_index_names_children_by_their_canonical_url() -> None:
    reading = read(b"<sitemapindex><sitemap><loc>s1.xml.gz</loc></sitemap></sitemapindex>")
    assert reading.children == [f"{SITE}/maps/s1.xml.gz"]
    assert reading.links == []


@pytest.mark.parametrize(("status", "error"), [(404, None), (503, None), (None, "timeout")])
def test_a_sitemap_that_does_not_answer_says_nothing_and_is_counted(status: int | None, error: str | None) -> None:
    reading = read(urlset(f"{SITE}/a"), status=status, error=error)
    assert reading.links == []
    assert reading.counts["sitemap/failed"] == 1


def test_every_count_has_a_listed_name() -> None:
    metrics = Metrics()
    for reading in (
        read(b"\x1f\x8b"),
        read(urlset("http://[", "https://b.example/", f"{SITE}/a")),
        read(b"", status=500),
    ):
        for name, many in reading.counts.items():
            metrics.inc(name, many)
    assert len(metrics.snapshot()) == 5
    assert "sitemap/error/*" in STATS


# --------------------------------------------------------------------- whose pages it names


def found_in(body: bytes, *, at: str, site: str) -> tuple[list[str], SitemapContent]:
    """URLs taken from a sitemap that lies at a URL and is named by a site's robots.txt, where any site is in scope."""
    judge = Judge(collection_of(collection='scope = "any"'), year=2026)
    fetched = FetchResult(Fetch(1, "sitemap", at, at[: at.find("/", 8)], None), TENTH, 0.1, 200, body=body)
    read = SitemapParser(judge).read(fetched, site=site, at=TENTH)
    return [link.url for link in read.links], read


def test_a_sitemap_names_no_pages_of_a_stranger() -> None:
    """A stranger's sitemap filled another site's queue with 49,041 URLs."""
    body = urlset(f"{SITE}/own", "https://victim.example/1", "https://victim.example/2")
    links, read = found_in(body, at=f"{SITE}/sitemap.xml", site=SITE)
    assert links == [f"{SITE}/own"]
    assert read.counts["sitemap/foreign"] == 2


def test_a_sitemap_elsewhere_names_pages_of_the_site_whose_robots_txt_names_it() -> None:
    body = urlset(f"{SITE}/1", "https://files.example/2", "https://victim.example/3")
    links, _ = found_in(body, at="https://files.example/docs.xml", site=SITE)
    assert links == [f"{SITE}/1", "https://files.example/2"]


@pytest.mark.parametrize("other", ["http://docs.example.org", "https://www.docs.example.org"])
def test_a_sitemap_names_pages_of_another_form_of_its_site(other: str) -> None:
    links, _ = found_in(urlset(f"{other}/1"), at=f"{SITE}/sitemap.xml", site=SITE)
    assert links == [f"{other}/1"]
