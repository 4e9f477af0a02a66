"""The judge: scope, depth, patterns, traps; one link and a page's links are judged alike."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.collections import FILE, collection_of
from webfountain.policy.collection_file import parse_collection
from webfountain.policy.judge import Judge, Origin
from webfountain.policy.provenance import Provenance
from webfountain.policy.switches import PageFacts
from webfountain.policy.url_rules import REASONS
from webfountain.urls import canonical, fingerprint

PATTERNS = "[policies.default]\nallow = ['/docs/', '/blog/']\ndeny = ['\\.zip$', '(?i)/PRIVATE/']\n"


def verdict(judge: Judge, url: str, *, depth: int = 1, source: str = "") -> str | None:
    [found] = judge.judge([url], Origin("link" if source else "queued", depth, "default", source=source))
    return found.reason


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
        "docs/?b=1&b=1&b=1&b=1&b=1",
        "docs/?a=1&b=2&c=3&d=4&e=5",
    ]
)
HOSTS = st.sampled_from(["https://docs.example.org/", "https://www.example.org/", "http://127.0.0.1/"])
URLS = st.builds(lambda host, path: canonical(host + path), HOSTS, PATHS)


@given(st.lists(URLS, max_size=8), st.integers(0, 22), URLS, st.sampled_from(["site", "domain", "any"]))
def test_a_batch_is_judged_like_its_links_one_by_one(urls: list[str], depth: int, source: str, scope: str) -> None:
    judge = Judge(collection_of(PATTERNS, collection=f'scope = "{scope}"'), year=2026)
    origin = Origin("link", depth, "default", 0.5, source)
    assert judge.judge(urls, origin) == [judge.judge([url], origin)[0] for url in urls]
    assert {found.reason for found in judge.judge(urls, origin)} <= {None, *REASONS}


EVERYTHING = "[policies.default]\nallow = ['^']\n"


@given(st.lists(URLS, max_size=8), URLS | st.just(""), st.sampled_from(["site", "any"]))
def test_a_pattern_that_allows_all_changes_no_verdict(urls: list[str], source: str, scope: str) -> None:
    """Without patterns all URLs are looked at together, with one each by itself."""
    plain, patterned = (
        Judge(collection_of(policies, collection=f'scope = "{scope}"'), year=2026) for policies in ("", EVERYTHING)
    )
    origin = Origin("link", 1, "default", 0.5, source)
    assert plain.judge(urls, origin) == patterned.judge(urls, origin)


SPREADING = """
[policies.favor]
dampening = 0.85
spread = "{spread}"
otherwise = "other"
allow = ['/docs/']
[policies.other]
trust = 0.25
deny = ['/private/']
"""
PAGE = "https://docs.example.org/docs/a"
NEAR, KIN, FAR = "https://docs.example.org/docs/b", "https://www.example.org/docs/b", "https://far.example.net/docs/b"


def spread(kind: str) -> Judge:
    return Judge(collection_of(SPREADING.format(spread=kind), collection='scope = "any"'), year=2026)


@pytest.mark.parametrize(
    ("kind", "policies"),
    [("site", ["favor", "other", "other"]), ("domain", ["favor", "favor", "other"]), ("any", ["favor"] * 3)],
)
def test_a_policy_is_inherited_as_far_as_it_spreads_and_beyond_that_the_other_one_holds(
    kind: str, policies: list[str]
) -> None:
    """Policies 2006: inheritance can be limited to pages of the same domain."""
    found = spread(kind).judge([NEAR, KIN, FAR], Origin("link", 1, "favor", 1.0, PAGE))
    assert [each.policy for each in found] == policies


def test_each_url_is_judged_by_the_patterns_of_the_policy_that_it_gets() -> None:
    urls = ["https://docs.example.org/x", "https://far.example.net/x", "https://far.example.net/private/x"]
    found = spread("site").judge(urls, Origin("link", 1, "favor", 1.0, PAGE))
    assert [each.reason for each in found] == ["not_allowed", None, "denied"]


def test_trust_is_dampened_with_each_hop_and_bounded_where_the_policy_changes() -> None:
    """Policies 2006: TrustRank's dampening; a policy that is less trusted takes in no more than its own trust."""
    found = spread("site").judge([NEAR, FAR], Origin("link", 1, "favor", 1.0, PAGE))
    assert [each.trust for each in found] == [0.85, 0.25]


