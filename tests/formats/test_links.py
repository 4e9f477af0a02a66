"""Links of a page: every element that leads somewhere, relative links, what is not to be followed."""

from __future__ import annotations

import html

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from webfountain.formats.links import MAX_ANCHOR, MAX_LINKS, LinkExtractor, LinkSource, forbids_following
from webfountain.urls import join

PAGE = "https://a.example/docs/guide/page.html?v=2"


def links(body: str, *, url: str = PAGE, nofollow: bool = True, robots_header: str | None = None) -> list[str]:
    extractor = LinkExtractor(nofollow=nofollow)
    return extractor.extract(LexborHTMLParser(body), LinkSource(url, robots_header)).links


@pytest.mark.parametrize(
    "element",
    [
        '<a href="/x">text</a>',
        '<map><area href="/x"></map>',
        '<iframe src="/x"></iframe>',
        '<link rel="next" href="/x">',
        '<link rel="shortlink CANONICAL" href="/x">',
        '<meta http-equiv="Refresh" content="5; URL=/x">',
        "<meta http-equiv=refresh content=\"0;url='/x' and more\">",
        '<meta http-equiv="refresh" content="3;/x">',
        '<noscript><a href="/x">text</a></noscript>',
    ],
)
def test_every_element_that_leads_somewhere_gives_its_link(element: str) -> None:
    assert links(f"<body>{element}") == ["https://a.example/x"]


def test_the_frames_of_a_frameset_are_links() -> None:
    assert links('<frameset><frame src="menu.html"><frame src="/x"></frameset>') == [
        "https://a.example/docs/guide/menu.html",
        "https://a.example/x",
    ]


@pytest.mark.parametrize(
    "element",
    [
        '<link rel="stylesheet" href="/x.css">',
        '<link href="/x">',
        '<img src="/x.png">',
        '<script src="/x.js"></script>',
        '<meta http-equiv="refresh" content="5">',
        '<meta name="description" content="url=/x">',
        "<a>no href</a><a href>empty</a><iframe></iframe>",
        '<a href="javascript:void(0)">x</a><a href="mailto:a@b.c">x</a><a href="tel:1">x</a><a href="data:,x">x</a>',
        '<a href="http://user:pw@a.example/">x</a><a href="http://[">x</a>',
        '<a href="#top">self</a><a href="page.html?v=2">self</a><a href="">self</a>',
    ],
)
def test_nothing_else_is_a_link(element: str) -> None:
    assert links(f"<body>{element}") == []


def test_links_come_in_document_order_and_once() -> None:
    body = (
        '<link rel=canonical href="/c"><a href="b">1</a><iframe src="/a"></iframe><a href="b#x">2</a><a href="/c">3</a>'
    )
    assert links(body) == ["https://a.example/c", "https://a.example/docs/guide/b", "https://a.example/a"]


def test_base_moves_relative_links_and_the_first_usable_one_counts() -> None:
    bases = '<base target=_top><base href="//b.example/z/index.html#f"><base href="/no/">'
    body = bases + '<a href="x">1</a><a href="/y">2</a>'
    assert links(body) == ["https://b.example/z/x", "https://b.example/y"]
    assert links('<base href="mailto:x"><a href="x">1</a>') == ["https://a.example/docs/guide/x"]


def test_with_a_base_a_mere_fragment_leads_to_the_base() -> None:
    assert links('<base href="/z/?q"><a href="#top">1</a>') == ["https://a.example/z/?q"]


def test_nofollow_links_are_left_out_unless_the_setting_says_otherwise() -> None:
    body = '<a rel="external NoFollow" href="/x">1</a><area rel=nofollow href="/y"><a rel=noopener href="/z">3</a>'
    assert links(body) == ["https://a.example/z"]
    assert len(links(body, nofollow=False)) == 3


@pytest.mark.parametrize(
    ("body", "header", "nofollow"),
    [
        ('<a rel=nofollow href="/x">1</a><a href="/y">2</a><a rel=nofollow href="/y">3</a>', None, ["/x"]),
        ('<base href="/z/"><a href="x">1</a><meta name="robots" content="none"><a href="y">', None, ["/z/x", "/z/y"]),
        ('<a href="/x">1</a><iframe src="/y"></iframe>', "nofollow", ["/x", "/y"]),
    ],
)  # fmt: skip
def test_what_is_not_to_be_followed_is_reported_where_that_is_asked_for(
    body: str, header: str | None, nofollow: list[str]
) -> None:
    for asked, wanted in ((True, [f"https://a.example{path}" for path in nofollow]), (False, [])):
        found = LinkExtractor().extract(LexborHTMLParser(body), LinkSource(PAGE, header, nofollow=asked))
        assert (found.links, found.canonical) == (links(body, robots_header=header), None)
        assert list(found.nofollow) == wanted


@pytest.mark.parametrize("name", ["robots", "ROBOTS", "webfountain"])
@pytest.mark.parametrize("content", ["nofollow", "noindex, NOFOLLOW", "none"])
def test_a_page_may_forbid_to_follow_its_links(name: str, content: str) -> None:
    body = f'<meta name="{name}" content="{content}"><a href="/x">1</a>'
    assert links(body) == []
    assert links(body, nofollow=False) == ["https://a.example/x"]


@pytest.mark.parametrize("meta", ['name="robots" content="noindex,follow"', 'name="otherbot" content="nofollow"'])
def test_other_robots_directives_do_not_forbid_to_follow_links(meta: str) -> None:
    assert links(f'<meta {meta}><a href="/x">1</a>') == ["https://a.example/x"]


