"""Which sites are forms of each other, and what a judge does with the form that a seed redirects to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webfountain.policy.collection_file import parse_collection
from webfountain.policy.judge import Judge, Origin
from webfountain.policy.scope import is_site_form, keep_forms, kept_forms
from webfountain.policy.url_rules import Verdict
from webfountain.store.memory.store import MemoryStore

if TYPE_CHECKING:
    from webfountain.policy.collection import Collection


@pytest.mark.parametrize(
    ("site", "of", "is_form"),
    [
        ("https://a.org", "http://a.org", True),
        ("https://www.a.org", "http://a.org", True),
        ("https://a.org", "http://www.a.org", True),
        ("http://www.a.org", "http://a.org", True),
        ("http://a.org", "http://www.a.org", True),
        ("https://a.org:8443", "http://a.org:8080", True),
        ("http://a.org", "https://a.org", False),
        ("http://a.org", "http://a.org", False),
        ("http://a.org:8080", "http://a.org", False),
        ("https://a.org:8443", "https://a.org", False),
        ("https://b.org", "http://a.org", False),
        ("https://www.www.a.org", "http://a.org", False),
        ("https://www.a.org.evil.org", "http://a.org", False),
        ("https://wwwa.org", "http://a.org", False),
        ("https://[::1]:2", "http://[::1]:1", True),
        ("http://[::2]:1", "http://[::1]:1", False),
    ],
)
def test_a_form_has_the_same_host_but_for_www_and_never_leaves_https(site: str, of: str, is_form: bool) -> None:
    assert is_site_form(site, of=of) is is_form


SITES = st.builds(
    "{}://{}{}.org{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["", "www."]),
    st.sampled_from("ab"),
    st.sampled_from(["", ":81", ":444"]),
)


@given(SITES, SITES)
def test_two_forms_of_each_other_have_one_scheme(one: str, other: str) -> None:
    if is_site_form(one, of=other) and is_site_form(other, of=one):
        assert one.partition(":")[0] == other.partition(":")[0]


def collection(*seeds: str, scope: str = "site", private: bool = False, rest: str = "") -> Collection:
    head = f"[collection]\nname = 't'\nscope = '{scope}'\nseeds = {list(seeds)!r}\n"
    agent = "[politeness]\nuser_agent = 'tests/1.0 (+https://example.org/bot)'\n"
    network = f"[network]\nallow_private = {str(private).lower()}\n"
    return parse_collection(head + agent + network + rest, Path("t.toml"))


def test_an_admitted_form_is_in_scope_under_the_seed_s_policy_whatever_its_spread() -> None:
    rest = "[policies.favor]\nspread = 'site'\n"
    judge = Judge(collection("http://a.org/", rest=rest), year=2026)
    target = ["https://www.a.org/"]
    redirect = Origin("redirect", 0, "favor", 1.0, "http://a.org/")
    assert judge.judge(target, redirect)[0].reason == "out_of_scope"
    assert judge.admit("https://www.a.org", seed="http://a.org")
    assert judge.judge(target, redirect)[0] == Verdict("favor", 1.0, None)
    assert judge.judge(["https://a.org/"], redirect)[0].reason == "out_of_scope"
    assert not judge.admit("https://b.org", seed="http://a.org")
    assert not judge.admit("https://www.a.org", seed="http://a.org"), "it is in scope already"


def test_an_edited_policy_keeps_the_forms_of_the_seeds_that_stay() -> None:
    judge = Judge(collection("http://a.org/", "http://b.org/"), year=2026)
    for name in "ab":
        judge.admit(f"https://{name}.org", seed=f"http://{name}.org")
        judge.admit(f"https://www.{name}.org", seed=f"https://{name}.org")
    judge.adopt(collection("http://b.org/"))
    assert not judge.is_in_scope("https://a.org")
    assert not judge.is_in_scope("https://www.a.org")
    assert judge.is_in_scope("https://www.b.org")


def test_forms_are_kept_in_a_store_and_taken_up_in_any_order() -> None:
    store = MemoryStore(period_s=1.0)
    keep_forms(store.board, {"https://www.a.org": "https://a.org"})
    keep_forms(
        store.board,
        {"https://a.org": "http://a.org", **{f"https://www.{n}.org": f"https://{n}.org" for n in range(99)}},
    )
    assert len(kept_forms(store.board)) == 101
    judge = Judge(collection("http://a.org/"), year=2026, forms=kept_forms(store.board))
    assert judge.is_in_scope("https://www.a.org")
    assert not judge.is_in_scope("https://www.7.org"), "no seed redirects there any more"
    assert len(judge.forms) == 2


@pytest.mark.parametrize(
    ("seed", "site", "private", "is_inside"),
    [
        ("https://user.github.io/", "https://www.user.github.io", False, True),
        ("https://user.github.io/", "https://other.github.io", False, False),
        ("https://a.co.uk/", "https://b.co.uk", False, False),
        ("http://www.apex.internal/", "http://wiki.apex.internal", True, True),
        ("http://www.apex.internal/", "http://wiki.other.internal", True, False),
        ("http://10.0.0.1/", "http://10.0.0.2", True, False),
        ("http://intranet/", "http://intranet:8080", True, True),
        ("https://www.apex.unknownsuffix/", "https://wiki.apex.unknownsuffix", False, False),
        ("https://docs.example.org/", "https://www.example.org", True, True),
    ],
)
def test_scope_domain_counts_private_suffixes_and_where_the_network_is_private_unknown_ones(
    seed: str, site: str, private: bool, is_inside: bool
) -> None:
    judge = Judge(collection(seed, scope="domain", private=private), year=2026)
    assert judge.is_in_scope(site) is is_inside
    spreading = collection(seed, scope="any", private=private, rest="[policies.favor]\nspread = 'domain'\n")
    link = Origin("link", 1, "favor", 1.0, seed)
    [verdict] = Judge(spreading, year=2026).judge([site + "/"], link)
    assert (verdict.policy == "favor") is is_inside
