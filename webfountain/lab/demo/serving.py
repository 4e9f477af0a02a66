"""The program that runs the HTTP server of a `Web`.

When the program is ready, it prints a JSON object: ``urls`` (home page of each site), ``admin`` (base URL), ``token``,
``pid``, ``clock``. Requests for admin paths must have the token. The path ``/_truth`` takes the parameter ``at`` (a UTC
second), ``/_log`` takes ``after`` (the number of a visit), ``/_stats`` takes none. SIGTERM or SIGINT ends the process.
With ``--until-stdin-closes``, the process also ends when its parent ends.
"""

from __future__ import annotations

import asyncio
import gc
import hmac
import json
import os
import secrets
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from urllib.parse import parse_qs, urlsplit

from webfountain.lab.demo.server import Log, Server, bind_sites

if TYPE_CHECKING:
    import argparse
    import socket
    from collections.abc import Callable

    from webfountain.lab.demo.answers import Web, WebClock
    from webfountain.lab.demo.server import LoggedVisit

__all__ = ["add_serving_options", "bases_of", "ready_line", "run_server", "until_stopped"]


def add_serving_options(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options that all serving programs share."""
    add = parser.add_argument
    add("--port", type=int, default=0, help="port on which all addresses listen; 0 chooses a free one")
    add(
        "--layout",
        choices=("addresses", "ports"),
        default="addresses",
        help="whether each site has its own address or its own port",
    )
    add("--first", default="127.0.1.1", help="address of the first site")
    add("--latency", type=float, default=0.0, help="seconds before each answer")
    add("--gzip", action="store_true", help="compress bodies for clients that take gzip")
    add("--log", type=Path, help="append every visit to this file, one JSON object per line")
    add("--log-size", type=int, default=200_000, help="visits kept in memory")
    add("--until-stdin-closes", action="store_true", help="end when the standard input closes")


def bases_of(sockets: list[socket.socket]) -> list[str]:
    return ["http://{}:{}".format(*bound.getsockname()) for bound in sockets]


def run_server(
    options: argparse.Namespace, sites: int, make_web: Callable[[list[str], WebClock], Web], clock: WebClock
) -> None:
    """Serve a web until the process must end."""
    sockets = bind_sites(sites, port=options.port, layout=options.layout, first=options.first)
    bases = bases_of(sockets)
    web = make_web(bases, clock)
    token = secrets.token_urlsafe(16)
    record = None
    if options.log is not None:
        log = options.log.open("a", buffering=1)
        record = partial(_write_line, log)
    server = Server(
        web,
        clock,
        bases,
        latency=options.latency,
        gzip_bodies=options.gzip,
        log=Log(options.log_size, record=record),
        admin=partial(_admin, token),
    )
    gc.freeze()  # the web lives as long as the process; otherwise each full collection would visit all pages
    ready = ready_line(bases, token, clock=clock)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(server, sockets, ready, end_with_stdin=options.until_stdin_closes))


def ready_line(bases: list[str], token: str, **more: object) -> str:
    urls = [f"{base}/" for base in bases]
    return json.dumps({"urls": urls, "admin": bases[0], "token": token, "pid": os.getpid(), **more})


async def _serve(server: Server, sockets: list[socket.socket], ready: str, *, end_with_stdin: bool) -> None:
    listeners = await server.listen(sockets)
    sys.stdout.write(ready + "\n")
    sys.stdout.flush()
    sweeping = asyncio.create_task(_sweep(server))
    await until_stopped(end_with_stdin=end_with_stdin)
    sweeping.cancel()
    for listener in listeners:
        listener.close()


async def _sweep(server: Server) -> None:
    while True:
        await asyncio.sleep(10)
        server.sweep()


async def until_stopped(*, end_with_stdin: bool) -> None:
    """Wait until SIGTERM, SIGINT or the end of the standard input."""
    reported = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, reported.set)
    if end_with_stdin:
        loop.add_reader(sys.stdin.fileno(), _end_with_stdin, reported)
    await reported.wait()
    if end_with_stdin:
        loop.remove_reader(sys.stdin.fileno())


def _end_with_stdin(reported: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        reported.set()


def _admin(token: str, server: Server, path: str) -> bytes | None:
    """Return the body for an admin path; None if the request has no token."""
    split = urlsplit(path)
    query = {key: values[0] for key, values in parse_qs(split.query).items()}
    if not hmac.compare_digest(query.get("token", "").encode(), token.encode()):
        return None
    if split.path == "/_truth":
        at = float(query.get("at") or time.time())
        t = server.clock.web(at)
        return json.dumps({"at": at, "t": t, "pages": dict(server.web.truth(t))}).encode()
    if split.path == "/_log":
        return json.dumps(server.log.tail(int(query.get("after", "0")))).encode()
    if split.path == "/_stats":
        stats = {"served": server.log.served, "open": len(server.open), "cpu_seconds": time.process_time()}
        return json.dumps(stats).encode()
    return None


def _write_line(log: TextIO, visit: LoggedVisit) -> None:
    log.write(json.dumps(visit._asdict()) + "\n")
