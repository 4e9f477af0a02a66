"""The wheel as a stranger installs it: in an empty folder, without the checkout, every door of it opens."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import webfountain
from tests.servers.town import Town

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("webfountain", "policies", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
BUILD = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel holds, as pip puts it into site-packages."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, source / part)
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(source)], cwd=source, capture_output=True, text=True, timeout=120, check=False
    )
    assert built.returncode == 0, built.stderr
    [wheel] = source.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def call(installed: Path, folder: Path, *line: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    environment.pop("SCRAPY_SETTINGS_MODULE", None)
    return subprocess.run(
        [sys.executable, *line], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_examples_are_in_the_wheel_and_checked_by_its_own_command(installed: Path, tmp_path: Path) -> None:
    held = installed / "webfountain" / "policies"
    assert {file.name for file in held.iterdir()} == {file.name for file in (ROOT / "policies").iterdir()}
    checked = call(installed, tmp_path, "-m", "webfountain", "policy", "check", *map(str, held.glob("*.toml")))
    assert checked.returncode == 0, checked.stderr


def test_the_pages_of_the_service_are_in_the_wheel(installed: Path) -> None:
    pages = Path("webfountain") / "service" / "pages"
    for folder in ("templates", "assets"):
        held = {file.name for file in (installed / pages / folder).iterdir()}
        assert held == {file.name for file in (ROOT / pages / folder).iterdir()}


def test_the_demonstration_runs_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    ended = call(
        installed, tmp_path, "-m", "webfountain", "demo", "--seconds", "2", "--pages", "10", "--sites", "2", "--json"
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["pages_fetched"] >= 10
    where = call(installed, tmp_path, "-c", "import webfountain; print(webfountain.__file__)").stdout
    assert Path(where.strip()).is_relative_to(installed)


def test_scrapy_crawls_a_collection_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    with Town(["127.0.0.1"], 1, 5) as town:
        (tmp_path / "mine.toml").write_text(
            f'[collection]\nname = "mine"\nseeds = {json.dumps(town.urls)}\n[network]\nallow_private = true\n'
            '[politeness]\nmin_delay = "1ms"\ndelay_factor = 0\n'
        )
        line = ["-m", "scrapy", "crawl", "fountain", "-a", "collection=mine.toml", "-O", "pages.jsonl"]
        ended = call(installed, tmp_path, *line, "-s", "WEBFOUNTAIN_UNTIL_IDLE=1", "-s", "LOG_LEVEL=WARNING")
    assert ended.returncode == 0, ended.stderr
    assert len((tmp_path / "pages.jsonl").read_text().splitlines()) == 5
    assert not [line for line in ended.stderr.splitlines() if "ERROR" in line]


def test_a_project_s_own_crawl_command_stays_as_it_is(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own.settings\n")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").touch()
    (tmp_path / "own" / "settings.py").write_text("BOT_NAME = 'own'\nSPIDER_MODULES = ['own']\n")
    ended = call(installed, tmp_path, "-m", "scrapy", "crawl", "fountain")
    assert ended.returncode != 0
    assert "Spider not found: fountain" in ended.stderr


def test_there_is_one_version_number(installed: Path, tmp_path: Path) -> None:
    [info] = installed.glob("webfountain-*.dist-info")
    assert info.name == f"webfountain-{webfountain.__version__}.dist-info"
    shown = call(installed, tmp_path, "-m", "webfountain", "--version").stdout
    assert webfountain.__version__ in shown
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == webfountain.__version__


LEAN = """
import sys
from webfountain.cli import main
status = main(sys.argv[1:])
heavy = sorted({name.partition(".")[0] for name in sys.modules} & {"pyarrow", "scipy", "matplotlib", "aiohttp"})
print("heavy:", *heavy)
sys.exit(status)
"""


def test_a_plain_crawl_and_its_listings_import_neither_pyarrow_nor_scipy(installed: Path, tmp_path: Path) -> None:
    with Town(["127.0.0.1"], 1, 3) as town:
        (tmp_path / "mine.toml").write_text(
            f'[collection]\nname = "mine"\nseeds = {json.dumps(town.urls)}\n[network]\nallow_private = true\n'
        )
        crawled = call(installed, tmp_path, "-c", LEAN, "crawl", "mine.toml", "--max-pages", "1")
    assert crawled.stdout.splitlines()[-1] == "heavy:", crawled.stdout + crawled.stderr
    for listing in ("status", "pages", "sites", "texts", "changes", "check"):
        assert call(installed, tmp_path, "-c", LEAN, listing).stdout.splitlines()[-1] == "heavy:", listing


PROGRAM = """
import webfountain

with webfountain.open("rocksdb://store") as collection:
    reveal_type(webfountain.open)
    reveal_type(collection.status().freshness)
    reveal_type(collection.changes(reader="index"))
    webfountain.nonsense
"""


@pytest.mark.soak
def test_a_type_checker_sees_the_public_names(installed: Path, tmp_path: Path) -> None:
    """Half a minute: it reads the whole product."""
    assert (installed / "webfountain" / "py.typed").exists()
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    command += ["--cache-dir", str(tmp_path / "cache"), "program.py"]
    environment = {**os.environ, "MYPYPATH": str(installed)}
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stdout
    notes = [line.partition(": ")[2] for line in found.splitlines()]
    assert [note for note in notes if note.startswith("error")] == [
        'error: Module has no attribute "nonsense"  [attr-defined]'
    ], found
    assert 'Revealed type is "' in notes[0]
    assert "Opening" in notes[0]
    assert "float | None" in notes[1]
    assert "webfountain.api.changes.PageChange" in notes[2]
