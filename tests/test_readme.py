"""README.md is the manual: its tables follow from the code, and everything a user can type is in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_args

import click
import pytest

from tests.manual import MEANING, README, policy_table, settings_table, with_tables
from webfountain import cli
from webfountain.policy.files import parse_collection
from webfountain.records import STATES, OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = README.read_text(encoding="utf-8")
COMMON = {"--help", "--json", "--store"}
"""Options that the README tells of all commands at once."""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name."""
    for name in cli.COMMANDS:
        found = cli.command_of(name)
        if isinstance(found, click.Group):
            yield from ((f"{name} {each}", command) for each, command in found.commands.items())
        else:
            yield name, found


def row_of(name: str) -> str:
    """The line of the command table that tells of a command."""
    rows = [line for line in TEXT.splitlines() if line.startswith(f"| `{name}")]
    assert rows, f"README.md has no row for `webfountain {name}`"
    return " ".join(rows)


def test_the_tables_are_those_that_the_code_gives() -> None:
    """After a change: ``python -m tests.manual``."""
    assert with_tables(TEXT) == TEXT


def test_every_key_of_a_policy_file_is_explained_once() -> None:
    keys = set(re.findall(r"^\| `([a-z_.]+)`", policy_table(), re.MULTILINE))
    assert keys == MEANING.keys()


def test_every_setting_is_in_the_table() -> None:
    assert settings_table().count("WEBFOUNTAIN_") >= 10


@pytest.mark.parametrize(("name", "command"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_every_option_of_every_command_is_told(name: str, command: click.Command) -> None:
    row = row_of(name)
    options = {max(each.opts, key=len) for each in command.params if isinstance(each, click.Option)}
    told = {option for option in options - COMMON if option in row or option.replace("settings", "s") in row}
    assert options - COMMON - told <= {"--settings", "--repository"}, row


def test_every_outcome_and_state_is_named() -> None:
    own = set(get_args(OutcomeKind)) - {"refused"}
    assert not [word for word in (*own, *STATES) if f"`{word}`" not in TEXT]


def test_the_example_collection_is_one() -> None:
    block = re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert block is not None
    collection = parse_collection(block[1], README)
    assert collection.name == "mine"


def test_links_and_files_that_are_named_exist() -> None:
    root = README.parent
    for target in re.findall(r"\]\(([^)h][^)]*)\)", TEXT):
        assert (root / target).exists(), target
    for target in re.findall(r"`(tests/[\w/.]+\.py)`", TEXT):
        assert (root / target).exists(), target


def test_every_make_target_that_is_named_exists() -> None:
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`?make ([a-z]+)", TEXT)) - {"it"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
