"""What a body says by its type: HTML, XML, plain text; its text is at most a megabyte and always encodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.formats.charset import decode
from webfountain.formats.document import MAX_TEXT_BYTES, Document, title_of, tree_of, visible_text
from webfountain.formats.document import text_of as document_of
from webfountain.formats.media_type import ContentType

PAGE = b"""<html><head><title> A
 title </title><style>p{}</style></head><body>one<p>two <b>three</b></p><!-- no --><script>no()</script>
<template><p>no</p></template><noscript><a href="/kept">no</a></noscript><style>no</style>&lt;four&gt;</body></html>"""


def text_of(body: bytes, kind: str, charset: str | None) -> Document:
    return document_of(body, ContentType(kind, charset))


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        (b"caf\xc3\xa9", None, "café"),
        (b"caf\xe9", "iso-8859-1", "café"),
        (b"\x93q\x94", "latin1", "“q”"),
        (b"<meta charset=windows-1251>\xcf", None, "П"),
        (b"\xff\xfeh\0i\0", None, "hi"),
        (b"\xef\xbb\xbfhi", "latin1", "hi"),
        (b"caf\xe9 ok", "utf-8", "caf\ufffd ok"),
        (b"hi", "no-such-charset", "hi"),
        (b"", None, ""),
        (b"<frameset><frame src=a></frameset>", None, ""),
    ],
)
def test_a_body_is_read_as_a_browser_reads_it(body: bytes, charset: str | None, text: str) -> None:
    assert text_of(body, "text/html", charset).text.strip() == text


def test_xml_gives_its_character_data_and_first_title() -> None:
    feed = b'<?xml version="1.0"?><f xmlns="http://a/"><title>T  t</title><e>x<![CDATA[<y>]]></e><!-- no --></f>'
    assert text_of(feed, "application/atom+xml", None) == Document("T t", "T  t x<y>")


@pytest.mark.parametrize("body", [b"", b"no xml at all", b"\0\1\2"])
def test_what_is_no_xml_is_read_as_plain_text(body: bytes) -> None:
    assert text_of(body, "application/xml", None) == Document(None, body.decode())


def test_broken_xml_is_read_as_far_as_it_goes() -> None:
    assert text_of(b"<a>one<b>two", "text/xml", "utf-8").text == "one two"


def test_no_entity_brings_a_file_or_more_than_a_text_may_hold() -> None:
    file = b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><x>safe&f;</x>'
    assert text_of(file, "text/xml", None).text == "safe"
    laughs = b"".join(b'<!ENTITY a%d "%s">' % (i + 1, b"&a%d;" % i * 10) for i in range(9))
    bomb = b'<!DOCTYPE x [<!ENTITY a0 "ha">' + laughs + b"]><x>&a9;</x>"
    assert set(text_of(bomb, "text/xml", None).text) <= {"h", "a"}


def test_plain_text_is_itself() -> None:
    assert text_of(b"a <b> c", "text/plain", None) == Document(None, "a <b> c")
    assert decode(b"\xe9", "latin1") == "é"


@pytest.mark.parametrize("content_type", ["text/html", "text/plain", "application/xml"])
def test_a_text_is_cut_at_a_megabyte_between_two_characters(content_type: str) -> None:
    body = b"<x>" + ("é" * 600_001).encode()
    text = text_of(body, content_type, "utf-8").text
    assert MAX_TEXT_BYTES - 2 <= len(text.encode()) <= MAX_TEXT_BYTES
    assert set(text) <= set("<x>é")


@given(
    st.binary(max_size=300), st.sampled_from(["text/html", "text/plain", "text/xml"]), st.none() | st.text(max_size=9)
)
def test_any_bytes_have_a_text_that_encodes(body: bytes, content_type: str, charset: str | None) -> None:
    text_of(body, content_type, charset).text.encode("utf-8")


def test_invisible_elements_comments_and_the_title_are_no_text() -> None:
    tree = tree_of(PAGE, "utf-8")
    assert title_of(tree) == "A title"
    assert visible_text(tree).split() == ["one", "two", "three", "<four>"]


def test_text_nodes_are_joined_with_a_blank() -> None:
    assert visible_text(tree_of(b"<body>a<b>b</b>c", None)) == "a b c"


def test_links_taken_before_the_text_include_those_in_noscript() -> None:
    tree = tree_of(PAGE, "utf-8")
    assert [node.attributes["href"] for node in tree.css("a[href]")] == ["/kept"]
    visible_text(tree)
    assert tree.css("a[href]") == []


def test_a_page_without_or_with_an_empty_title_has_none() -> None:
    assert title_of(tree_of(b"<p>x", None)) is None
    assert title_of(tree_of(b"<title> </title>", None)) is None
