"""The policy files in ``policies/`` are loaded, and are what their first lines say."""

from __future__ import annotations

from pathlib import Path

import pytest

from webfountain.policy.files import describe, read_collection

POLICIES = Path(__file__).resolve().parents[2] / "policies"
FILES = sorted(POLICIES.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_is_a_valid_collection_named_like_its_file(path: Path) -> None:
    collection = read_collection(path)
    assert collection.name == path.stem
    assert describe(collection)["collection"]["seeds"] == len(list(collection.seeds())) > 0


def test_there_is_one_example_per_use() -> None:
    assert {path.stem for path in FILES} >= {"archive", "demo", "docs-site", "monitor", "news"}


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
    assert collection.depth == 0
