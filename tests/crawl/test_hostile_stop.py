"""A crawl ends when it is told to, also while hostile pages are read; hostile feeds end none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.servers.hostile import HostileServer

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
POLICY = """
[collection]
name = "hostile"
seeds = {seeds}
limits = {{ depth = 2 }}
[politeness]
min_delay = "10ms"
delay_factor = 1
[network]
allow_private = true
"""
FEEDS = ("sitemap-of-ampersands", "sitemap-of-empty-members", "sitemap-with-an-emoji", "sitemap-bomb")


def start(folder: Path, server: HostileServer, *options: str) -> subprocess.Popen[bytes]:
    """A crawl of all the server's sites."""
    (folder / "hostile.toml").write_text(POLICY.format(seeds=json.dumps(sorted(server.sites.values()))))
    command = ["crawl", "hostile.toml", "--store", f"rocksdb://{folder}/store", "--report", "report.json", *options]
    return subprocess.Popen(
        [sys.executable, "-m", "webfountain", *command], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


def reading_processes(pid: int) -> list[int]:
    """The processes in which a crawl has pages read."""
    children = [each for file in Path(f"/proc/{pid}/task").glob("*/children") for each in content_of(file).split()]
    return [
        int(child) for child in children if b"webfountain.sandbox" in content_of(Path(f"/proc/{int(child)}/cmdline"))
    ]


def content_of(file: Path) -> bytes:
    """A file of /proc, or nothing if its thread or process has ended since it was listed."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.fixture
def bombs() -> Iterator[HostileServer]:
    with HostileServer("many-bombs") as server:
        yield server


def test_sigterm_ends_a_crawl_and_its_children_while_bombs_are_read(tmp_path: Path, bombs: HostileServer) -> None:
    crawl = start(tmp_path, bombs)
    try:
        until = time.monotonic() + 240
        while not (children := reading_processes(crawl.pid)) and time.monotonic() < until:
            time.sleep(0.05)
        assert children
        crawl.send_signal(signal.SIGTERM)
        assert crawl.wait(timeout=240) == 0
    finally:
        crawl.kill()
        crawl.wait()
    assert json.loads((tmp_path / "report.json").read_bytes())["finish_reason"] == "shutdown"
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def test_a_crawl_of_bombs_ends_when_its_seconds_are_over(tmp_path: Path, bombs: HostileServer) -> None:
    crawl = start(tmp_path, bombs, "--max-seconds", "4")
    assert crawl.wait(timeout=120) == 0
    assert json.loads((tmp_path / "report.json").read_bytes())["finish_reason"] == "max_seconds"


def test_hostile_feeds_end_no_crawl_and_what_can_be_read_of_them_is_crawled(tmp_path: Path) -> None:
    with HostileServer(*FEEDS) as server:
        crawl = start(tmp_path, server, "--until-idle")
        assert crawl.wait(timeout=180) == 0
        report = json.loads((tmp_path / "report.json").read_bytes())
    assert report["finish_reason"] == "idle"
    assert report["new"] >= 3 * (len(FEEDS) + 1)
