"""Real crawls for the acceptance tests: a policy file, a crawl in a process of its own, its store read from outside.

Everything goes through the doors a user has: the command line, the policy file, the store opened read-only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from webfountain.errors import InputError
from webfountain.repository.repository import Pages
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.records import PageRecord

ROOT = Path(__file__).resolve().parents[2]
PATIENT = """
import sys
from webfountain import cli
from webfountain.commands import ants
ants.ANTS_S = 120.0
sys.exit(cli.main())
"""
"""The command line, whose ants may take minutes to end: on a busy machine they need more than its nine seconds."""

__all__ = ["PATIENT", "Crawl", "copies", "policy", "records", "run"]


def policy(folder: Path, seeds: Sequence[str], **tables: Mapping[str, object]) -> Path:
    """A policy file for loopback: quick, polite enough to be seen; `tables` replace or add keys of a table."""
    known: dict[str, dict[str, object]] = {
        "collection": {"name": "acceptance", "seeds": list(seeds)},
        "politeness": {"min_delay": "1ms", "delay_factor": 0, "timeout": "20s"},
        "network": {"allow_private": True},
        "cycle": {"period": "1d"},
    }
    for name, keys in tables.items():
        known.setdefault(name.replace("__", "."), {}).update(keys)
    lines = []
    for name, table in known.items():
        lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    file = folder / "policy.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)


class Crawl:
    """``webfountain crawl`` as a process; a context manager that kills what is still there at the end."""

    def __init__(self, collection: Path, store: Path, *options: str) -> None:
        self.report_file = store.with_name(store.name + ".report.json")
        self.errors = store.with_name(store.name + ".stderr")
        command = [sys.executable, "-m", "webfountain", "crawl", str(collection)]
        command += [f"--store=rocksdb://{store}", f"--report={self.report_file}", "--json", *options]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors)

    def wait(self, seconds: float) -> int:
        """The exit status."""
        return self.process.wait(seconds)

    def report(self) -> dict[str, Any]:
        """What the crawl says of itself."""
        found: dict[str, Any] = json.loads(self.report_file.read_bytes())
        return found

    def terminate(self) -> None:
        """SIGTERM, as an operator stops it."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: it cannot put anything in order."""
        self.process.kill()
        self.process.wait()

    def rss_bytes(self) -> int:
        """Memory of the process now."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def wait_for_pages(self, store: Path, many: int, *, seconds: float) -> None:
        """Until the store holds that many crawled pages."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, self.errors.read_text()
            if _crawled(store) >= many:
                return
            time.sleep(0.05)
        raise AssertionError(f"no {many} pages within {seconds} s: {self.errors.read_text()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.kill()


def run(collection: Path, store: Path, *options: str, seconds: float) -> dict[str, Any]:
    """A crawl from start to end; its report."""
    with Crawl(collection, store, *options) as crawl:
        assert crawl.wait(seconds) == 0, crawl.errors.read_text()
        return crawl.report()


def _crawled(store: Path) -> int:
    if not (store / "CURRENT").exists() and not any(store.glob("**/CURRENT")):
        return 0
    try:
        opened = open_store(f"rocksdb://{store}", collection=None, period_s=None, read_only=True)
    except InputError:
        return 0  # it is being made: the files are there before its first word
    try:
        return opened.census.statistics().pages["crawled"]
    finally:
        opened.close()


def records(store: Path) -> list[PageRecord]:
    """Every page record of a store, also of one that a crawl is writing."""
    opened = open_store(f"rocksdb://{store}", collection=None, period_s=None, read_only=True)
    try:
        return [record for _, record in opened.pages.records()]
    finally:
        opened.close()


def copies(store: Path) -> Pages:
    """The repository of a store, for reading."""
    return Pages(store / "repository")
