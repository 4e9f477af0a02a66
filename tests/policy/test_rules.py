"""``[[rule]]`` and `extends` in a policy file: which pages a rule is for, and what is wrong with one in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.policy.collections import collection_of
from webfountain.cli import main
from webfountain.errors import PolicyError
from webfountain.policy.collection_file import parse_collection
from webfountain.policy.judge import Judge, Origin
from webfountain.policy.rules import RuleBook, host_pattern

HEAD = '[collection]\nname = "t"\nseeds = ["http://127.0.0.1/"]\n[network]\nallow_private = true\n'


def book(*matches: str) -> RuleBook:
    """A rule for each, with the trust of its place."""
    rules = "".join(f"[[rule]]\nmatch = '{match}'\ntrust = 0.{n}\n" for n, match in enumerate(matches, start=1))
    return collection_of(rules).rules


@pytest.mark.parametrize(
    ("match", "host"),
    [
        ("example.org", "example.org"),
        ("Example.ORG", "example.org"),
        ("*.example.org", "*.example.org"),
        ("münchen.example", "xn--mnchen-3ya.example"),
        ("intranet", "intranet"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("example.org/docs", None),
        ("https://example.org/", None),
        (r"\.pdf$", None),
        ("a.*b", None),
        ("*.*.org", None),
    ],
)
def test_a_host_is_distinguished_from_a_pattern_by_its_form(match: str, host: str | None) -> None:
    assert host_pattern(match) == host


@pytest.mark.parametrize(
    ("match", "url", "is_for"),
    [
        ("example.org", "https://example.org/a", True),
        ("example.org", "http://example.org:8080/a", True),
        ("example.org", "https://www.example.org/a", False),
        ("example.org", "https://example.org.evil.net/", False),
        ("*.example.org", "https://www.docs.example.org/", True),
        ("*.example.org", "https://example.org/", True),
        ("*.example.org", "https://badexample.org/", False),
        ("[::1]", "http://[::1]:80/", True),
        ("/docs/", "https://any.net/docs/1", True),
        ("^https://", "http://any.net/https://", False),
    ],
)
def test_a_rule_is_for_the_pages_of_its_host_or_those_in_whose_url_its_pattern_is_found(
    match: str, url: str, is_for: bool
) -> None:
    assert (book(match).find(url) is not None) == is_for


def test_a_long_pattern_that_begins_like_a_host_is_distinguished_from_one_at_once() -> None:
    """Labels that could be divided in any way took a second for 24 letters, and twice that with each more."""
    assert host_pattern("documentation-of-the-archives-of-the-library" * 20 + "/x") is None


def test_the_first_rule_that_matches_counts() -> None:
    rules = book("/x", "a.org", "/y", "*.org")
    urls = ("http://a.org/x", "http://a.org/y", "http://b.org/y", "http://b.org/z", "http://c.net/y", "http://c.net/z")
    assert [found and found.place for found in map(rules.find, urls)] == [0, 1, 2, 3, 2, None]


@pytest.mark.parametrize(
    ("rest", "reported"),
    [
        ("[[rule]]\npolicy = 'favor'\n", "rule[0].match is missing (required)"),
        ("[[rule]]\nmatch = 'a.org'\n", "rule[0]: {'match': 'a.org'} is not allowed here (allowed: with policy"),
        ("[[rule]]\nmatch = []\ntrust = 1\n", "rule[0].match: [] is not allowed here (allowed: a host"),
        ("[[rule]]\nmatch = 3\ntrust = 1\n", "rule[0].match: 3 is not allowed (allowed: a text or a list"),
        ("[[rule]]\nmatch = ['a.org', 3]\ntrust = 1\n", "rule[0].match[1]: 3 is not allowed (allowed: a text"),
        ("[[rule]]\nmatch = 'a('\ntrust = 1\n", "rule[0].match: 'a(' is not a host and is not a "),
        ("[[rule]]\nmatch = 'a.org'\ntrust = 2\n", "rule[0].trust: 2 is not allowed (allowed: a number"),
        ("[[rule]]\nmatch = 'a.org'\npolicy = 'x'\n", "rule[0].policy: 'x' is not allowed here (allowed: a policy: "),
        ("[[rule]]\nmatches = 'a.org'\n", "rule[0].matches is an unknown key (did you mean match?"),
        ("[policies.a]\nextends = 'b'\n", "policies.a.extends: 'b' is not allowed here (allowed: a policy: a, default"),
        ("[policies.a]\nextends = 'a'\n", "policies.a.extends: 'a' is not allowed here (allowed: a policy that does"),
        ("[policies.a]\nextends = 3\n", "policies.a.extends: 3 is not allowed (allowed: a text"),
        (
            "[policies.a]\nextends = 'b'\n[policies.b]\nextends = 'c'\n[policies.c]\nextends = 'a'\n",
            "a cycle: a -> b -> c -> a",
        ),
        ("[policies.default]\nextends = 'x'\n[policies.x]\nextends = 'default'\n", "default -> x -> default"),
        ("[policies.a]\nextends = 'b'\n[policies.b]\ntrust = 7\n", "policies.b.trust: 7 is not allowed"),
    ],
)
def test_what_is_wrong_is_reported_in_one_line_that_names_the_key(rest: str, reported: str) -> None:
    with pytest.raises(PolicyError) as error:
        parse_collection(HEAD + rest, Path("t.toml"))
    assert str(error.value).startswith("t.toml: ")
    assert reported in str(error.value)
    assert "\n" not in str(error.value)


def test_a_policy_that_extends_another_replaces_whole_keys_and_inherits_no_extends() -> None:
    found = collection_of(
        "[policies.base]\nextends = 'favor'\ndeny = ['a', 'b']\n[policies.base.revisit]\nmin_interval = '1h'\n"
        "max_interval = '2h'\n[policies.mine]\nextends = 'base'\ndeny = ['c']\nrevisit = { min_interval = '3h' }\n"
        "[policies.favor]\nextends = 'default'\n"
    ).policies
    assert found["base"].extends == "favor"
    assert (found["base"].trust, found["favor"].trust) == (0.5, 0.5)
    assert [pattern.pattern for pattern in found["mine"].deny] == ["c"]
    assert (found["mine"].revisit.min_interval, found["mine"].revisit.max_interval) == (3 * 3600.0, None)
    assert (found["mine"].extends, found["mine"].dampening) == ("base", found["base"].dampening)


@pytest.mark.parametrize("kind", ["link", "redirect", "sitemap"])
def test_a_rule_is_for_whatever_way_a_page_is_found(kind: Literal["link", "redirect", "sitemap"]) -> None:
    judge = Judge(collection_of("[[rule]]\nmatch = 'docs.example.org'\ntrust = 0.9\n"), year=2026)
    url = "https://docs.example.org/x"
    [verdict] = judge.judge([url], Origin(kind, 1, "default", 0.1, "https://docs.example.org/"))
    assert (verdict.policy, verdict.trust) == ("default", 0.9)
    assert judge.inherited(url, Origin(kind, 1, "default", 0.1)) == verdict


def test_what_waits_already_is_judged_under_its_own_policy() -> None:
    judge = Judge(collection_of("[[rule]]\nmatch = 'docs.example.org'\npolicy = 'distrust'\n"), year=2026)
    [verdict] = judge.judge(["https://docs.example.org/x"], Origin("queued", 1, "default", 0.4))
    assert (verdict.policy, verdict.trust, verdict.rule) == ("default", 0.4, b"")


def test_texts_of_links_are_read_where_a_rule_leads_to_a_policy_with_a_topic() -> None:
    rules = "[policies.topical]\ntopic = { query = 'rivers' }\n"
    assert not Judge(collection_of(rules), year=2026).policies.follows_topics["default"]
    ruled = rules + "[[rule]]\nmatch = '*.example.org'\npolicy = 'topical'\n"
    assert Judge(collection_of(ruled), year=2026).policies.follows_topics["default"]


def test_trust_orders_what_is_new_where_a_rule_alone_distinguishes_pages_by_it() -> None:
    assert not collection_of("").is_trusting
    assert collection_of("[[rule]]\nmatch = 'a.org'\ntrust = 0.9\n").is_trusting


def test_the_command_shows_rules_and_what_extends_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rest = "[policies.mine]\nextends = 'favor'\n[[rule]]\nmatch = ['a.org', '/x']\npolicy = 'mine'\ntrust = 0.25\n"
    (tmp_path / "t.toml").write_text(HEAD + rest)
    assert main(["policy", "check", str(tmp_path / "t.toml")]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  policies.mine extends favor",
        "  rule[0]: a.org | /x -> mine, trust 0.25",
    ]


def test_a_chain_of_a_thousand_policies_is_read_and_a_circle_of_them_is_reported() -> None:
    chain = "".join(f"[policies.p{n}]\nextends = 'p{n + 1}'\n" for n in range(2000))
    assert collection_of(chain + "[policies.p2000]\ntrust = 0.125\n").policies["p0"].trust == 0.125
    with pytest.raises(PolicyError, match="this is a cycle: p0 -> p1"):
        collection_of(chain + "[policies.p2000]\nextends = 'p0'\n")
