# ruff: noqa: SIM905 - lists of words
"""Names: a class is a noun, no word of a conversation is a name, and the glossary knows the words of the frontier."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.manual import CLASS_ROOMS, DOCS, public_classes

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "webfountain").rglob("*.py"))

BANNED = frozenset(
    "watch watches watched watching look looks looked looking hear hears heard hearing tell tells told telling".split()
)
"""DESIGN, section 1: verbs of a conversation are no names."""
NOUNS = frozenset({"Embed", "Feed", "Index", "Seed", "Need", "Speed", "Thread", "Head", "Token", "Queue", "Hidden"})
"""Single words that look like a participle and are nouns."""
IRREGULAR = frozenset(
    "Borne Bound Built Caught Dealt Drawn Found Given Gone Held Kept Known Laid Left Lent Lost Made Met Paid Put Read "
    "Said Seen Sent Set Shown Spent Stood Struck Taken Taught Thought Told Unheld Unseen Won Worn Written".split()
)
UNLISTED = 8
"""Largest number of classes of a package that docs/classes.md may lack."""
BANNED_TODAY: dict[str, int] = {}
"""Module -> names with a banned verb; may only shrink."""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "webfountain").with_suffix("").parts)


def names_in(tree: ast.Module) -> set[str]:
    """Names that a module gives: of classes, functions, arguments, variables and attributes of `self`."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def words_of(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def is_bare_participle(name: str) -> bool:
    """Whether a class is named by one participle, as ``Taken`` or ``_Judged``."""
    word = name.lstrip("_")
    if not re.fullmatch(r"[A-Z][a-z]+", word) or word in NOUNS:
        return False
    return word in IRREGULAR or word.endswith("ed")


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_class_is_a_noun(path: Path) -> None:
    classes = [node.name for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)]
    assert not [name for name in classes if is_bare_participle(name)]


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_no_verb_of_a_conversation_is_a_name(path: Path) -> None:
    banned = sorted(name for name in names_in(tree_of(path)) if BANNED & set(words_of(name)))
    assert len(banned) <= BANNED_TODAY.get(module_of(path), 0), banned


@pytest.mark.parametrize("room", CLASS_ROOMS)
def test_every_public_class_has_a_line_in_the_list_of_classes(room: str) -> None:
    """After new classes: ``python -m tests.manual``. A few may be missing while several people add some at once."""
    listed = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "classes.md").read_text(encoding="utf-8"), re.MULTILINE))
    missing = sorted({node.name for _, node in public_classes(room)} - listed)
    assert len(missing) <= UNLISTED, missing
