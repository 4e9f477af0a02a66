"""The shape of the house: one idea a file, bounded classes and functions, no circles, nothing defined in a door.

Each bound has a list of offenders with the size that each has today. A size may only shrink, an offender that has come
within the bound leaves the list, nobody joins it: the lists are to be empty in the end.
"""

from __future__ import annotations

import ast
import statistics
from typing import TYPE_CHECKING

import pytest

from tests.scenario_files import SCENARIOS, files_of_tests, has_module
from tests.source_trees import FILES, name_of, nodes_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODULE_LINES = 450
CLASS_LINES = 300
CLASS_METHODS = 25
ARGUMENTS = 8
FUNCTION_LINES = 40
MEDIAN_MODULE = 230
MAX_QUESTIONS = 8
WORKER_AND_FACADE = (
    "frontier.frontier",
    "frontier.orders",
    "frontier.worker.store_worker",
    "frontier.worker.settlement",
)

LONG_MODULES: dict[str, int] = {}
"""Module -> lines."""
LONG_CLASSES: dict[str, int] = {}
"""module:class -> lines."""
CLASSES_OF_MANY_METHODS: dict[str, int] = {}
"""module:class -> methods."""
LONG_CONSTRUCTORS: dict[str, int] = {}
"""module:class -> arguments of `__init__`, `self` apart."""
LONG_FUNCTIONS_TODAY: dict[str, int] = {}
"""module:function -> lines without the docstring."""
SEAMS: dict[str, int] = {}
"""Module -> constants that stand after its first definition."""
DEFINING_DOORS: dict[str, int] = {}
"""Package -> definitions in its `__init__.py`."""
QUESTIONS: dict[str, int] = {}
"""Module -> lines that ask whether a feature of the object itself is there (`self._x is None`)."""
TYPE_CIRCLES: dict[str, int] = {}
"""First of some modules that import each other, imports for types counted -> how many they are."""


NAMES = {name_of(path) for path in FILES}


def classes() -> list[tuple[str, ast.ClassDef]]:
    return [
        (f"{name_of(path)}:{node.name}", node)
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef)
    ]


def lines_of(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From its first line to its last, without the docstring."""
    assert node.end_lineno is not None
    first = node.body[0]
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if text else 0
    return node.end_lineno - node.lineno + 1 - docstring


def module_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def constructor_arguments(node: ast.ClassDef) -> int:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            arguments = each.args
            return len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]) - 1
    return 0


def is_definition(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def is_constant(node: ast.stmt, defined: set[str]) -> bool:
    """An assignment that could stand on top; one that needs a class or function of the module has to stand below it."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    return not any(isinstance(each, ast.Name) and each.id in defined for each in ast.walk(node.value))


def seams_of(path: Path) -> int:
    body = tree_of(path).body
    first = next((i for i, node in enumerate(body) if is_definition(node)), len(body))
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    return sum(is_constant(node, defined) for node in body[first:])


def definitions_in_door(path: Path) -> int:
    return sum(is_definition(node) for node in tree_of(path).body) if path.name == "__init__.py" else 0


def questions_of(path: Path) -> int:
    """Lines that compare an attribute of `self` with None."""
    return len(
        {
            node.lineno
            for node in nodes_of(path)
            if isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.Is | ast.IsNot)
            and isinstance(node.comparators[0], ast.Constant)
            and node.comparators[0].value is None
            and isinstance(node.left, ast.Attribute)
            and isinstance(node.left.value, ast.Name)
            and node.left.value.id == "self"
        }
    )


def imports_of(path: Path) -> set[str]:
    """Modules of the package that a file imports at its top, those for types too."""
    found = set[str]()
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("webfountain"):
            module = node.module.partition(".")[2] or "__init__"
            inside = {f"{module}.{alias.name}" for alias in node.names} & NAMES
            found |= inside or ({module} & NAMES)
    return found - {name_of(path)}


