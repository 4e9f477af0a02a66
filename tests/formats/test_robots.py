"""robots.txt: what a status means, what rules allow, and that no bytes can break the reading."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.formats.robots import MAX_ROBOTS_BYTES, MAX_WILDCARDS, RobotsRules, robots_verdict

if TYPE_CHECKING:
    from types import FrameType

SITE = "https://a.example"


def allowed(body: str | bytes, path: str, *, robot: str = "webfountain") -> bool:
    return RobotsRules.parse(body.encode() if isinstance(body, str) else body, robot).allowed(SITE + path)


@pytest.mark.parametrize(
    ("verdict", "statuses"),
    [("rules", (200, 204)), ("allow", (301, 304, 400, 401, 403, 404, 410)), ("refuse", (429, 500, 503, 599))],
)
def test_a_status_means_what_the_standard_says_and_429_that_the_site_is_busy(
    verdict: str, statuses: tuple[int, ...]
) -> None:
    assert {robots_verdict(status, None) for status in statuses} == {verdict}


@pytest.mark.parametrize("error", ["dns", "connect", "timeout", "too-slow", "bad-response"])
def test_no_answer_refuses(error: str) -> None:
    assert robots_verdict(None, error) == "refuse"


def test_the_group_that_names_us_is_ours_alone() -> None:
    body = "User-agent: *\nDisallow: /\n\nUser-agent: WebFountain\nDisallow: /private/\n"
    assert allowed(body, "/x")
    assert not allowed(body, "/private/x")
    assert not allowed(body, "/x", robot="otherbot")


def test_groups_that_name_us_twice_are_joined() -> None:
    body = "User-agent: webfountain\nDisallow: /a\n\nUser-agent: webfountain\nDisallow: /b\n"
    assert not allowed(body, "/a")
    assert not allowed(body, "/b")


@pytest.mark.parametrize(
    "named", ["mine/2.0", "mine bot", "Mine/2.0 (+https://example.org)", "mine\t# we", "mine", "mine*", "MINE / 1"]
)
@pytest.mark.parametrize("written", ["User-agent: {}", "user-agent:{}", "  User-Agent :  {}", "useragent {}"])
def test_the_leading_product_token_of_a_group_names_us(written: str, named: str) -> None:
    body = f"User-agent: other\nDisallow: /a\n\r\n{written.format(named)}\r\nDisallow: /b\n"
    assert not allowed(body, "/b", robot="mine")
    assert allowed(body, "/a", robot="mine")
    assert allowed(body, "/b", robot="yours")


def test_the_longest_match_wins_and_allow_wins_a_tie() -> None:
    body = "User-agent: *\nDisallow: /docs/\nAllow: /docs/public\nDisallow: /same\nAllow: /same\n"
    assert not allowed(body, "/docs/x")
    assert allowed(body, "/docs/public/x")
    assert allowed(body, "/same")


def test_wildcards_and_the_end_mark_are_understood() -> None:
    body = "User-agent: *\nDisallow: /*.pdf$\nDisallow: /*/print\n"
    assert not allowed(body, "/a/b.pdf")
    assert allowed(body, "/a/b.pdf?x")
    assert not allowed(body, "/a/print")


def test_escaped_and_plain_characters_are_the_same() -> None:
    assert not allowed("User-agent: *\nDisallow: /caf%C3%A9\n", "/caf%c3%a9")
    assert not allowed("User-agent: *\nDisallow: /café\n", "/caf%C3%A9")


def test_robots_txt_itself_and_a_site_without_rules_are_allowed() -> None:
    assert allowed("User-agent: *\nDisallow: /\n", "/robots.txt")
    assert allowed("", "/x")
    assert allowed("<html>no robots.txt here</html>", "/x")
    assert allowed("User-agent: *\nDisallow:\n", "/x")


def test_crawl_delay_and_sitemaps_are_read() -> None:
    rules = RobotsRules.parse(
        b"Sitemap: https://a.example/s.xml\nUser-agent: *\nCrawl-delay: 2.5\nSitemap: /t.xml\nSitemap: /t.xml\n", "bot"
    )
    assert rules.crawl_delay == 2.5
    assert list(rules.sitemaps) == ["https://a.example/s.xml", "/t.xml"]


@pytest.mark.parametrize("delay", ["nan", "inf", "-1", "soon", "1e400"])
def test_a_nonsense_crawl_delay_is_none(delay: str) -> None:
    assert RobotsRules.parse(f"User-agent: *\nCrawl-delay: {delay}\n".encode(), "bot").crawl_delay is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_rules_are_read_in_any_usual_encoding(encoding: str) -> None:
    assert not allowed("# Bücher\nUser-agent: *\nDisallow: /x\n".encode(encoding), "/x")


def test_the_first_500_kib_are_read_and_a_line_cut_in_two_is_dropped() -> None:
    head = b"User-agent: *\nDisallow: /first\n"
    filling = b"#" * (MAX_ROBOTS_BYTES - len(head) - len(b"\nDisallow: /")) + b"\n"
    body = head + filling + b"Disallow: /private\nDisallow: /last\n"
    assert body[:MAX_ROBOTS_BYTES].endswith(b"\nDisallow: /")
    assert not allowed(body, "/first")
    assert allowed(body, "/other")
    assert allowed(body, "/last")
    assert allowed(body[:MAX_ROBOTS_BYTES], "/other")


def searches(rules: RobotsRules, url: str) -> int:
    """How many times a text is searched for another to judge a URL."""
    found = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal found
        found += event == "c_call" and getattr(argument, "__name__", "") == "find"

    sys.setprofile(count)
    try:
        rules.allowed(url)
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(
    "rule", ["Disallow: /*a{}", "Disallow: /*a*a*a*a{}", "Allow: /*a{}*b*c$", "disallow :/*" + "a*" * 200 + "{}"]
)
def test_rules_with_ever_so_many_wildcards_cost_a_url_a_bounded_number_of_searches(rule: str) -> None:
    body = "User-agent: *\n" + "\n".join(rule.format(number) for number in range(60_000))
    rules = RobotsRules.parse(body.encode(), "bot")
    assert searches(rules, f"{SITE}/{'a' * 2000}") <= 2 * MAX_WILDCARDS


def test_rules_beyond_the_bound_of_wildcards_refuse_more_and_never_less() -> None:
    many = "".join(f"Disallow: /x/*{number}\n" for number in range(MAX_WILDCARDS))
    body = f"User-agent: *\n{many}Disallow: /late/*.pdf\nAllow: /late/*.html\nDisallow: /plain/\n"
    assert not allowed(body, "/x/1999")
    assert allowed(body, "/x/none")
    assert not allowed(body, "/late/a.pdf")
    assert not allowed(body, "/late/a.html")
    assert not allowed(body, "/plain/a")
    assert allowed(body, "/other")


LINES = st.sampled_from(
    ["User-agent: *", "user-agent:bot", "Disallow: /a*$", "Allow:", "Crawl-delay: 1", "Sitemap: x", "%", ":"]
)


@given(st.binary(max_size=200) | st.lists(LINES | st.text(max_size=20)).map(lambda lines: "\r\n".join(lines).encode()))
def test_any_bytes_are_rules(body: bytes) -> None:
    rules = RobotsRules.parse(body, "bot")
    assert rules.allowed(f"{SITE}/a") in (True, False)
    assert rules.crawl_delay is None or rules.crawl_delay >= 0
