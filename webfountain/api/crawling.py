"""Function that runs a crawl from a program: ``webfountain.run_crawl("policies/mine.toml", until_idle=True)``.

The crawl is a child process, because Scrapy's reactor starts only once in a process. The output and the log of the
crawl go to standard error.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webfountain.config import DEFAULT_STORE
from webfountain.errors import InputError, WebfountainError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["run_crawl"]


def run_crawl(
    policy: str | Path,
    *,
    store: str = DEFAULT_STORE,
    repository: str | Path | None = None,
    max_pages: int | None = None,
    max_seconds: float | None = None,
    until_idle: bool = False,
    ants: int | None = None,
    settings: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Crawl the collection of a policy file until one of the limits ends it, and return the report.

    Parameters
    ----------
    max_pages : end after this number of settled fetches
    max_seconds : end after this number of seconds
    until_idle : end when nothing is in flight and no new URL comes due within 60 s
    ants : number of crawling processes
    settings : further settings, as ``-s NAME=VALUE`` of the command line

    Raises
    ------
    InputError
        when the policy file or a setting is wrong.
    WebfountainError
        when the crawl failed. The message is the line that the command prints.
    """
    with tempfile.TemporaryDirectory(prefix="webfountain-") as folder:
        report = Path(folder) / "report.json"
        options = {"store": store, "report": report, "repository": repository, "ants": ants}
        limits = {"max-pages": max_pages, "max-seconds": max_seconds}
        command = [sys.executable, "-m", "webfountain", "crawl", str(policy), "--json"]
        command += [f"--{name}={value}" for name, value in {**options, **limits}.items() if value is not None]
        command += ["--until-idle"] if until_idle else []
        command += [part for name, value in (settings or {}).items() for part in ("-s", f"{name}={value}")]
        done = subprocess.run(  # noqa: S603 - our own interpreter and module
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["the crawl ended without a report; its log says why"]
            kind = InputError if done.returncode == 2 else WebfountainError
            raise kind(lines[-1].removeprefix("webfountain: "))
        sys.stderr.write(done.stderr)
        found: dict[str, Any] = json.loads(report.read_bytes())
        return found