def circles() -> dict[str, int]:
    """Strongly connected modules of more than one, by Tarjan's algorithm without recursion."""
    graph = {name_of(path): sorted(imports_of(path)) for path in FILES if path.name != "__init__.py"}
    reach = {name: closure(name, graph) for name in graph}
    found = set[frozenset[str]]()
    for name in graph:
        group = frozenset(each for each in reach[name] if each in graph and name in reach[each])
        if len(group) > 1:
            found.add(group)
    return {min(group): len(group) for group in found}


def closure(name: str, graph: dict[str, list[str]]) -> set[str]:
    seen, left = set[str](), [name]
    while left:
        for each in graph.get(left.pop(), ()):
            if each not in seen:
                seen.add(each)
                left.append(each)
    return seen


def above(sizes: dict[str, int], bound: int) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if size > bound}


def long_functions() -> dict[str, int]:
    sizes = {
        f"{name_of(path)}:{node.name}": lines_of(node)
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return above(sizes, FUNCTION_LINES)


def feature_questions() -> dict[str, int]:
    asked = {name: questions_of(path) for path in FILES if (name := name_of(path)) in WORKER_AND_FACADE}
    return above(asked, MAX_QUESTIONS)


def each_module(size: Callable[[Path], int], bound: int) -> Callable[[], dict[str, int]]:
    return lambda: above({name_of(path): size(path) for path in FILES}, bound)


def each_class(size: Callable[[ast.ClassDef], int], bound: int) -> Callable[[], dict[str, int]]:
    return lambda: above({name: size(node) for name, node in classes()}, bound)


MEASURES: dict[str, tuple[Callable[[], dict[str, int]], dict[str, int]]] = {
    "lines of a module": (each_module(module_lines, MODULE_LINES), LONG_MODULES),
    "lines of a class": (each_class(lines_of, CLASS_LINES), LONG_CLASSES),
    "methods of a class": (
        each_class(lambda node: sum(map(is_definition, node.body)), CLASS_METHODS),
        CLASSES_OF_MANY_METHODS,
    ),
    "arguments of a constructor": (each_class(constructor_arguments, ARGUMENTS), LONG_CONSTRUCTORS),
    "lines of a function": (long_functions, LONG_FUNCTIONS_TODAY),
    "constants after a definition": (each_module(seams_of, 0), SEAMS),
    "definitions in a door": (each_module(definitions_in_door, 0), DEFINING_DOORS),
    "questions after features": (feature_questions, QUESTIONS),
    "modules in a circle": (circles, TYPE_CIRCLES),
}
"""What is measured -> what is beyond its bound now, and what may be."""


@pytest.mark.parametrize("what", MEASURES)
def test_no_bound_is_exceeded_except_as_listed(what: str) -> None:
    measure, allowed = MEASURES[what]
    beyond = {name: size for name, size in measure().items() if size > allowed.get(name, 0)}
    assert not beyond, f"{what}: beyond the bound, or grown: {beyond}"


@pytest.mark.parametrize("what", MEASURES)
def test_each_listed_size_is_the_measured_one(what: str) -> None:
    measure, allowed = MEASURES[what]
    now = measure()
    shrunk = {name: now.get(name, 0) for name, size in allowed.items() if now.get(name, 0) < size}
    assert not shrunk, f"{what}: write down what they have now (0: take them off the list): {shrunk}"


def test_a_module_is_as_long_as_one_idea() -> None:
    """The median, doors apart: an idea takes some hundred lines."""
    assert statistics.median(module_lines(path) for path in FILES if path.name != "__init__.py") <= MEDIAN_MODULE


def test_a_test_file_is_named_after_its_module_or_listed_as_a_scenario() -> None:
    listed = {name for names in SCENARIOS.values() for name in names}
    strangers = [name for name in files_of_tests() if name not in listed and not has_module(name)]
    assert not strangers, "rename them, or list them in tests/scenario_files.py"


def test_each_listed_scenario_exists_and_has_no_module_of_its_name() -> None:
    listed = {name for names in SCENARIOS.values() for name in names}
    assert not {name for name in listed if has_module(name)} | (listed - set(files_of_tests()))
