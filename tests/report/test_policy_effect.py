"""What an edited policy file would do to the URLs that a store knows."""

from __future__ import annotations

from tests.policy.collections import collection_of
from webfountain.policy.judge import Judge, policy_effect
from webfountain.records import PageRecord

SITE = "https://docs.example.org"


def test_known_urls_that_the_file_denies_are_counted_by_reason_with_a_sample() -> None:
    judge = Judge(collection_of("[policies.default]\ndeny = ['/old/']"), year=2026)
    records = [PageRecord(f"{SITE}/old/{n}", state="crawled", depth=1) for n in range(25)]
    records += [PageRecord(f"{SITE}/new/{n}", depth=1) for n in range(5)]
    records += [PageRecord("https://elsewhere.example/", depth=1), PageRecord(f"{SITE}/deep", depth=99)]
    effect = policy_effect(judge, records)
    assert effect.known == 32
    assert effect.dropped == {"denied": 25, "out_of_scope": 1, "too_deep": 1}
    assert len(effect.sample_dropped) == 10


def test_urls_refused_by_the_policy_of_before_are_told_where_the_file_takes_them_in_again() -> None:
    judge = Judge(collection_of("[policies.default]\ndeny = ['/old/']"), year=2026)
    refused = [
        PageRecord(f"{SITE}/new", state="refused", error="denied", depth=1),
        PageRecord(f"{SITE}/old/1", state="refused", error="denied", depth=1),
        PageRecord(f"{SITE}/robots", state="refused", error="robots.txt", depth=1),
    ]
    effect = policy_effect(judge, refused)
    assert (effect.taken, effect.sample_taken) == (1, (f"{SITE}/new",))
    assert effect.dropped == {}


def test_a_url_is_judged_under_its_own_policy_and_another_projects_request_not_at_all() -> None:
    judge = Judge(collection_of("[policies.favor]\ndeny = ['/x']"), year=2026)
    records = [
        PageRecord(f"{SITE}/x", policy="favor", depth=1),
        PageRecord(f"{SITE}/x", depth=1),
        PageRecord(f"{SITE}/x", policy="favor", depth=1, request=b"{}"),
    ]
    assert policy_effect(judge, records).dropped == {"denied": 1}
