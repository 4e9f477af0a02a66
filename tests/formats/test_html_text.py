"""What of a page is its text: body's text nodes without the invisible elements, at most a megabyte."""

from __future__ import annotations

from webfountain.formats.html_text import title_of, tree_of, visible_text

PAGE = b"""<html><head><title> A
 title </title><style>p{}</style></head><body>one<p>two <b>three</b></p><!-- no --><script>no()</script>
<template><p>no</p></template><noscript><a href="/kept">no</a></noscript><style>no</style>&lt;four&gt;</body></html>"""


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
