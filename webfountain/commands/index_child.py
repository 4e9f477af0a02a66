"""The option `serve --search`: a child process keeps the search index of each store, and ends with the service."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webfountain.service.settings import StoreEntry

__all__ = ["index_beside"]

_END_S: Final = 10.0


@contextlib.contextmanager
def index_beside(stores: Sequence[StoreEntry]) -> Iterator[None]:
    """Keep the search indexes of stores while the block runs. A process that fails reports the reason on standard
    error."""
    children = [_started(each) for each in stores]
    try:
        yield
    finally:
        for child in children:
            assert child.stdin is not None
            child.stdin.close()
        for child in children:
            try:
                child.wait(_END_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _started(store: StoreEntry) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "webfountain", "index", "--follow", "--until-stdin-closes", "--store", store.url]
    command += [] if store.repository is None else ["--repository", store.repository]
    # A session of its own: Ctrl-C is meant for the service, which ends the index by closing its input.
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603 - our own interpreter
