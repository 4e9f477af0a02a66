"""Readable text: a line for each block, the same words as the text that changes are judged by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.formats.document import text_of
from webfountain.formats.media_type import content_type
from webfountain.formats.readable_text import readable_document

HTML = content_type((("content-type", "text/html; charset=utf-8"),))


def lines(html: str) -> list[str]:
    return readable_document(html.encode(), HTML).text.split("\n")


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
    assert readable_document(body, HTML).text.split() == text_of(body, HTML).text.split()


def test_plain_text_stays_as_it_is() -> None:
    kind = content_type((("content-type", "text/plain"),))
    assert readable_document(b"a\n b\n", kind).text == "a\n b\n"
