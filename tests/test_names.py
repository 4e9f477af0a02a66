# ruff: noqa: SIM905 - lists of words
"""Names: a class is a noun, no verb of a conversation is a name, and docs/classes.md lists every class."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.manual import CLASS_ROOMS, DOCS, public_classes

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted([*(ROOT / "webfountain").rglob("*.py"), *(ROOT / "tests").rglob("*.py")])

BANNED = frozenset(
    "watch watches watched watching look looks looked looking hear hears heard hearing tell tells told telling".split()
)
"""DESIGN, section 1: verbs of a conversation are no names."""
NOUNS = frozenset({"Embed", "Feed", "Index", "Seed", "Need", "Speed", "Thread", "Head", "Token", "Queue", "Hidden"})
"""Last words of class names that look like a participle and are nouns."""
ADVERBS = frozenset("Again Alone Anew Away Else In Nothing Off On Out Over Unreachable Up".split())
"""Last words that make a class name a clause."""
CLAUSES = frozenset(
    "CursorLost NameMissing NotConverged PickleRefused RepositoryHeld StoreAway StoreBound StoreHeld".split()
)
"""Exceptions: their names say what happened."""
COMMON = frozenset(
    "bounds buffer connection content context conversion copies correction count data disk drain end eraser "
    "estimate exchange fifo group holder interval key leasing lending limit load maintenance parser pause "
    "poll position progress random reader report resume return revisable robin robots room script source "
    "spending state table trim use value writer".split()
)
"""Words of programming, and words that the glossary has in another form."""
IRREGULAR = frozenset(
    "Borne Bound Built Caught Dealt Drawn Found Given Gone Held Kept Known Laid Left Lent Lost Made Met Paid Put Read "
    "Said Seen Sent Set Shown Spent Stood Struck Taken Taught Thought Told Unheld Unseen Won Worn Written".split()
)


def place_of(path: Path, name: str) -> str:
    return f"{path.relative_to(ROOT)}: {name}"


@cache
def names_in(path: Path) -> tuple[set[str], set[str]]:
    """Names of the classes of a module, and of its functions, arguments, variables and attributes of `self`."""
    classes, found = set[str](), set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            classes.add(node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return classes, found


def words_of(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def is_no_noun(name: str) -> bool:
    """Whether a class is named by a participle or a clause, as ``Taken``, ``_Judged`` or ``SitePutOff``."""
    last = re.findall(r"[A-Z][a-z]+|$", name)
    word = last[-2] if len(last) > 1 else ""
    if word in NOUNS or name in CLAUSES:
        return False
    return word in ADVERBS or word in IRREGULAR or word.endswith("ed")


def test_the_rule_for_classes_sees_a_participle_behind_other_words() -> None:
    """A rule for single words would let ``PageTaken`` pass."""
    assert [name for name in ("_Judged", "PageTaken", "SitePutOff", "Alone") if not is_no_noun(name)] == []
    assert [name for name in ("Feed", "ServerFeed", "LeaseEnd", "SlotLending", "URL") if is_no_noun(name)] == []


def test_a_class_is_a_noun() -> None:
    assert not [place_of(path, name) for path in FILES for name in names_in(path)[0] if is_no_noun(name)]


def test_no_verb_of_a_conversation_is_a_name() -> None:
    names = ((path, name) for path in FILES for name in set().union(*names_in(path), [path.stem]))
    assert not [place_of(path, name) for path, name in names if BANNED & set(words_of(name))]


@pytest.mark.parametrize("room", CLASS_ROOMS)
def test_the_list_of_classes_has_exactly_the_public_classes(room: str) -> None:
    """After a new class or another name: ``python -m tests.manual``."""
    text = (DOCS / "classes.md").read_text(encoding="utf-8").partition(f"## {room}\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert listed == {node.name for _, node in public_classes(room)}


def test_every_class_in_the_list_says_what_it_is() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| `[\w.]+` \| *(.*?) *\|$", (DOCS / "classes.md").read_text(encoding="utf-8"), re.M
    )
    assert not [name for name, sentence in rows if len(sentence.split()) < 3]


def test_the_glossary_has_every_word_of_the_frontier_s_classes() -> None:
    """The last word of a public class is its noun: each is a word of the glossary, or a common word of programming."""
    words = set(re.findall(r"[a-z]+", (DOCS / "glossary.md").read_text(encoding="utf-8").lower()))
    nouns = {words_of(node.name)[-1] for room in CLASS_ROOMS for _, node in public_classes(room)}
    known = words | COMMON | {f"{word}s" for word in words} | {f"{word}s" for word in COMMON}
    assert not sorted(noun for noun in nouns if noun not in known and noun.removesuffix("s") not in known)
