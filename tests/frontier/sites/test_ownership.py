"""An object's state is written by that object alone: held over the syntax tree of the frontier's rooms."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SITES = ROOT / "webfountain" / "frontier" / "sites"
PARTS = {
    "ActiveSite": SITES / "site.py",
    "Place": SITES / "addresses.py",
    "SiteFiles": SITES / "site_files.py",
    "SitePages": SITES / "site_pages.py",
    "Hand": SITES / "hand.py",
    "SiteRobots": SITES / "site_files.py",
    "SitePoliteness": SITES / "politeness.py",
    "SiteRanking": SITES.parent / "planning" / "site_ranking.py",
    "UrgentSite": SITES.parent / "planning" / "urgent_site.py",
}
FILES = sorted((ROOT / "webfountain" / "frontier").rglob("*.py")) + sorted(
    (ROOT / "webfountain" / "crawl").glob("*.py")
)
NAMEDTUPLE = {"_replace", "_asdict"}


def attributes_of(name: str) -> set[str]:
    """The `__slots__` of a class."""
    for node in ast.walk(ast.parse(PARTS[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and node.name == name:
            for statement in node.body:
                if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__slots__":
                    return set(ast.literal_eval(statement.value))
    raise AssertionError(f"{name} has no __slots__")


def written(tree: ast.AST) -> list[ast.Attribute]:
    """Every attribute that is assigned to, added to or deleted, of anything but `self`."""
    targets: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.Delete):
            targets += node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets.append(node.target)
    flat = [each for target in targets for each in ast.walk(target) if isinstance(each, ast.Attribute)]
    return [each for each in flat if isinstance(each.ctx, ast.Store | ast.Del) and not is_self(each.value)]


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


@pytest.mark.parametrize("part", PARTS)
def test_nothing_outside_a_site_writes_its_attributes(part: str) -> None:
    own = attributes_of(part)
    assert len(own) >= 5
    outside = [
        f"{path.relative_to(ROOT)}:{each.lineno}: {ast.unparse(each)}"
        for path in FILES
        for each in written(ast.parse(path.read_text(encoding="utf-8")))
        if each.attr in own
    ]
    assert outside == []


def test_nothing_in_the_frontier_reaches_into_the_private_parts_of_another_object() -> None:
    inside = [path for path in FILES if "frontier" in path.relative_to(ROOT).parts]
    pokes = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in inside
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if not is_self(node.value) and node.attr not in NAMEDTUPLE
    ]
    assert pokes == []


def test_the_tests_of_the_sites_ask_for_statistics_and_not_for_private_attributes() -> None:
    frontier = ROOT / "tests" / "frontier"
    tests = [*(frontier / "sites").glob("*.py"), frontier / "drive.py", frontier / "test_frontier.py"]
    pokes = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted(tests)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if not is_self(node.value) and ast.unparse(node.value) != "drive" and node.attr not in NAMEDTUPLE
    ]
    assert pokes == []
