"""Readable text: a line for each block, the same words as the text that changes are judged by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.formats.document import text_of
from webfountain.formats.media_type import content_type
from webfountain.formats.page_reading import read_page

URL = "http://example.org/"
HTML = content_type((("content-type", "text/html; charset=utf-8"),))


def lines(html: str) -> list[str]:
    return read_page(html.encode(), HTML, URL).text.split("\n")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1>Title</h1><p>One <b>two</b>\n three</p><p>Four</p>", ["Title", "One two three", "Four"]),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>d", ["a", "b", "c", "d"]),
        ("a<br>b<hr>c", ["a", "b", "c"]),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", ["a b", "c"]),
        ("<div><div><div>x</div></div></div>", ["x"]),
        ("<p>x</p><script>no</script><style>no</style><noscript>no</noscript><p>y</p>", ["x", "y"]),
        (
            "<p>Code:</p><pre>if <span>x</span>:\n    y()\n\nend</pre><p>z",
            ["Code:", "if x:", "    y()", "", "end", "z"],
        ),
        ("", [""]),
        ("a\x1eb\x1fc &#30; &#x1F; d", ["a b c d"]),
    ],
)
def test_each_block_is_a_line_and_preformatted_text_keeps_its_own(html: str, expected: list[str]) -> None:
    assert lines(html) == expected


TAGS = st.sampled_from(["p", "div", "b", "span", "li", "ul", "td", "tr", "table", "h2", "a", "br", "section"])
PIECES = st.one_of(
    st.builds("<{}>".format, TAGS),
    st.builds("</{}>".format, TAGS),
    st.text(alphabet="abc \n<&;é", max_size=8),
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_the_words_are_those_that_changes_are_judged_by(html: str) -> None:
    body = f"<body>{html}".encode()
    assert read_page(body, HTML, URL).text.split() == text_of(body, HTML).text.split()


def test_plain_text_stays_as_it_is() -> None:
    kind = content_type((("content-type", "text/plain"),))
    assert read_page(b"a\n b\n", kind, URL).text == "a\n b\n"


def test_letters_of_utf16_stay_as_they_are() -> None:
    """Half of a letter of UTF-16 may equal a mark."""
    kind = content_type((("content-type", "text/html; charset=utf-16le"),))
    assert read_page("<p>Ğ\u1e1f</p>".encode("utf-16-le"), kind, URL).text == "Ğ\u1e1f"