def test_trust_is_divided_among_the_links_that_are_taken_in() -> None:
    """Policies 2006: TrustRank's splitting, as OPIC divides cash."""
    tables = "[policies.favor]\nsplitting = true\ndampening = 0.8\ndeny = ['/zip/']\n"
    judge = Judge(collection_of(tables), year=2026)
    urls = [f"https://docs.example.org/{name}" for name in ("a", "b", "zip/c", "d", "e")]
    found = judge.judge(urls, Origin("link", 1, "favor", 1.0, PAGE))
    assert [round(each.trust, 12) for each in found] == [0.2, 0.2, 0.0, 0.2, 0.2]


def test_a_redirect_passes_trust_on_whole() -> None:
    [found] = spread("any").judge([NEAR], Origin("redirect", 1, "favor", 1.0, PAGE))
    assert found.trust == 1.0


def test_links_of_a_page_whose_policy_does_not_follow_are_refused_by_that_word() -> None:
    """Policies 2006: distrust stops expanding."""
    judge = Judge(collection_of(), year=2026)
    assert [each.reason for each in judge.judge([NEAR], Origin("link", 1, "distrust", 0.0, PAGE))] == ["not_followed"]
    assert [each.reason for each in judge.judge([NEAR], Origin("redirect", 1, "distrust", 0.0, PAGE))] == [None]


def test_seeds_carry_their_policy_and_its_trust() -> None:
    judge = Judge(collection_of(), year=2026)
    [found] = judge.judge(["https://docs.example.org/"], judge.seed("favor"))
    assert (found.policy, found.trust) == ("favor", 1.0)


def test_a_sitemap_speaks_under_the_policy_of_its_sites_seed() -> None:
    seed = '[collection]\nname = "x"\nscope = "any"\nseeds = [{ url = "https://a.example/", policy = "favor" }]\n'
    agent = '[politeness]\nuser_agent = "bot/1 (+https://a.example/bot)"\n'
    judge = Judge(parse_collection(seed + agent, FILE), year=2026)
    assert judge.sitemap("https://a.example", depth=1).policy == "favor"
    assert judge.sitemap("https://b.example", depth=1).policy == "default"


SWITCHES = """
[[switch]]
when = { text = '(?i)casino|viagra', count = 3 }
to = "distrust"
[[switch]]
when = { text = 'Willkommen', status = 200 }
to = "favor"
"""


@pytest.mark.parametrize(
    ("seen", "to"),
    [
        (PageFacts(200, "Casino, viagra and casino"), "distrust"),
        (PageFacts(200, "casino casino"), None),
        (PageFacts(200, "Willkommen"), "favor"),
        (PageFacts(404, "Willkommen"), None),
        (PageFacts(200, "casino casino casino Willkommen"), "distrust"),
    ],
)
def test_the_first_switch_that_a_page_meets_in_all_it_asks_for_counts(seen: PageFacts, to: str | None) -> None:
    """Policies 2006: a crawl that finds itself on a spam page switches that page's policy on the fly."""
    judge = Judge(collection_of(SWITCHES), year=2026)
    found = judge.switched("default", seen)
    assert (None if found is None else found.to) == to
    if to is not None:
        assert judge.switched(to, seen) is None


@pytest.mark.parametrize(
    ("when", "seen", "meets"),
    [
        ("language = ['de', 'nl']", PageFacts(200, language="nl"), True),
        ("language = ['de', 'nl']", PageFacts(200, language="en"), False),
        ("language = ['de', 'nl']", PageFacts(200), False),
        ("language_not = ['en']", PageFacts(200, language="de"), True),
        ("language_not = ['en']", PageFacts(200, language="en"), False),
        ("language_not = ['en']", PageFacts(200), False),
        ("similarity = 0.3", PageFacts(200, similarity=0.3), True),
        ("similarity = 0.3", PageFacts(200, similarity=0.2), False),
        ("similarity_below = 0.3", PageFacts(200, similarity=0.2), True),
        ("similarity_below = 0.3", PageFacts(200, similarity=0.3), False),
        ("similarity_below = 0.3", PageFacts(200), False),
        ("duplicates = 0.5", PageFacts(200, duplicates=0.6), True),
        ("duplicates = 0.5", PageFacts(200, duplicates=0.4), False),
        ("duplicates = 0.5, status = 200, text = 'x'", PageFacts(200, "y", duplicates=0.6), False),
    ],
)
def test_a_switch_asks_for_language_similarity_and_duplicates_and_what_is_not_known_meets_nothing(
    when: str, seen: PageFacts, meets: bool
) -> None:
    tables = "[duplicates]\ndetect = true\n[policies.default]\ntopic = { query = 'x' }\n[[switch]]\n"
    judge = Judge(collection_of(f"{tables}when = {{ {when} }}\nto = 'distrust'\n"), year=2026)
    assert (judge.switched("default", seen) is not None) == meets
    assert judge.policies.asks == {what for what in ("language", "similarity", "duplicates") if what in when}


