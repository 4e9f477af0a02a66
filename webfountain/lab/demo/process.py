"""Run the HTTP server of a `Web` as a process: start it, read its true pages and its log, and end it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

from webfountain.errors import WebfountainError
from webfountain.lab.demo.answers import WebClock
from webfountain.lab.demo.server import LoggedVisit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["DemoServer", "ServerProcess", "Truth", "arguments_of", "freshness", "overlaps"]

_ROOT = Path(__file__).resolve().parents[3]


class Truth(NamedTuple):
    """The true pages at UTC second `at`, which is web time `t`: the hex SHA-1 of each body, by URL."""

    at: float
    t: float
    pages: dict[str, str]


class ServerProcess:
    """The process ``python -m MODULE ARGUMENTS``, ready when the constructor returns. Leaving the ``with`` block ends
    the process.

    Raises WebfountainError if the process ends before it is ready.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", module, "--until-stdin-closes", *arguments]
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and modules
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.stop()
            raise WebfountainError(f"{module} ended with status {self._process.returncode} before it was ready")
        self.ready: dict[str, Any] = json.loads(line)

    @property
    def urls(self) -> list[str]:
        return list(self.ready["urls"])

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def clock(self) -> WebClock:
        return WebClock(*self.ready["clock"])

    def ask(self, path: str, **query: object) -> Any:
        """Return the JSON document of an admin path."""
        where = urlsplit(self.ready["admin"])
        connection = HTTPConnection(where.hostname or "", where.port, timeout=60)
        try:
            connection.request("GET", f"{path}?{urlencode({'token': self.ready['token'], **query})}")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def truth(self, at: float | None = None) -> Truth:
        """Return all pages that exist and can be reached, now or at UTC second `at`."""
        return Truth(**self.ask("/_truth", **({} if at is None else {"at": repr(at)})))

    def log(self, after: int = 0) -> list[LoggedVisit]:
        """Return the visits numbered `after` or later, in the order in which they ended."""
        return [LoggedVisit(*fields) for fields in self.ask("/_log", after=after)]

    def stats(self) -> dict[str, float]:
        """Return the numbers of ``served`` visits and ``open`` connections, and the ``cpu_seconds`` used."""
        return dict(self.ask("/_stats"))

    def stop(self) -> None:
        process = self._process
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class DemoServer(ServerProcess):
    """The generated web, served by a process of its own. Keywords are the options of ``python -m
    webfountain.lab.demo.web``, with underscores.

    Example: ``DemoServer(seed=1, sites=3, latency=0.002)``. An option that takes no value is passed as True.
    """

    def __init__(self, **options: object) -> None:
        super().__init__("webfountain.lab.demo.web", *arguments_of(options))


def arguments_of(options: Mapping[str, object]) -> list[str]:
    return [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in options.items()
        if value is not None and value is not False
    ]


def freshness(truth: Truth, digests: Mapping[str, str | None]) -> float:
    """Return the share of the true pages for which `digests` has the correct digest; 1.0 if there are no pages."""
    if not truth.pages:
        return 1.0
    return sum(digests.get(url) == digest for url, digest in truth.pages.items()) / len(truth.pages)


def overlaps(visits: Iterable[LoggedVisit]) -> list[tuple[LoggedVisit, LoggedVisit]]:
    """Return the pairs of visits that one site served at the same time."""
    last: dict[str, LoggedVisit] = {}
    found = []
    for visit in sorted(visits, key=lambda visit: visit.start):
        before = last.get(visit.site)
        if before is not None and visit.start < before.end:
            found.append((before, visit))
        if before is None or visit.end > before.end:
            last[visit.site] = visit
    return found
