"""Debian's Chromium with its sandbox on, run by an unprivileged user and driven over its DevTools protocol."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["AXE", "TIMEOUT_MS", "browser", "violations"]

AXE: Final = Path(
    os.environ.get("WEBFOUNTAIN_TEST_AXE")
    or Path(__file__).resolve().parents[3] / ".venv" / "axe" / "package" / "axe.min.js"
)
"""Where `tests/browser-packages.sh` puts axe-core."""
TIMEOUT_MS: Final = 240_000
"""A busy machine must not break a test."""
_USER: Final = "nobody"
_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium, and yield playwright's browser. Skip, saying so, where something is missing."""
    chromium = shutil.which("chromium")
    missing = [] if chromium else ["chromium"]
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing.append("playwright")
    if not AXE.is_file():
        missing.append("axe-core")
    if missing:
        pytest.skip(f"NOT RUN: pages in a browser need {', '.join(missing)} (sh tests/browser-packages.sh)")
    home = tempfile.mkdtemp(prefix="webfountain-chromium-")
    user = _user(home)
    command = [str(chromium), "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={home}"]
    command += [
        "--no-first-run",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "about:blank",
    ]
    environment = {"HOME": home, "PATH": os.environ["PATH"], "TZ": "America/New_York", "LANG": "C.UTF-8"}
    process = subprocess.Popen(command, cwd=home, env=environment, stderr=subprocess.PIPE, text=True, **user)
    try:
        with sync_playwright() as driver:
            yield driver.chromium.connect_over_cdp(_address(process), timeout=TIMEOUT_MS)
    finally:
        process.terminate()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
        shutil.rmtree(home, ignore_errors=True)


def violations(page: Any) -> list[str]:
    """What axe-core finds against WCAG 2.2 AA on a page: rule and element."""
    page.evaluate(AXE.read_text(encoding="utf-8"))  # by the debugger, which the page's own policy does not bind
    found = page.evaluate("rules => axe.run(document, {runOnly: {type: 'tag', values: rules}})", _RULES)
    return [
        f"{each['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def _user(home: str) -> dict[str, Any]:
    """The unprivileged user that runs Chromium, whose sandbox refuses root."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam(_USER)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _address(process: subprocess.Popen[str]) -> str:
    """The address at which Chromium listens, from its standard error, which is read to the end thereafter."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if (found := re.search(r"DevTools listening on (ws://\S+)", line)) is not None:
            threading.Thread(target=_read_on, args=(process.stderr,), daemon=True).start()
            return found[1]
    raise AssertionError("Chromium ended: " + "".join(said[-5:]))


def _read_on(stream: IO[str]) -> None:
    """Read what Chromium says until it is closed, so that it is never held up."""
    with contextlib.suppress(ValueError):
        while stream.readline():
            pass
