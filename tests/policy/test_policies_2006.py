"""Each sentence of *Per-page crawling policy* (Policies 2006; Białecki, Krugler) and its scenario tests: a table.

And those of Cho 1998 that a policy with a topic follows.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

SCENARIOS: list[tuple[str, list[str]]] = [
    (
        "Each seed has a policy: favor, default, distrust, or any other name",
        ["policy/test_judge.py::test_seeds_carry_their_policy_and_its_trust"],
    ),
    (
        "Pages discovered from it inherit the policy as the frontier expands, unless there is a reason to switch",
        [
            "policy/test_judge.py::test_a_policy_is_inherited_as_far_as_it_spreads_and_beyond_that_the_other_one_holds",
            "frontier/test_policies.py::test_a_policy_spreads_over_its_site_and_others_get_the_other_one",
        ],
    ),
    (
        "A policy bundles URL filters, scoring methods and anything else that can be configured",
        [
            "policy/test_judge.py::test_each_url_is_judged_by_the_patterns_of_the_policy_that_it_gets",
            "ranking/test_link_importance.py::test_a_policy_weighs_what_its_pages_are_worth_by",
            "frontier/test_policies.py::test_each_policy_bounds_the_time_between_two_visits_to_its_pages",
        ],
    ),
    (
        "Several collections live in one database and share its link information",
        [
            "frontier/test_policies.py::test_several_collections_in_one_store_have_each_its_own_rules",
            "ranking/test_link_log.py::test_rankers_of_two_collections_may_share_a_log",
        ],
    ),
    (
        "Inheritance can be limited to pages of the same domain",
        ["policy/test_judge.py::test_a_policy_is_inherited_as_far_as_it_spreads_and_beyond_that_the_other_one_holds"],
    ),
    (
        "Favor raises the score of linked pages, distrust lowers it, stops expanding, or does not add them at all",
        [
            "frontier/test_policies.py::test_favor_raises_what_it_links_distrust_lowers_it",
            "policy/test_judge.py::test_links_of_a_page_whose_policy_does_not_follow_are_refused_by_that_word",
            "ranking/test_link_importance.py::test_what_is_not_followed_is_logged_with_the_reason_as_a_flag",
            "policy/test_spam_farm.py::test_with_favor_and_distrust_few_fetches_go_to_spam",
        ],
    ),
    (
        "Trust attenuates along links by dampening, less with each hop",
        [
            "policy/test_judge.py::test_trust_is_dampened_with_each_hop_and_bounded_where_the_policy_changes",
            "frontier/test_policies.py::test_trust_fades_along_the_links_and_is_kept_with_each_page",
            "frontier/test_policies.py::test_trust_orders_what_is_new_where_policies_distinguish_pages_by_it",
        ],
    ),
    (
        "and by splitting: it is divided among the outlinks",
        [
            "policy/test_judge.py::test_trust_is_divided_among_the_links_that_are_taken_in",
            "policy/test_worked_example.py::test_each_trust_of_the_example_is_what_the_crawl_holds",
        ],
    ),
    (
        "If the crawl finds itself on a spam page, it switches that page's policy on the fly",
        [
            "policy/test_judge.py::test_the_first_switch_that_a_page_meets_in_all_it_asks_for_counts",
            "frontier/test_policies.py::test_a_page_in_another_language_or_off_the_topic_is_switched_by_what_it_shows",
            "frontier/test_policies.py::test_a_page_that_is_gone_can_be_switched_by_its_status",
        ],
    ),
    (
        "to distrust, or the other way around",
        [
            "policy/test_judge.py::test_a_switch_raises_to_the_trust_of_its_policy_and_lowers_to_it",
            "frontier/test_policy_scenarios.py::test_a_crawl_holds_what_was_worked_out_by_hand",
        ],
    ),
    (
        "Filters are grouped into several policies, and it is easy to switch between them, or edit them",
        ["frontier/test_policy_edits.py::test_an_edit_does_what_was_worked_out_by_hand_and_what_was_foretold"],
    ),
    (
        "Krugler: a hand-selected set of known good domains and sub-domains",
        ["policy/test_rules.py::test_a_rule_is_for_the_pages_of_its_host_or_those_in_whose_url_its_pattern_is_found"],
    ),
    (
        "From then on pages linked from it follow the new one",
        [
            "frontier/test_policies.py::test_a_page_that_shows_spam_is_switched_and_what_it_links_from_then_on",
            "frontier/test_policies.py::test_on_request_what_was_discovered_through_a_switched_page_follows_it",
        ],
    ),
    (
        "Good links on bad pages can still be followed",
        ["frontier/test_policies.py::test_good_links_on_bad_pages_can_still_be_followed"],
    ),
    (
        "One page found from pages with different policies needs a rule",
        ["frontier/test_policies.py::test_a_page_found_under_two_policies_has_the_one_that_the_conflict_rule_says"],
    ),
    (
        "Krugler: a score from content, domain and OPIC, divided among the valid outlinks and summed into the targets",
        [
            "core/test_importance.py::test_fetching_a_page_again_credits_only_what_it_gained_since",
            "ranking/test_ranker.py::test_the_graph_of_the_log_is_that_of_the_newest_rows",
            "ranking/test_link_importance.py::test_without_rankings_a_page_that_many_pages_link_to_is_fetched_before_pages_found_earlier",
        ],
    ),
    (
        "Krugler: fetch the best of the unfetched",
        ["frontier/sites/test_sequencers.py::test_by_worth_every_other_turn_is_the_worthiests"],
    ),
    (
        "Lesson 1: cap the URLs of a domain as a percentage, order by domain, use keep-alive",
        [
            "frontier/sites/test_domain_shares.py::test_a_large_domain_has_its_share_at_every_moment",
            "download/test_fetcher.py::test_one_connection_serves_a_site_while_it_is_in_step",
        ],
    ),
    (
        "Lesson 2: watch each fetch of a slow or broken server and cut it",
        ["download/test_connection_pool.py::test_a_body_that_flows_for_ever_ends_with_the_time_of_the_fetch"],
    ),
    (
        "Lesson 3: updating the database must not dominate",
        [
            "frontier/pages/test_policy_review.py::test_a_step_reads_a_bounded_number_of_pages_and_a_second_edit_begins_anew"
        ],
    ),
    (
        "Lesson 4: keep several scores per page",
        [
            "ranking/test_link_importance.py::test_a_policy_weighs_what_its_pages_are_worth_by",
            "ranking/test_ranker.py::test_published_scores_are_relative_to_the_mean",
        ],
    ),
    (
        "Lesson 5: when the ratio of busy to blocked drops below a threshold, end the round",
        [
            "frontier/sites/test_domain_shares.py::test_where_few_can_still_be_fetched_the_rest_of_the_period_is_reassigned"
        ],
    ),
]
"""Sentence of PAPERS.md section 6 -> tests, by file and the beginning of their names."""

BY_TOPIC: list[tuple[str, list[str]]] = [
    (
        "Cho 1998: similarity, a tf-idf inner product with a query, idf estimated from what was seen",
        [
            "core/test_topics.py::test_a_rare_word_in_common_counts_for_more_than_one_that_every_text_has",
            "ranking/test_link_importance.py::test_what_was_seen_shows_which_words_are_rare",
            "ranking/test_link_importance.py::test_which_words_are_rare_is_known_after_a_kill_and_published_once_a_minute",
        ],
    ),
    (
        "Cho 1998: hot_queue holds URLs with the word in the anchor text or in the URL, url_queue the rest",
        [
            "ranking/test_link_importance.py::test_a_page_that_a_link_text_or_its_url_says_is_on_topic_is_asked_before_all_others",
            "ranking/test_link_importance.py::test_a_waiting_page_becomes_hot_when_a_later_link_says_so",
            "ranking/test_link_importance.py::test_what_is_hot_is_kept_through_a_restart",
        ],
    ),
    (
        "Cho 1998, improved: also URLs within 3 links of a hot page",
        [
            "ranking/test_link_importance.py::test_pages_within_three_links_of_one_on_topic_are_asked_before_all_others",
            "ranking/test_link_importance.py::test_a_page_that_proves_to_be_off_topic_makes_no_other_page_hot",
        ],
    ),
]
"""Of PAPERS.md section 4 what policies have of it."""


@pytest.mark.parametrize(
    ("sentence", "tests"),
    SCENARIOS + BY_TOPIC,
    ids=[sentence[:40] for sentence, _ in SCENARIOS] + [f"topic-{number}" for number in range(len(BY_TOPIC))],
)
def test_each_sentence_has_its_scenarios(sentence: str, tests: list[str]) -> None:
    for each in tests:
        file, _, name = each.partition("::")
        text = (TESTS / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {re.escape(name)}\w*\(", text, re.MULTILINE), f"{sentence}: there is no {each}"
