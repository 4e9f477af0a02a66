"""The policy files in ``policies/`` are loaded, and are what their first lines say."""

from __future__ import annotations

from pathlib import Path

import pytest

from webfountain.policy.collection import describe
from webfountain.policy.collection_file import read_collection
from webfountain.policy.judge import Judge
from webfountain.policy.switches import PageFacts

POLICIES = Path(__file__).resolve().parents[2] / "policies"
FILES = sorted(POLICIES.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_is_a_valid_collection_named_like_its_file(path: Path) -> None:
    collection = read_collection(path)
    assert collection.name == path.stem
    assert describe(collection)["collection"]["seeds"] == len(list(collection.seeds())) > 0


def test_there_is_one_example_per_use() -> None:
    assert {path.stem for path in FILES} >= {
        "archive", "demo", "docs-site", "fixed-size", "monitor", "news", "topical", "trusted-seeds",
    }  # fmt: skip


def test_the_demonstration_needs_no_contact_because_it_never_leaves_the_machine() -> None:
    collection = read_collection(POLICIES / "demo.toml")
    assert collection.network.allow_private
    assert not collection.politeness.has_contact
    assert collection.cycle.period_s == 10


def test_the_archive_keeps_all_and_reads_its_seeds_from_the_file_beside_it() -> None:
    collection = read_collection(POLICIES / "archive.toml")
    assert collection.repository.keep == "all"
    assert collection.seeds_file == POLICIES / "archive-seeds.txt"
    assert next(collection.seeds()) == "https://example.org/"


def test_the_monitor_counts_any_byte_and_follows_no_link() -> None:
    collection = read_collection(POLICIES / "monitor.toml")
    assert collection.change.min_change == 0
    assert collection.limits.depth == 0


def test_the_topical_example_does_not_follow_what_is_off_its_topic() -> None:
    collection = read_collection(POLICIES / "topical.toml")
    judge = Judge(collection, year=2026)
    assert collection.policy.topic is not None
    aside = judge.switched("default", PageFacts(200, "gardening", language="en", similarity=0.01))
    assert aside is not None
    assert not judge.policy(aside.to).follow
    assert judge.switched("default", PageFacts(200, "streams", language="en", similarity=0.3)) is None
    foreign = judge.switched("default", PageFacts(200, "Garten", language="de", similarity=0.3))
    assert foreign is not None
    assert foreign.to == "distrust"


def test_the_trusted_seeds_example_lets_trust_fade_and_takes_it_from_spam_with_all_that_it_brought() -> None:
    collection = read_collection(POLICIES / "trusted-seeds.toml")
    assert dict(collection.named_seeds())["https://www.good.example.org/"] == "favor"
    favor = collection.policies["favor"]
    assert (favor.trust, favor.dampening, favor.splitting, favor.spread) == (1.0, 0.85, True, "domain")
    assert (collection.policies["known-good"].splitting, collection.policies["known-good"].spread) == (True, "site")
    rule = collection.rules.find("https://www.library.example.edu/catalogue")
    assert rule is not None
    assert (rule.policy, rule.trust) == ("known-good", 0.8)
    [switch] = collection.tables.switch
    assert (switch.to, switch.also, collection.conflict) == ("distrust", "discovered", "most-trusted")
    assert collection.limits.domain_share == 0.05


def test_the_fixed_size_example_has_a_size_and_ranks_what_it_keeps() -> None:
    collection = read_collection(POLICIES / "fixed-size.toml")
    assert collection.limits.pages == 100_000
    assert collection.ranking.every == 86_400.0
