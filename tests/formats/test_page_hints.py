"""Hints: what a copy lacks that people see. A page with a text of its own has none."""

from __future__ import annotations

import time

import pytest

from webfountain.formats.document import text_of
from webfountain.formats.media_type import content_type
from webfountain.formats.page_hints import hint_of_page, hint_of_redirect

HTML = content_type((("content-type", "text/html"),))
LONG = "A page that has much to say says it in many words. " * 20


def hint(html: str) -> str | None:
    body = html.encode()
    return hint_of_page(body, text_of(body, HTML).text)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<div id='root'></div><script src=/a.js></script>", "javascript"),
        ('<body><div id="__next" class="x"> </div><script>1</script>', "javascript"),
        ("<app-root></app-root><script src=main.js></script>", "javascript"),
        (
            "<noscript>You need to enable JavaScript to run this app.</noscript><script>x</script><p>Loading",
            "javascript",
        ),
        ("<div id='root'></div>", None),
        (f"<div id='root'></div><script></script><p>{LONG}", None),
        ("<p>A short page.</p><script>count()</script>", None),
        ("<form><input name=u><input type='password' name=p></form>", "login"),
        ("<FORM><INPUT NAME=P TYPE=PASSWORD></FORM>", "login"),
        (f"<form><input type=password></form><p>{LONG}", None),
        ("<p>We value your privacy</p><form action='/consent?x'><button>Accept all</button></form>", "consent"),
        ("<p>We value your privacy, and that is all.</p>", None),
        (f"<div class=banner>Accept cookies<form action=/consent></form></div><p>{LONG}", None),
        ("", None),
    ],
)
def test_a_page_has_a_hint_where_little_of_it_can_be_read(html: str, expected: str | None) -> None:
    assert hint(html) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("https://a.org/login?next=/x", "login"),
        ("https://a.org/accounts/sign-in/", "login"),
        ("https://sso.a.org/", "login"),
        ("https://consent.a.org/m?continue=x", "consent"),
        ("https://a.org/cookiewall", "consent"),
        ("https://a.org/blog/login-is-hard", None),
        ("https://a.org/en/", None),
    ],
)
def test_a_redirect_to_a_log_in_is_one(target: str, expected: str | None) -> None:
    assert hint_of_redirect(target) == expected


@pytest.mark.parametrize("piece", ["<noscript>", "<input type", "<div id=root ", "<form consent", "javascript"])
def test_hostile_bodies_cost_little(piece: str) -> None:
    body = (piece * 100_000).encode()
    began = time.process_time()
    hint_of_page(body, "short")
    assert time.process_time() - began < 2.0
