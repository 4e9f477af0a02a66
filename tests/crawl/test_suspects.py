"""A page that kills the crawl each time it is examined: its site is crawled without it, and then it has failed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.crawl.dying import DEADLY
from tests.servers.hostile import HostileServer

ROOT = Path(__file__).resolve().parents[2]
POLICY = """
[collection]
name = "deadly"
seeds = ["{site}"]
[politeness]
min_delay = "10ms"
delay_factor = 1
[network]
allow_private = true
"""


def crawl(folder: Path) -> int:
    """The status of one crawl until all is done, or until it dies."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "scrapy", "crawl", "fountain", "-a", "collection=deadly.toml"),
            *("-s", 'EXTENSIONS={"tests.crawl.dying.DyingExtension": 1}', "-s", "LOG_LEVEL=ERROR"),
            *("-s", f"WEBFOUNTAIN_STORE=rocksdb://{folder}/store", "-s", "WEBFOUNTAIN_UNTIL_IDLE=1"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "webfountain.settings"},
        timeout=120,
        check=False,
    ).returncode


def pages(folder: Path) -> dict[str, tuple[str, str | None]]:
    """State and error of each page by its path."""
    command = [sys.executable, "-m", "webfountain", "pages", "--jsonl", "--store", f"rocksdb://{folder}/store"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
    records = map(json.loads, done.stdout.splitlines())
    return {each["url"].removeprefix(each["site"]): (each["state"], each["error"]) for each in records}


def test_a_page_that_kills_the_crawl_keeps_nothing_from_being_crawled_and_fails_in_the_end(tmp_path: Path) -> None:
    with HostileServer("deadly") as server:
        (tmp_path / "deadly.toml").write_text(POLICY.format(site=server.sites["deadly"]))
        assert crawl(tmp_path) == -signal.SIGKILL
        assert crawl(tmp_path) == -signal.SIGKILL
        assert pages(tmp_path)["/good"] == ("crawled", None)  # before it, at the second try at latest
        assert crawl(tmp_path) == -signal.SIGKILL
        assert crawl(tmp_path) == 0
        assert pages(tmp_path) == {"/": ("crawled", None), "/good": ("crawled", None), "/bad": ("failed", "crashed")}


def test_the_killing_extension_and_the_server_use_the_same_word() -> None:
    assert DEADLY == b"whoever reads this dies"
