"""robots.txt: what a status means, what rules allow, and that no bytes can break the reading."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from webfountain.formats.robots import (
    MAX_ROBOTS_BYTES,
    MAX_ROBOTS_SITEMAPS,
    MAX_RULES,
    MAX_WILDCARDS,
    RobotsRules,
    binding_part,
    deciding_line,
    robots_verdict,
)

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
    assert not allowed(body, f"/x/{MAX_WILDCARDS - 1}")
    assert allowed(body, "/x/none")
    assert not allowed(body, "/late/a.pdf")
    assert not allowed(body, "/late/a.html")
    assert not allowed(body, "/plain/a")
    assert allowed(body, "/other")


LINES = st.sampled_from(
    ["User-agent: *", "user-agent:bot", "Disallow: /a*$", "Allow:", "Crawl-delay: 1", "Sitemap: x", "%", ":"]
)


AGENTS = st.sampled_from(["*", "bot", "BOT/2.0", "mybot", "my-bot", "b", "bo*t", "other", "other bot", ""])
RULES = st.sampled_from(
    ["Disallow: /", "Allow: /a", "disallow /a/b", "Disallow:", "Dissalow: /*b$", "Allow: /a/*/c", "Sitemap: /s", "x: y"]
)
NAMES_ALONE = st.sampled_from(
    ["Disallow", "user agent", "request-rate 1/5", "visit time", "crawl-delay", "sitemap", "Disallow /b:c"]
)
GROUPS = st.lists(
    AGENTS.map("User-agent: {}".format)
    | AGENTS.map("user agent {}".format)
    | RULES
    | NAMES_ALONE
    | st.sampled_from(["", "# c", "Host: h", "Crawl-delay: 3", "crawl-delay: x", "words"]),
    max_size=14,
)


@given(GROUPS, st.sampled_from(["bot", "my-bot", "Mozilla/5.0 (compatible; bot/1.0)", "none"]))
def test_what_is_taken_out_of_a_file_binds_us_as_the_whole_of_it_does(lines: list[str], robot: str) -> None:
    """Protego, which reads the result, reads the whole, too; but for what is said of leading product tokens."""
    body = "\n".join(lines)
    taken = binding_part(body.encode(), robot)
    whole = Protego.parse(body.replace("/2.0", "").replace("other bot", "other"))
    rules = RobotsRules.parse(taken, robot)
    for path in ("/", "/a", "/a/b", "/a/x/c", "/c"):
        assert RobotsRules.parse(body.encode(), robot).allowed(SITE + path) == whole.can_fetch(SITE + path, robot)
        assert rules.allowed(SITE + path) == whole.can_fetch(SITE + path, robot)
    assert rules.crawl_delay == whole.crawl_delay(robot)
    assert set(rules.sitemaps) == set(whole.sitemaps)


HALF = MAX_ROBOTS_BYTES // 2


@pytest.mark.parametrize(
    "body",
    [
        b"".join(b"User-agent: b%d\n" % n for n in range(15_000)) + b"User-agent: *\n" + b"Disallow: /a\n" * 19_000,
        b"User-agent: *\n" + b"".join(b"Disallow: /%x\n" % n for n in range(30_000)),
        b"User-agent: *\n" + b"".join(b"Disallow: /%x/*a$\n" % n for n in range(25_000)),
        b"User-agent: *\nDisallow: /" + b"a*" * HALF,
        b"User-agent: *\n" + b"".join(b"Sitemap: /%x\n" % n for n in range(30_000)),
    ],
    ids=["agents", "rules", "ends", "asterisks", "sitemaps"],
)
def test_what_is_kept_of_500_kib_is_short(body: bytes) -> None:
    """What it costs: `tests/benchmarks/bench_robots.py`."""
    assert binding_part(body, "bot").count(b"\n") < MAX_RULES + MAX_ROBOTS_SITEMAPS + 500
    assert RobotsRules.parse(body, "bot").allowed(SITE + "/zzz") in (True, False)


def test_rules_beyond_the_bound_refuse_their_folders_and_nothing_is_allowed_for_its_own_sake() -> None:
    many = "".join(f"Disallow: /x/{number}\n" for number in range(MAX_RULES - 1))
    body = f"User-agent: *\nAllow: /late/open\n{many}Disallow: /late/a\n"
    assert allowed(body, "/x/none")
    assert not allowed(body, "/x/17")
    assert not allowed(body, "/late/open")
    assert allowed(body, "/other")
    folders = "".join(f"Disallow: /{number}/a\n" for number in range(2 * MAX_RULES))
    assert not allowed("User-agent: *\n" + folders, "/other")


@given(st.binary(max_size=200) | st.lists(LINES | st.text(max_size=20)).map(lambda lines: "\r\n".join(lines).encode()))
def test_any_bytes_are_rules(body: bytes) -> None:
    rules = RobotsRules.parse(body, "bot")
    assert rules.allowed(f"{SITE}/a") in (True, False)
    assert rules.crawl_delay is None or rules.crawl_delay >= 0


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/x", None),
        ("/private/x", (6, "Disallow: /private/")),
        ("/private/open/x", (7, "allow: /private/open # but this")),
        ("/a.PDF", None),
        ("/a.pdf", (8, "Disallow: /*.pdf$")),
        ("/a.pdf?x", None),
        ("/caf%C3%A9/x", (9, "Disallow: /café")),
        ("/only-theirs", None),
    ],
)
def test_the_line_that_decides_is_the_longest_of_our_group_that_is_for_the_url(
    path: str, line: tuple[int, str] | None
) -> None:
    body = (
        "User-agent: other\nDisallow: /only-theirs\n\n# ours\nUser-agent: webfountain\nDisallow: /private/\n"
        "allow: /private/open # but this\nDisallow: /*.pdf$\nDisallow: /café\n\nUser-agent: *\nDisallow: /\n"
    )
    assert deciding_line(body.encode(), "webfountain", SITE + path) == line
    assert allowed(body, path) == (line is None or line[1].startswith("allow"))


@given(
    st.lists(
        st.tuples(st.sampled_from(["Allow", "Disallow"]), st.sampled_from(["/", "/a", "/a/b", "/*b", "/a*b$", "/*/"])),
        max_size=6,
    ),
    st.sampled_from(["/", "/a", "/ab", "/a/b", "/a/b/c", "/c/b"]),
)
def test_the_line_that_decides_allows_where_the_rules_allow(rules: list[tuple[str, str]], path: str) -> None:
    body = "User-agent: *\n" + "".join(f"{word}: {rule}\n" for word, rule in rules)
    line = deciding_line(body.encode(), "webfountain", SITE + path)
    assert allowed(body, path) == (line is None or line.text.startswith("Allow"))
