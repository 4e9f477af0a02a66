"""A policy file that is edited while its crawl runs: in force within seconds, or refused while the old one stays."""

from __future__ import annotations

import http.server
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.crawls import Crawl, policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE_S = 60.0


class Endless(http.server.BaseHTTPRequestHandler):
    """Every page links the next of both kinds."""

    asked: list[str]

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        number = int(self.path.rsplit("/", 1)[-1] or 0) if self.path != "/robots.txt" else 0
        body = f"<a href='/keep/{number + 1}'>k</a> <a href='/drop/{number + 1}'>d</a>".encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Not to the terminal."""


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("One", (Endless,), {"asked": asked})) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}/", asked
        served.shutdown()


def wait_for(what: Callable[[], bool], crawl: Crawl) -> None:
    until = time.monotonic() + PATIENCE_S
    while not what():
        assert crawl.process.poll() is None, crawl.errors.read_text()
        assert time.monotonic() < until, crawl.errors.read_text()
        time.sleep(0.05)


def test_an_edit_takes_effect_without_a_restart_and_a_broken_one_is_refused(
    tmp_path: Path, server: tuple[str, list[str]]
) -> None:
    seed, asked = server
    politeness = {"min_delay": "100ms", "delay_factor": 0}
    limits = {"depth": 10_000}
    file = policy(tmp_path, [seed], politeness=politeness, collection__limits=limits)
    with Crawl(file, tmp_path / "store", "-s", "LOG_LEVEL=INFO") as crawl:
        wait_for(lambda: sum("/drop/" in path for path in asked) >= 2, crawl)
        good = file.read_text()
        file.write_text(good + "[policies.default]\ndeny = ['(']\n")
        wait_for(lambda: "is invalid" in crawl.errors.read_text(), crawl)
        assert "policies.default.deny[0]" in crawl.errors.read_text()
        file.write_text(good + "[policies.default]\ndeny = ['/drop/']\n")
        wait_for(lambda: "is in force" in crawl.errors.read_text(), crawl)
        # What was under way when it came into force may still arrive.
        before = len(asked) + 1
        wait_for(lambda: len(asked) > before + 10, crawl)
        assert not [path for path in asked[before:] if "/drop/" in path]
        crawl.terminate()
        assert crawl.wait(PATIENCE_S) == 0
