"""The documents say what the code does: generated pages, links, commands, settings and examples are held to it."""

from __future__ import annotations

import re
import shlex
import tomllib
from typing import TYPE_CHECKING, get_args

import click
import pytest

from tests.manual import DOCS, MEANING, PAGES, README, ROOT, commands, policy_table
from webfountain.config import settings
from webfountain.policy.collection_file import parse_collection
from webfountain.records import STATES, OutcomeKind

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENTS = [README, ROOT / "CHANGELOG.md", ROOT / "tests" / "benchmarks" / "README.md", *sorted(DOCS.rglob("*.md"))]
PAGES_FOR_USERS = [README, *sorted(DOCS.glob("*.md"))]
FENCE = re.compile(r"^```([\w -]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
MINIMAL = """
[collection]
name = "x"
seeds = ["http://127.0.0.1/"]
[network]
allow_private = true
"""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(text: str) -> str:
    """A document without its code, tables, pictures and headings."""
    lines = FENCE.sub("", text).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("|", "#", "![", "- [")))


def typed(text: str) -> list[str]:
    """Command lines of a document that begin with `webfountain`."""
    blocks = "\n".join(block for language, block in FENCE.findall(text) if language in ("", "sh"))
    lines = [re.split(r"\s{2,}#", line.replace("\\\n", " "))[0] for line in blocks.splitlines()]
    inline = [" ".join(each.split()) for each in re.findall(r"`(webfountain [^`]+)`", FENCE.sub("", text))]
    return [line.strip() for line in (*lines, *inline) if line.strip().startswith("webfountain ")]


COMMANDS = dict(commands())
TYPED = [(name_of(path), line) for path in PAGES_FOR_USERS for line in typed(path.read_text(encoding="utf-8"))]
TOML = [
    (name_of(path), number, block)
    for path in PAGES_FOR_USERS
    for number, (language, block) in enumerate(FENCE.findall(path.read_text(encoding="utf-8")))
    if language == "toml" and "[[stores]]" not in block  # of the service, which has a test of its own
]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_generated_pages_are_those_that_the_code_gives(page: str) -> None:
    """After a change: ``python -m tests.manual``."""
    assert (DOCS / page).read_text(encoding="utf-8") == PAGES[page]()


def test_every_key_of_a_policy_file_is_explained_once() -> None:
    assert set(re.findall(r"^\| `([a-z_.]+)`", policy_table(), re.MULTILINE)) == MEANING.keys()


def test_every_outcome_and_state_is_named() -> None:
    text = (DOCS / "pages.md").read_text(encoding="utf-8")
    own = set(get_args(OutcomeKind)) - {"refused"}
    assert not [word for word in (*own, *STATES) if f"`{word}`" not in text]


@pytest.mark.parametrize(("page", "number", "block"), [pytest.param(*each, id=f"{each[0]}-{each[1]}") for each in TOML])
def test_an_example_of_a_policy_file_is_one(page: str, number: int, block: str) -> None:
    tables = tomllib.loads(block)
    text = block if "collection" in tables else MINIMAL + block
    assert parse_collection(text, ROOT / "policies" / f"{number}.toml").name, page


@pytest.mark.parametrize(("page", "line"), [pytest.param(*each, id=f"{each[0]}: {each[1]}") for each in TYPED])
def test_a_command_line_that_is_shown_can_be_typed(page: str, line: str) -> None:
    words = [word for word in shlex.split(line)[1:] if word not in ("…", "|")]
    if words[0] in ("COMMAND", "--help", "--version"):
        return
    name = next((each for each in (" ".join(words[:2]), words[0]) if each in COMMANDS), None)
    if name is None and len(words) == 1:
        name = next(each for each in COMMANDS if each.startswith(words[0]))
    assert name is not None, f"{page}: there is no such command: {line}"
    command = COMMANDS[name]
    known = {option for each in command.params if isinstance(each, click.Option) for option in each.opts} | {"--help"}
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert options <= known, f"{page}: {line}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_to_files_and_headings_that_exist(path: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", FENCE.sub("", path.read_text(encoding="utf-8"))):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}, target


@pytest.mark.parametrize("path", PAGES_FOR_USERS, ids=name_of)
def test_files_targets_and_settings_that_are_named_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"`((?:tests|webfountain|policies|deploy)/[\w/.-]+\.(?:py|toml|conf|md))`", text):
        assert (ROOT / target).exists() or target == "policies/mine.toml", target
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z-]+)|^make ([a-z-]+)", text, re.MULTILINE)):
        assert re.search(rf"^{''.join(target)}:", makefile, re.MULTILINE), target
    known = {each.name for each in settings()}
    assert not set(re.findall(r"`(WEBFOUNTAIN_[A-Z_]+[A-Z])\b", text)) - known


def test_every_benchmark_of_the_measurements_exists() -> None:
    for name in re.findall(r"`(bench_\w+)", (DOCS / "measurements.md").read_text(encoding="utf-8")):
        assert (ROOT / "tests" / "benchmarks" / f"{name}.py").exists(), name


def test_every_test_that_the_measurements_name_exists() -> None:
    for page in sorted((DOCS / "measurements").glob("*.md")):
        for name in re.findall(r"`(?:tests/)?((?:\w+/)*test_\w+\.py)", page.read_text(encoding="utf-8")):
            assert (ROOT / "tests" / name).exists(), f"{page.name}: {name}"


def test_every_extra_that_is_advised_is_one() -> None:
    """An outsider's finding: a message told people to install a name that nobody knew."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for path in (*DOCUMENTS, *sorted((ROOT / "webfountain").rglob("*.py"))):
        assert set(re.findall(r"webfountain\[(\w+)\]", path.read_text(encoding="utf-8"))) <= extras.keys(), path


def test_every_page_can_be_reached_from_the_readme() -> None:
    text = README.read_text(encoding="utf-8")
    assert not [path.name for path in DOCS.glob("*.md") if f"(docs/{path.name})" not in text]


def test_the_readme_can_be_read_in_one_go() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    assert len(text.split()) <= 2000
    sentences = [each for each in re.split(r"(?<=[.!?:])\s+", prose(text)) if each.strip()]
    assert sum(len(each.split()) for each in sentences) / len(sentences) <= 17
