"""An edited policy file is adopted or refused, once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from webfountain.policy.collection_file import read_collection
from webfountain.policy.edits import PolicyPoll

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """[collection]
name = "NAME"
seeds_file = "seeds.txt"
[politeness]
user_agent = "bot/1 (+https://example.org/bot)"
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "seeds.txt").write_text("https://a.example/\n")
    write(tmp_path / "mine.toml")
    return tmp_path / "mine.toml"


def write(path: Path, more: str = "", *, name: str = "mine") -> None:
    """As an editor saves: a new file moved into the place of the old one."""
    new = path.with_suffix(".new")
    new.write_text(HEAD.replace("NAME", name) + more)
    os.replace(new, path)


def test_nothing_is_read_while_no_file_changes(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    assert [poll.poll() for _ in range(3)] == [None] * 3


def test_an_edit_is_returned_once(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    write(policy, "[policies.default]\ndeny = ['/x/']\n")
    edit = poll.poll()
    assert edit is not None
    assert edit.collection is not None
    assert edit.collection.policy.deny[0].pattern == "/x/"
    assert poll.poll() is None


def test_a_broken_edit_is_refused_in_one_line_and_a_mended_one_adopted(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    write(policy, "[policies.default]\ndeny = ['(']\n")
    broken = poll.poll()
    assert broken is not None
    assert broken.collection is None
    assert broken.error is not None
    assert "policies.default.deny[0]" in broken.error
    assert poll.poll() is None
    write(policy)
    mended = poll.poll()
    assert mended is not None
    assert mended.collection is not None


def test_a_file_that_is_gone_for_a_moment_is_refused_and_keeps_the_old_one(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    policy.unlink()
    gone = poll.poll()
    assert gone is not None
    assert gone.collection is None


def test_an_edited_seeds_file_counts(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    policy.with_name("seeds.txt").write_text("https://a.example/\nhttps://b.example/\n")
    edit = poll.poll()
    assert edit is not None
    assert edit.collection is not None
    assert list(edit.collection.seeds()) == ["https://a.example/", "https://b.example/"]


def test_tables_that_the_crawl_was_built_from_are_named_for_they_wait(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    write(policy, 'min_delay = "2s"\n[cycle]\nperiods = 3\n')
    edit = poll.poll()
    assert edit is not None
    assert edit.waits == ("politeness", "cycle")


@pytest.mark.parametrize(
    ("added", "waits"),
    [
        (
            "[collection.limits]\npages = 9\ndomain_share = 0.5\n",
            ("collection.limits.pages", "collection.limits.domain_share"),
        ),
        ("[discovery]\nnofollow = false\nmax_url_length = 99\n", ("discovery.nofollow",)),
        ("[duplicates]\ndetect = true\n", ("duplicates",)),
        ("[policies.default]\ntopic = { query = 'x y' }\n", ("policies (score, topic)",)),
        ("[ranking]\nevery = '1d'\n", ("ranking",)),
        ("[policies.default]\ntrust = 0.1\n", ()),
    ],
)
def test_what_waits_for_the_next_start_is_named_key_by_key(policy: Path, added: str, waits: tuple[str, ...]) -> None:
    poll = PolicyPoll(read_collection(policy))
    policy.write_text(f"{policy.read_text()}\n{added}")
    edit = poll.poll()
    assert edit is not None
    assert edit.error is None
    assert edit.waits == waits


def test_a_running_crawl_does_not_become_another_collection(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    write(policy, name="other")
    edit = poll.poll()
    assert edit is not None
    assert edit.collection is None
