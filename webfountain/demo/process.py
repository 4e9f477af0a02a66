"""Start a web's server as a process, ask it for its truth and its log, and end it.

Place in the walk: how the demo and the tests hold the outside world in their hand. `freshness` and `overlaps`
judge a crawl by what the server itself says. It ends only the process that it started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

from webfountain.demo.answers import WebClock
from webfountain.demo.server import Visit
from webfountain.errors import WebfountainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["DemoServer", "ServerProcess", "Truth", "arguments_of", "freshness", "overlaps"]

_ROOT = Path(__file__).resolve().parents[2]


class Truth(NamedTuple):
    """What a perfect copy would hold at UTC second `at`, web time `t`: hex SHA-1 of the body, by URL."""

    at: float
    t: float
    pages: dict[str, str]


class ServerProcess:
    """``python -m MODULE ARGUMENTS``, ready when the constructor returns; a context manager that ends it.

    Raises: WebfountainError, where the process ends before it is ready (its words are on standard error).
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
        """Home page of each site."""
        return list(self.ready["urls"])

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    @property
    def clock(self) -> WebClock:
        """Maps UTC seconds to the web's time and back."""
        return WebClock(*self.ready["clock"])

    def ask(self, path: str, **query: object) -> Any:
        """The JSON document of an admin path."""
        where = urlsplit(self.ready["admin"])
        connection = HTTPConnection(where.hostname or "", where.port, timeout=60)
        try:
            connection.request("GET", f"{path}?{urlencode({'token': self.ready['token'], **query})}")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def truth(self, at: float | None = None) -> Truth:
        """Every page that exists and can be reached, now or at UTC second `at`."""
        return Truth(**self.ask("/_truth", **({} if at is None else {"at": repr(at)})))

    def log(self, after: int = 0) -> list[Visit]:
        """The visits so far in the order of their ends, from number `after` on."""
        return [Visit(*fields) for fields in self.ask("/_log", after=after)]

    def stats(self) -> dict[str, float]:
        """``served`` visits, ``open`` connections and the server's own ``cpu_seconds``."""
        return dict(self.ask("/_stats"))

    def stop(self) -> None:
        """End the process; a second call has no effect."""
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
    """The generated web as a process; an option is one of ``python -m webfountain.demo`` with underscores.

    ``DemoServer(seed=1, sites=3, pages=60, period=0, latency=0.002)``; True stands for an option without value.
    """

    def __init__(self, **options: object) -> None:
        super().__init__("webfountain.demo", *arguments_of(options))


def arguments_of(options: Mapping[str, object]) -> list[str]:
    """Command line arguments of keyword options."""
    return [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in options.items()
        if value is not None and value is not False
    ]


def freshness(truth: Truth, digests: Mapping[str, str | None]) -> float:
    """Share of the true pages whose digest (hex SHA-1, by URL) is the true one; 1.0 where there are none."""
    if not truth.pages:
        return 1.0
    return sum(digests.get(url) == digest for url, digest in truth.pages.items()) / len(truth.pages)


def overlaps(visits: Iterable[Visit]) -> list[tuple[Visit, Visit]]:
    """Pairs of visits to one site that were in service at the same time, each with the one it met."""
    last: dict[str, Visit] = {}
    found = []
    for visit in sorted(visits, key=lambda visit: visit.start):
        before = last.get(visit.site)
        if before is not None and visit.start < before.end:
            found.append((before, visit))
        if before is None or visit.end > before.end:
            last[visit.site] = visit
    return found
