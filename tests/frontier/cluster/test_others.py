"""A process that has its store to itself is asked the same as a member of many, and never has to wait."""

from __future__ import annotations

from math import inf
from typing import get_type_hints

from tests.frontier.drive import Drive, collection_of
from tests.store.local_claims import LocalClaims
from webfountain.frontier.cluster.address_claims import AddressClaims
from webfountain.frontier.cluster.membership import Membership, join_ants
from webfountain.frontier.cluster.others import LoneAnt, NoClaims, Others
from webfountain.store.memory.store import MemoryStore

HOME = "http://home.example/"


def names_of(protocol: type) -> set[str]:
    """Everything that an object behind a protocol must have."""
    return {name for name in (*vars(protocol), *get_type_hints(protocol)) if not name.startswith("_")}


def test_a_lone_ant_and_a_member_answer_the_same_questions() -> None:
    store = MemoryStore(period_s=60.0, fastest_s=1.0)
    member = join_ants(store, LocalClaims(), owner="a", heartbeat_s=5.0, start=0.0)
    lone = LoneAnt("a", lease_s=600.0)
    assert isinstance(member, Membership)
    wanted = names_of(Others)
    assert wanted >= {"owner", "shared", "rules", "counts", "term", "ants", "idle_since", "sign_off"}
    assert not [name for name in wanted for each in (member, lone) if not hasattr(each, name)]
    assert (member.shared, lone.shared) == (True, False)


def test_whoever_is_alone_rules_counts_and_waits_for_nobody() -> None:
    lone = LoneAnt("a", lease_s=600.0)
    assert (lone.rules, lone.counts, lone.ants, lone.idle_since()) == (True, True, 1, -inf)
    assert (lone.term.lease_s, lone.term.left_s(), lone.most_sites(10_000)) == (600.0, inf, None)


def test_no_claims_have_what_claims_are_asked_for() -> None:
    asked = {name for name in vars(AddressClaims) if not name.startswith("_")} - {"add"}
    assert not [name for name in asked if not hasattr(NoClaims, name)]
    assert (NoClaims().held(), NoClaims().open_times(1.0)) == ([], {})


def test_a_crawl_beats_where_others_may_use_its_store_and_nowhere_else() -> None:
    alone = Drive(collection_of([HOME]), lambda fetch, at: "dns")
    assert alone.frontier.heart is None
    store = MemoryStore(period_s=60.0, fastest_s=1.0, claims=LocalClaims())
    shared = Drive(collection_of([HOME]), lambda fetch, at: "dns", store=store)
    assert shared.frontier.heart is not None
    assert shared.frontier.heart.beat() is not None
