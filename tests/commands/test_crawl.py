"""The command `crawl` and the signals that stop it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.acceptance.crawls import ROOT, Crawl, policy
from tests.servers.partition import SlowSites

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_S = 60.0
SWALLOWED = """
import os, signal, sys
from webfountain.commands import crawl
with crawl.exit_on_signals():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except SystemExit:
        pass
    crawl.run(sys.argv[1], {"WEBFOUNTAIN_STORE": sys.argv[2], "WEBFOUNTAIN_MAX_SECONDS": 1})
print("it crawled")
"""
"""Some modules drop every exception that is raised while they are imported."""


def wait_for(crawl: Crawl, what: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not what():
        assert crawl.process.poll() is None, crawl.errors.read_text()
        assert time.monotonic() < until, crawl.errors.read_text()
        time.sleep(0.05)


def test_a_signal_counts_though_a_module_that_was_imported_swallowed_its_exception(tmp_path: Path) -> None:
    file = policy(tmp_path, ["http://127.0.0.1:9/"])
    command = [sys.executable, "-c", SWALLOWED, str(file), f"rocksdb://{tmp_path / 'store'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "store").exists()


def test_a_second_signal_ends_the_crawl_at_once_and_says_so(tmp_path: Path) -> None:
    with SlowSites(1, page_s=PATIENCE_S, pages=10) as web:
        with Crawl(policy(tmp_path, web.urls), tmp_path / "store", "-s", "LOG_LEVEL=INFO") as crawl:
            wait_for(crawl, lambda: bool(sum(web.under_way.values())))
            crawl.terminate()
            wait_for(crawl, lambda: "Received SIGTERM" in crawl.errors.read_text())
            crawl.process.send_signal(signal.SIGINT)
            assert crawl.wait(PATIENCE_S) == 1
        assert crawl.errors.read_text().splitlines()[-1].startswith("webfountain: a second signal ended the crawl")
