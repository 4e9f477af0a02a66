"""The command lines of README and docs run: each on a crawled store, unless it says here why it does not."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING, Final

import pytest

from tests.frontier.drive import Drive, collection_of
from tests.test_documents import TYPED
from webfountain.cli import main
from webfountain.clock import ManualClock
from webfountain.repository.repository import Repository
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch

SITES: Final = ("https://example.org", "https://docs.example.org", "http://shop.example")
NOT_RUN: Final = {
    "crawl": "runs until it is ended; tests/acceptance run it",
    "demo": "takes a minute; tests/lab/commands run it",
    "serve": "runs until it is ended; tests/service run it",
    "mcp": "reads standard input; tests/service run it",
    "--follow": "runs until it is ended",
    "redis://": "needs a server; tests/store/shared run these commands",
    "--events": "needs a recorded trace",
    "--graph": "needs a graph",
    "findings": "solves for a minute; tests/lab run it",
    "figures": "draws for half a minute; tests/lab run it",
    "SPIDER": "names the store of a spider",
    "unblock": "needs a crawl that has read the block; tests/frontier/inbox run it",
}
"""Word of a command line -> why it is not run here."""
POLICY: Final = """
[collection]
name = "test"
seeds = ["https://example.org/"]
[politeness]
user_agent = "mine/1.0 (+https://example.org/bot)"
"""
VALUES: Final = {
    "URL": "https://example.org/news",
    "FILE": "mine.toml",
    "STORE": "rocksdb://news",
    "http://win.spam.biz/": "https://example.org/news",
    "policies/mine.toml": "mine.toml",
}
"""Word of a document -> its value here."""


def answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
    if fetch.kind == "robots":
        return 404, {}, b"", 0.01
    links = "".join(f"<a href='/{name}'>{name}</a>" for name in ("news", "draft", "x", "7"))
    text = f"<title>{fetch.url}</title><p>A new release, a draft of {fetch.url}</p>{links}"
    return 200, {"content-type": "text/html"}, text.encode(), 0.01


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stores `news` and `.webfountain`, a search index and a policy file."""
    home = tmp_path_factory.mktemp("documented")
    rules = collection_of([f"{site}/" for site in SITES], min_delay="10ms", delay_factor=0, period="5m")
    store = open_store(f"rocksdb://{home}/news", collection="test", period_s=300.0, fastest_s=rules.cycle.fastest_s)
    kept = Repository(home / "news" / "repository", rules=rules.repository)
    drive = Drive(rules, answer, store=store, repository=kept, clock=ManualClock(1_760_000_000.0))
    drive.run(seconds=60.0)
    drive.frontier.close()
    assert main(["index", "--store", f"rocksdb://{home}/news"]) == 0
    shutil.copytree(home / "news", home / ".webfountain")
    (home / "mine.toml").write_text(POLICY, encoding="utf-8")
    return home


def lines() -> list[str]:
    """Each command line once, without usage lines, bare names and the help."""
    found = dict.fromkeys(line for _, line in TYPED if "[" not in line and "--help" not in line and "…" not in line)
    return [line for line in found if len(line.split()) > 2 or line.split()[1] in ("status", "check")]


def why_not(line: str) -> str | None:
    command, *rest = line.split()[1:]
    return next((why for word, why in NOT_RUN.items() if word == command or word in " ".join(rest)), None)


@pytest.mark.parametrize("line", [line for line in lines() if why_not(line) is None])
def test_a_command_line_that_is_shown_runs(
    line: str, stores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(stores, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    words = [VALUES.get(word, word) for word in shlex.split(line)[1:]]
    if words[0] in ("export", "import"):
        words = ["frontier.parquet" if word == "mine.toml" else word for word in words]
    if words[0] == "import":
        assert main(["export", "frontier.parquet"]) == 0
        words = ["rocksdb://imported" if word == VALUES["URL"] else word for word in words]
    if "CURSOR" in words:
        capsys.readouterr()
        assert main(["texts", "--json"]) == 0
        cursor = capsys.readouterr().out.rpartition('"cursor"')[2].split('"')[1]
        words = [cursor if word == "CURSOR" else word for word in words]
    assert main(words) == 0, capsys.readouterr().err


def test_every_reason_not_to_run_a_line_is_used() -> None:
    assert {why_not(line) for line in lines()} - {None} == set(NOT_RUN.values())
