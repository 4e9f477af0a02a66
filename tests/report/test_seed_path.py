"""What `explain` tells of the way to a page are facts of its record: link or redirect, which rule, which time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.frontier.scenarios import Scenario, crawl, edit, held, long, rules_of
from webfountain.report.explain import explain
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from tests.frontier.drive import Drive
    from webfountain.policy.collection import Collection
    from webfountain.report.seed_path import Hop
    from webfountain.report.url_facts import Explanation

TWO = "[policies.one]\ntrust = 0.25\n[policies.two]\ntrust = 0.75\n"
SPAM = "[[switch]]\nwhen = { text = 'casino' }\nto = 'distrust'\n"


def crawled(web: dict[str, str], seeds: str, rules: str) -> tuple[Drive, Collection]:
    scenario = Scenario("", web, seeds, rules)
    return crawl(scenario, rules_of(scenario)), rules_of(scenario)


def of(drive: Drive, collection: Collection, page: str) -> Explanation:
    return explain(drive.store, collection, long(page), at=drive.clock.now())


def last(drive: Drive, collection: Collection, page: str) -> Hop:
    return of(drive, collection, page).path[-1]


def test_a_link_that_took_a_page_over_by_trust_is_no_redirect_whatever_their_depths() -> None:
    """`c/` was found at depth 2; the link that counts is on a page of depth 2, too."""
    web = {"a/": "c/", "b/": "b/1", "b/1": "c/", "c/": "end"}
    drive, rules = crawled(web, "a/ = one, b/ = two", TWO + "[conflict]\nrule = 'most-trusted'\n")
    found = of(drive, rules, "c/")
    assert [(hop.url, hop.by) for hop in found.path] == [
        (long("b/"), "seed"),
        (long("b/1"), "link"),
        (long("c/"), "link"),
    ]
    assert found.path[-1].cause == "conflict"
    assert found.path[-1].at == int(found.path[-1].at or 0) > 1_000_000
    assert "this link counts more than earlier ones (conflict.rule = 'most-trusted')" in str(found.why)


def test_a_redirect_is_called_one() -> None:
    drive, rules = crawled({"a/": "-> a/new", "a/new": "x"}, "a/", "")
    assert [hop.by for hop in of(drive, rules, "a/new").path] == ["seed", "redirect"]


def test_a_seed_that_was_switched_is_called_switched() -> None:
    drive, rules = crawled({"a/": "casino"}, "a/ = two", TWO + SPAM)
    found = of(drive, rules, "a/")
    assert found.why[0] == f"{long('a/')} is a seed."
    assert found.why[1].startswith(
        "This page has the policy 'distrust' and trust 0: switched from 'two' by switch[0], 1970-01-12"
    )
    assert (found.path[0].cause, found.path[0].rule) == ("switch", "switch[0]")


def test_of_several_rules_that_lead_to_a_policy_the_one_that_switched_is_named_also_where_it_stands_now() -> None:
    first = "[[switch]]\nwhen = { text = 'viagra' }\nto = 'distrust'\n"
    drive, rules = crawled({"a/": "a/1 a/2", "a/1": "casino", "a/2": "viagra"}, "a/", first + SPAM)
    assert [last(drive, rules, page).rule for page in ("a/1", "a/2")] == ["switch[1]", "switch[0]"]
    turned = rules_of(Scenario("", {}, "a/", SPAM + first))
    assert [last(drive, turned, page).rule for page in ("a/1", "a/2")] == ["switch[0]", "switch[1]"]
    without = rules_of(Scenario("", {}, "a/", first))
    assert "a switch that the policy file no longer has" in str(last(drive, without, "a/1").because)


@pytest.mark.parametrize("page", ["a/", "a/1", "a/2"])
def test_importance_is_called_trust_where_it_is(page: str) -> None:
    drive, rules = crawled({"a/": "a/1 a/2", "a/1": "award", "a/2": "casino"}, "a/", SPAM + AWARD)
    assert (
        "Its importance is its trust, because its policy has no score and no ranking is made."
        in of(drive, rules, page).why
    )
    record = held(drive.store)[page]
    assert record.importance == record.trust == {"a/": 0.5, "a/1": 1.0, "a/2": 0.0}[page]


AWARD = "[[switch]]\nwhen = { text = 'award' }\nto = 'favor'\n"


def test_a_rule_by_host_is_named_and_what_an_edit_put_elsewhere_is_said_to_be_so() -> None:
    scenario = Scenario("", {"a/": "b/", "b/": "b/1"}, "a/ = one", TWO + "[[rule]]\nmatch = 'b.org'\ntrust = 0.7\n")
    drive = crawl(scenario, rules_of(scenario))
    assert last(drive, rules_of(scenario), "b/").because == "rule[0] gives it"
    after = rules_of(scenario, seeds="a/ = two", rules=TWO)
    edit(drive, after)
    assert [hop.because for hop in of(drive, after, "b/1").path] == [
        "by an edit of the policy file, 1970-01-12 13:46 UTC"
    ] * 3


def test_what_was_discovered_before_its_page_was_switched_is_said_to_be() -> None:
    web = {"a/": "a/1", "a/1": "fine a/2", "a/2": "x"}
    scenario = Scenario("", web, "a/ = two", TWO + SPAM)
    drive = crawl(scenario, rules_of(scenario), seconds=600)
    web["a/1"] = "casino a/2"
    drive.run(seconds=30 * 86_400)
    assert last(drive, rules_of(scenario), "a/1").rule == "switch[0]"
    assert last(drive, rules_of(scenario), "a/2").because == (
        "it was found before the page that links to it was switched to 'distrust'"
    )


def test_for_records_of_an_older_store_no_cause_is_invented() -> None:
    drive, rules = crawled({"a/": "a/1", "a/1": "casino"}, "a/ = two", TWO + SPAM)
    for _, record in list(drive.store.pages.records()):
        key = fingerprint(record.url)
        drive.store.queues.reassign(
            site_of(record.url), [key], lambda page: msgspec.structs.replace(page, provenance=b"")
        )
    hop = last(drive, rules, "a/1")
    assert (hop.by, hop.cause, hop.rule, hop.at) == ("unrecorded", None, None, None)
    assert hop.because == "perhaps switch[0]; it was not recorded"
    assert f"It links or redirects to {long('a/1')}" in of(drive, rules, "a/1").why[1]


def test_a_seed_that_the_file_names_no_more_and_a_page_asked_for_by_hand_are_distinguished() -> None:
    scenario = Scenario("", {"a/": "x", "b/": "x"}, "a/, b/", "")
    drive = crawl(scenario, rules_of(scenario))
    rules = rules_of(scenario, seeds="a/")
    assert of(drive, rules, "b/").why[0] == f"{long('b/')} was a seed, which the policy file no longer names."


def test_the_rule_that_is_for_an_unknown_url_is_named() -> None:
    rules = "[[rule]]\nmatch = ['never', '*.b.org']\npolicy = 'two'\ntrust = 0.5\n"
    drive, collection = crawled({"a/": "x"}, "a/", TWO + rules)
    why = of(drive, collection, "www.b/page").why
    assert why[0] == "rule[0] applies to it, whatever page links to it (never | *.b.org -> two, trust 0.5)."
    assert "under 'default'" not in why[1]
