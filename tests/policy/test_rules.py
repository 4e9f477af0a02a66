"""The judge: scope, depth, patterns, traps; one link and a page's links are judged alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.policy.collections import collection_of
from webfountain.policy.rules import REASONS, Judge
from webfountain.urls import canonical, site_of

PATTERNS = "[policies.default]\nallow = ['/docs/', '/blog/']\ndeny = ['\\.zip$', '(?i)/PRIVATE/']\n"


def verdict(judge: Judge, url: str, *, depth: int = 1, source: str = "") -> str | None:
    return judge.judge(url, site_of(url), depth, source=source)


def test_scope_site_keeps_the_seeds_own_sites() -> None:
    judge = Judge(collection_of(seeds=("https://docs.example.org/a", "http://b.example/")), year=2026)
    assert verdict(judge, "https://docs.example.org/x") is None
    assert verdict(judge, "http://b.example/x") is None
    for other in ("http://docs.example.org/x", "https://docs.example.org:8443/", "https://example.org/"):
        assert verdict(judge, other) == "out_of_scope"


def test_scope_domain_keeps_the_seeds_registered_domains() -> None:
    judge = Judge(collection_of(collection='scope = "domain"', seeds=("https://docs.example.co.uk/",)), year=2026)
    assert verdict(judge, "http://www.example.co.uk:8080/x") is None
    assert verdict(judge, "https://other.co.uk/") == "out_of_scope"


def test_scope_any_keeps_all() -> None:
    assert verdict(Judge(collection_of(collection='scope = "any"'), year=2026), "https://elsewhere.example/") is None


def test_what_is_deeper_than_the_limit_is_refused() -> None:
    judge = Judge(collection_of(collection="limits.depth = 3"), year=2026)
    assert verdict(judge, "https://docs.example.org/x", depth=3) is None
    assert verdict(judge, "https://docs.example.org/x", depth=4) == "too_deep"


def test_deny_wins_and_an_allow_list_keeps_what_it_finds() -> None:
    judge = Judge(collection_of(PATTERNS), year=2026)
    assert verdict(judge, "https://docs.example.org/docs/a") is None
    assert verdict(judge, "https://docs.example.org/blog/a") is None
    assert verdict(judge, "https://docs.example.org/docs/a.zip") == "denied"
    assert verdict(judge, "https://docs.example.org/docs/private/a") == "denied"
    assert verdict(judge, "https://docs.example.org/other") == "not_allowed"


def test_a_seed_needs_no_allow_pattern_but_deny_binds_it() -> None:
    judge = Judge(collection_of(PATTERNS), year=2026)
    assert verdict(judge, "https://docs.example.org/", depth=0) is None
    assert verdict(judge, "https://docs.example.org/a.zip", depth=0) == "denied"


def test_long_repeating_and_calendar_urls_are_refused_by_their_own_words() -> None:
    judge = Judge(collection_of("[discovery]\nmax_url_length = 60\nmax_repeated_segments = 2\n"), year=2026)
    start = "https://docs.example.org/"
    assert verdict(judge, start + "x" * 60) == "too_long"
    assert verdict(judge, start + "a/b/a/b/a/b") == "trap_repeated"
    assert verdict(judge, start + "2029/01", source=start + "2028/12") == "trap_calendar"
    assert verdict(judge, start + "2029/01", source=start) is None
    assert verdict(judge, start + "2029/01") is None


def test_calendar_years_count_from_the_present_one() -> None:
    start = "https://docs.example.org/"
    judge = Judge(collection_of("[discovery]\ncalendar_years = 0\n"), year=2026)
    assert verdict(judge, start + "2027/01", source=start + "2026/12") == "trap_calendar"
    assert verdict(Judge(collection_of(), year=2026), start + "2027/01", source=start + "2026/12") is None


PATHS = st.sampled_from(
    [
        "",
        "docs/a",
        "docs/a.zip",
        "other",
        "a/a/a/a/a",
        "docs/b/b/b/b/",
        "docs/2029/01",
        "docs/2028/12",
        "docs/" + "x" * 2100,
    ]
)
HOSTS = st.sampled_from(["https://docs.example.org/", "https://www.example.org/", "http://127.0.0.1/"])
URLS = st.builds(lambda host, path: canonical(host + path), HOSTS, PATHS)


@given(st.lists(URLS, max_size=8), st.integers(1, 22), URLS, st.sampled_from(["site", "domain", "any"]))
def test_a_batch_is_judged_like_its_links_one_by_one(urls: list[str], depth: int, source: str, scope: str) -> None:
    judge = Judge(collection_of(PATTERNS, collection=f'scope = "{scope}"'), year=2026)
    counts: dict[str, int] = {}
    kept = judge.judge_links(urls, depth=depth, source=source, count=counts.__setitem__)
    verdicts = [judge.judge(url, site_of(url), depth, source=source) for url in urls]
    assert kept == [(url, site_of(url)) for url, reason in zip(urls, verdicts, strict=True) if reason is None]
    assert counts == {f"judge/{reason}": verdicts.count(reason) for reason in REASONS if reason in verdicts}