def test_the_robots_header_forbids_like_the_meta_element() -> None:
    assert links('<a href="/x">1</a>', robots_header="noindex, nofollow") == []
    assert links('<a href="/x">1</a>', robots_header="nofollow", nofollow=False) == ["https://a.example/x"]


@pytest.mark.parametrize(
    ("directives", "forbids"),
    [
        ("nofollow", True),
        ("noindex , None", True),
        ("webfountain: nofollow", True),
        ("otherbot: nofollow", False),
        ("otherbot: noindex, nofollow", False),
        ("otherbot: noindex, webfountain: nofollow", True),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow", True),
        ("max-snippet: 20, max-image-preview: none", False),
        ("nofollows", False),
        ("", False),
    ],
)
def test_a_robots_directive_binds_all_or_the_robot_that_it_names(directives: str, *, forbids: bool) -> None:
    assert forbids_following(directives, "webfountain") is forbids


def test_links_of_a_page_are_bounded() -> None:
    body = "".join(f'<a href="{n}">x</a>' for n in range(MAX_LINKS + 10))
    found = links(body)
    assert len(found) == MAX_LINKS
    assert found[-1].endswith(f"/{MAX_LINKS - 1}")


ORIGINS = st.one_of(
    st.sampled_from(
        ["http://a.example", "http://A.example:080", "https://a.example:443", "http://0x7f.1", "http://h?x"]
    ),
    st.text("ab.A1:@-?%[]", max_size=8).map("http://".__add__),
)
HREFS = st.one_of(
    st.builds("{}/{}".format, ORIGINS, st.text("ab/.#?&=-", max_size=8)),
    st.text("ab01/.-_~", max_size=12),
    st.text("aB/.:?#&=%+ @\\[]~;,2e\t\n", max_size=16),
    st.text(max_size=8),
    st.sampled_from(
        ["http:x", "http:/x", "//b.example", "/./..", "a/..", "..", "a/.%2e/b", "HTTP://B.example/%7e", "?", "/a?b#c"]
    ),
)
BASES = st.sampled_from(
    [PAGE, "https://a.example/", "http://a.example:81/x", "https://a.example/docs/?q=/a/b", "http://[::1]/a/"]
)


@given(st.lists(HREFS, max_size=8), BASES)
@example(["a/.", "a/./b", "a..", "a.", ".a", "a/.."], PAGE)
@example(["http:x", "ab:x", "1:2", "a?b=/../c"], PAGE)
@example(["https://a.example/", "https://a.example//x", "https://a.example/./x", "https://a.example/x?#y"], PAGE)
def test_joining_by_hand_and_from_memory_gives_what_the_parser_gives(hrefs: list[str], url: str) -> None:
    tree = LexborHTMLParser("".join(f'<a href="{html.escape(href)}">x</a>' for href in hrefs))
    written = [node.attributes.get("href") for node in tree.css("a")]
    expected = dict.fromkeys(join(url, href) for href in written if href)
    expected.pop(None, None)
    expected.pop(url, None)
    assert LinkExtractor().extract(tree, LinkSource(url)).links == list(expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<link rel="canonical" href="/docs/page#top">', "https://a.example/docs/page"),
        ('<base href="https://b.example/x/"><link rel="Canonical" href="y">', "https://b.example/x/y"),
        (f'<link rel=canonical href="{PAGE}">', None),
        ("<link rel=canonical>", None),
        ('<link rel=canonical href="mailto:a@b">', None),
        ("<a rel=canonical href=/x>x</a>", None),
    ],
)
def test_a_page_may_name_another_as_its_canonical_form(body: str, expected: str | None) -> None:
    assert LinkExtractor().extract(LexborHTMLParser(body), LinkSource(PAGE)).canonical == expected


@given(st.binary(max_size=300))
def test_any_bytes_have_links_or_none(body: bytes) -> None:
    LinkExtractor().extract(LexborHTMLParser(body), LinkSource(PAGE))


def anchors(body: str) -> dict[str, str]:
    found = LinkExtractor().extract(LexborHTMLParser(body), LinkSource(PAGE, anchors=True))
    return dict(zip(found.links, found.anchors, strict=True))


def test_the_text_of_each_link_is_taken_where_it_is_asked_for() -> None:
    body = """<base href="/docs/"><a href=a> The <b>first</b>
        of them</a> <a href=b rel=nofollow>not followed</a> <a href=c><img src=x alt=y></a> <link rel=next href=d>
        <a href=a#part>again</a> <a href="/docs/a">first</a> <a href="page.html?v=2">other</a>"""
    assert anchors(body) == {
        "https://a.example/docs/a": "The first of them again",
        "https://a.example/docs/c": "",
        "https://a.example/docs/d": "",
        "https://a.example/docs/page.html?v=2": "other",
    }
    assert LinkExtractor().extract(LexborHTMLParser(body), LinkSource(PAGE)).anchors == []


def test_the_texts_of_links_within_links_are_bounded() -> None:
    """Within a table cell a link may stand in a link: the text of the innermost is that of all around it, too."""
    body = "".join(f"<a href=/{number}><table><td>" for number in range(500)) + "word " * 2000
    found = anchors(body)
    assert len(found) == 500
    assert sum(map(len, found.values())) < 20 * MAX_ANCHOR
