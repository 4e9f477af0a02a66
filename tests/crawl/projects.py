"""Somebody else's Scrapy project, written to a folder, run by `scrapy crawl`, and the site that it crawls."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Answer", "Project", "ReceivedRequest", "Site"]

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240
"""Seconds after which a process counts as hung; a busy machine needs many more than a quiet one."""


class ReceivedRequest(NamedTuple):
    """One request that the site got."""

    method: str
    path: str
    headers: dict[str, str]
    body: str


class Answer(NamedTuple):
    """What the site says."""

    body: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a crawl that was killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Site:
    """A site on loopback; `answer` is asked for every request but robots.txt, which does not exist unless given, or
    `answers_robots` says that it is asked for that too."""

    def __init__(
        self,
        answer: Callable[[ReceivedRequest], Answer],
        *,
        robots: str | None = None,
        answers_robots: bool = False,
        address: str = "127.0.0.1",
    ) -> None:
        self.asked: list[ReceivedRequest] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = (
                True  # head and body are two writes: else 40 ms for each answer on a kept connection
            )

            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = ReceivedRequest(self.command, self.path, headers, self.rfile.read(length).decode())
                site.asked.append(asked)
                if self.path == "/robots.txt" and not answers_robots:
                    given = Answer("", 404) if robots is None else Answer(robots)
                else:
                    given = answer(asked)
                self._say(given)

            do_POST = do_GET  # noqa: N815

            def _say(self, given: Answer) -> None:
                body = given.body.encode()
                self.send_response(given.status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                for name, value in given.headers:
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # a crawl that was killed or stopped
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = _Server((address, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def base(self) -> str:
        address, port = self._server.server_address[:2]
        return f"http://{address!s}:{port}"

    @property
    def paths(self) -> list[str]:
        """What was asked, robots.txt left out, in order."""
        return [asked.path for asked in self.asked if asked.path != "/robots.txt"]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Project:
    """A project with one spider module and nothing of ours but the add-on."""

    def __init__(self, folder: Path, spiders: str, *, settings: str = "", addon: bool = True) -> None:
        self.folder = folder
        package = folder / "theirs"
        package.mkdir(parents=True)
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = theirs.settings\n")
        (package / "__init__.py").write_text("")
        (package / "spiders.py").write_text("import scrapy\n" + textwrap.dedent(spiders))
        lines = ['BOT_NAME = "theirs"', 'SPIDER_MODULES = ["theirs.spiders"]', 'USER_AGENT = "theirs/1.0"']
        lines += ["RETRY_TIMES = 2", "TELNETCONSOLE_ENABLED = False", "REMOTE_CONTROL_ENABLED = False"]
        lines += ['ADDONS = {"webfountain.crawl.addon.FountainAddon": 500}'] if addon else []
        (package / "settings.py").write_text("\n".join([*lines, textwrap.dedent(settings)]))

    def start(self, spider: str, *options: str, **arguments: str) -> subprocess.Popen[str]:
        """`scrapy crawl`, not waited for."""
        given = [option for name, value in arguments.items() for option in ("-a", f"{name}={value}")]
        command = [sys.executable, "-m", "scrapy", "crawl", spider, "-o", "items.jsonl", *given, *options]
        return subprocess.Popen(command, cwd=self.folder, env=_environment(), stderr=subprocess.PIPE, text=True)

    def start_script(self, script: str, *arguments: str) -> subprocess.Popen[str]:
        """`python SCRIPT`, not waited for."""
        command = [sys.executable, script, *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=_environment(), stderr=subprocess.PIPE, text=True)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Another of `scrapy`'s commands, to its end; of `python`'s, if the first word ends in ``.py``."""
        words = command if command[0].endswith(".py") else ("-m", "scrapy", *command)
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def crawl(self, spider: str, *options: str, **arguments: str) -> str:
        """`scrapy crawl` to its end; returns the log. Fails when the crawl does."""
        return _log_of(self.start(spider, *options, **arguments))

    def crawl_until(self, enough: threading.Event, spider: str, *options: str, **arguments: str) -> str:
        """`scrapy crawl` until `enough` is set, then SIGTERM; returns the log. Fails when the crawl does."""
        process = self.start(spider, *options, **arguments)
        reached = enough.wait(PATIENCE)
        process.terminate()
        log = _log_of(process)
        assert reached, log[-4000:]
        return log

    @property
    def items(self) -> list[dict[str, Any]]:
        """What the spider yielded, of all crawls together."""
        path = self.folder / "items.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _log_of(process: subprocess.Popen[str]) -> str:
    """The log of a crawl that ends by itself and well."""
    try:
        _, log = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        _, log = process.communicate()
        raise AssertionError(f"the crawl did not end:\n{log[-4000:]}") from None
    assert process.returncode == 0, log[-4000:]
    return log


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}
