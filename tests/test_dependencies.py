"""What is imported is declared in pyproject.toml, and nothing else is: the package's imports, and the tests'."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
PROGRAMS = {"uvicorn", "pytest-cov", "pytest-xdist", "mypy", "ruff", "scrapyd", "scrapyd-client", "setuptools"}
"""Of the extra `test`: run, or loaded by pytest, and not imported."""
LOADED_BY = {"scrapyd"}
"""What loads a module of ours, which therefore may import it and is of no use without it."""
DISTRIBUTIONS = packages_distributions()


def plain(name: str) -> str:
    """A distribution's name in the one form that PEP 503 compares."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(requirements: list[str]) -> set[str]:
    return {plain(re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0]) for requirement in requirements}


def imported(folder: str) -> set[str]:
    """The distributions that a folder's files import, also within functions and for types only."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {distribution_of(alias.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                found |= {distribution_of(f"{node.module}.{alias.name}") for alias in node.names}
    return found - {""}


def distribution_of(module: str) -> str:
    """The distribution that a module is of; empty for the standard library and for ourselves."""
    top, _, rest = module.partition(".")
    if top in sys.stdlib_module_names or top in ("webfountain", "tests", "compression"):
        return ""
    if top == "backports":  # many distributions share the name
        return plain(f"{top}.{rest.partition('.')[0]}")
    return plain(DISTRIBUTIONS.get(top, [top])[0])  # of the extra `benchmark`, which need not be installed


def test_the_package_imports_what_it_declares_and_declares_what_it_imports() -> None:
    runtime, extras = declared(PROJECT["dependencies"]), declared(EXTRAS["plots"]) | declared(EXTRAS["mcp"])
    assert imported("webfountain") - extras - LOADED_BY == runtime


def test_the_tests_import_what_the_package_and_their_extras_declare() -> None:
    runtime, test = declared(PROJECT["dependencies"]), declared(EXTRAS["test"])
    used = imported("tests") - declared(EXTRAS["benchmark"]) - declared(EXTRAS["browser"])
    assert used - runtime == test - PROGRAMS


def test_the_classifiers_name_each_python_from_the_oldest_allowed() -> None:
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", each)]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert named[0] == oldest
    assert named == [f"3.{minor}" for minor in range(int(oldest[2:]), int(oldest[2:]) + len(named))]
