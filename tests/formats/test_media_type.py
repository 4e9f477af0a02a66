"""A Content-Type is read in any spelling, and as far as it makes sense."""

from __future__ import annotations

import pytest

from webfountain.formats.media_type import content_type


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text/html", ("text/html", None)),
        (" Text/HTML ; Charset='Latin-1'", ("text/html", "Latin-1")),
        ("text/html; boundary=x; charset=\"utf-8\"", ("text/html", "utf-8")),
        ("text/html; charset=", ("text/html", None)),
    ],
)  # fmt: skip
def test_a_content_type_is_read_in_any_spelling(value: str, expected: tuple[str, str | None]) -> None:
    assert content_type([("content-type", value)]) == expected


def test_no_content_type_is_none() -> None:
    assert content_type([]) == ("", None)


@pytest.mark.parametrize(
    ("kind", "is_html", "is_xml"),
    [
        ("text/html", True, False),
        ("application/xhtml+xml", True, False),
        ("", True, False),
        ("application/rss+xml", False, True),
        ("text/xml", False, True),
        ("text/plain", False, False),
    ],
)
def test_a_type_says_who_reads_the_body(kind: str, is_html: bool, is_xml: bool) -> None:
    found = content_type([("Content-Type", kind)])
    assert (found.is_html, found.is_xml) == (is_html, is_xml)