def test_an_adopted_collection_rules_the_next_batch_and_a_policy_that_is_gone_is_judged_as_the_default() -> None:
    judge = Judge(collection_of("[policies.own]\nallow = ['/docs/']\n"), year=2026)
    queued = Origin("queued", 1, "own")
    other = "https://docs.example.org/other"
    assert judge.judge([other], queued)[0].reason == "not_allowed"
    judge.adopt(collection_of("[policies.default]\ndeny = ['/docs/']\n"))
    found = judge.judge([other, NEAR], queued)
    assert [(each.policy, each.reason) for each in found] == [("default", None), ("default", "denied")]


def test_link_texts_are_asked_for_where_links_can_come_under_a_policy_with_a_topic() -> None:
    rest = """
[policies.topical]
topic = { query = "stream processing" }
[policies.towards]
spread = "site"
otherwise = "topical"
[policies.apart]
spread = "any"
otherwise = "topical"
"""
    judge = Judge(collection_of(rest), year=2026)
    names = ("topical", "towards", "apart", "default", "gone")
    assert [judge.policies.follows_topics[name] for name in names] == [True, True, False, False, False]
    switched = Judge(collection_of(f"{rest}[[switch]]\nwhen = {{ text = 'x' }}\nto = 'towards'\n"), year=2026)
    assert all(switched.policies.follows_topics[name] for name in names)


@pytest.mark.parametrize(
    ("policy", "trust", "to", "then"),
    [
        ("default", 0.5, "favor", 1.0),
        ("default", 0.02, "favor", 1.0),
        ("distrust", 0.0, "default", 0.5),
        ("default", 0.5, "distrust", 0.0),
        ("favor", 1.0, "default", 0.5),
        ("favor", 0.2, "default", 0.2),
        ("default", 0.1, "alike", 0.1),
        ("gone", 0.1, "favor", 1.0),
    ],
)
def test_a_switch_raises_to_the_trust_of_its_policy_and_lowers_to_it(
    policy: str, trust: float, to: str, then: float
) -> None:
    """What has faded below a policy of less, or as much, trust is not raised by it."""
    judge = Judge(collection_of("[policies.alike]\ntrust = 0.5\n"), year=2026)
    assert judge.trust_switched(policy, trust, to=to) == then


def test_a_batch_gives_a_link_for_each_accepted_url_and_a_reason_for_each_refused_one() -> None:
    judge = Judge(collection_of(PATTERNS), year=2026)
    accepted, zipped = "https://docs.example.org/docs/a", "https://docs.example.org/docs/a.zip"
    origin = Origin("link", 2, "default", 0.5, "https://docs.example.org/docs/")
    [link], refused = judge.links([zipped, accepted], origin, hops=3)
    assert refused == [(zipped, "denied")]
    assert (link.url, link.site, link.key) == (accepted, "https://docs.example.org", fingerprint(accepted))
    assert (link.depth, link.policy, link.source, link.hops) == (2, "default", origin.source, 3)
    [verdict] = judge.judge([accepted], origin)
    assert link.trust == verdict.trust


@pytest.mark.parametrize(("links", "shared"), [(0, 2), (5, 5)])
def test_a_link_records_how_many_links_shared_the_trust_of_its_page(links: int, shared: int) -> None:
    judge = Judge(collection_of("[policies.default]\nsplitting = true\n"), year=2026)
    origin = Origin("link", 1, "default", 1.0, "https://docs.example.org/", links)
    found, _ = judge.links(["https://docs.example.org/a", "https://docs.example.org/b"], origin)
    assert [Provenance.decode(link.provenance).links for link in found] == [shared, shared]
    assert judge.inherited(found[0].url, msgspec.structs.replace(origin, links=shared)).trust == found[0].trust
