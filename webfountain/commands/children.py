"""Child processes that end with a command: the service of `crawl --serve`, and the search indexes of `serve --search`.

The crawl continues if the service of `crawl --serve` cannot be started or dies. `serve --search` keeps the search index
of each store in a process of its own.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import threading
from collections import deque
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.service.settings import StoreEntry

__all__ = ["AUTO", "index_beside", "service_beside"]

AUTO: Final = "auto"
"""Value of `--serve` without an address: use the default port, or any free port if the default port is taken."""
_START_S: Final = 60.0
"""Longest time that the crawl waits for the address of the service, in seconds."""
_END_S: Final = 3.0
_PREFIX: Final = "webfountain serves at "
_INDEX_END_S: Final = 10.0


@contextlib.contextmanager
def service_beside(store: str, repository: str | None, address: str | None) -> Iterator[None]:
    """Serve a store while the `with` block runs, and print the address on standard error. Do nothing if `address` is
    None."""
    process = None
    if address is not None:
        from webfountain.service.settings import DEFAULT_ADDRESS, address_of  # noqa: PLC0415  only where asked for

        if address != AUTO:
            address_of(address)
        tried = [DEFAULT_ADDRESS, "127.0.0.1:0"] if address == AUTO else [address]
        reason = ""
        for each in tried:
            process, reason = _started(store, repository, each)
            if process is not None:
                break
        else:
            print(f"webfountain: the crawl continues without a service: {reason}", file=sys.stderr)
    try:
        yield
    finally:
        if process is not None:
            _end(process)


def _started(store: str, repository: str | None, address: str) -> tuple[subprocess.Popen[str] | None, str]:
    """Start the service and return its process and address. If the service does not start, return None and the last
    line of its output."""
    pipe = subprocess.PIPE
    process = _child("serve", store, repository, "--listen", address, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    assert process.stderr is not None
    errors, output = deque[str](maxlen=1), process.stderr
    # Its lines would disturb the display of the crawl, so only the last is kept.
    reader = threading.Thread(target=lambda: errors.extend(output), daemon=True)
    reader.start()
    line = _first_line(process.stdout)
    if line.startswith(_PREFIX):
        print(line.strip(), file=sys.stderr, flush=True)
        return process, ""
    _end(process)
    reader.join(_END_S)
    return None, errors[-1].strip().removeprefix("webfountain: ") if errors else f"no address came in {_START_S:.0f} s"


def _first_line(output: IO[str]) -> str:
    """Return the first line of output, or "" if no line arrives within `_START_S`."""
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: lines.put(output.readline()), daemon=True).start()
    try:
        return lines.get(timeout=_START_S)
    except queue.Empty:
        return ""


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    _await_end(process, _END_S)
    assert process.stdout is not None
    process.stdout.close()


def _await_end(process: subprocess.Popen[Any], seconds: float) -> None:
    """Wait until a process has ended, and kill it if that takes too long."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def index_beside(stores: Sequence[StoreEntry]) -> Iterator[None]:
    """Keep the search indexes of stores up to date while the `with` block runs. If an index process fails, it reports
    the reason on standard error."""
    children = [_child("index", each.url, each.repository, "--follow") for each in stores]
    try:
        yield
    finally:
        for child in children:
            assert child.stdin is not None
            child.stdin.close()
        for child in children:
            _await_end(child, _INDEX_END_S)


def _child(command: str, store: str, repository: str | None, *more: str, **pipes: int) -> subprocess.Popen[str]:
    """Start a command of webfountain that ends when its input is closed."""
    words = [sys.executable, "-m", "webfountain", command, "--until-stdin-closes", "--store", store, *more]
    words += [] if repository is None else ["--repository", repository]
    # A session of its own: Ctrl-C is meant for this process, which ends the child by closing its input.
    return subprocess.Popen(words, stdin=subprocess.PIPE, text=True, start_new_session=True, **pipes)  # type: ignore[call-overload,no-any-return]  # noqa: S603
