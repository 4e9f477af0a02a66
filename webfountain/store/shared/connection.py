"""The connection to a server or a cluster, with retries after faults.

URLs are ``redis://``, ``rediss://``, ``unix://``, ``redis+cluster://`` and
``redis+sentinel://host:port,host:port/name``. If a server does not answer, restarts, fails over, is read-only or is
full, the process waits and retries with jitter. A step that was sent but not answered may have been executed, so any
step may be executed twice. A step that is executed twice may skip sequence numbers, or leave URL leases open until
their site lease ends.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.retry import Retry

from webfountain.errors import InputError, StoreAway, StoreError
from webfountain.store.locations import without_password
from webfountain.store.shared.outage import EndLimit, Outage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from redis.connection import AbstractConnection

__all__ = ["SHORTEST_S", "TIMEOUT_S", "Command", "ConnectionCount", "ServerConnection", "connect", "query_of"]

PATIENCE_S: Final = 3600.0
"""The crawl ends if its server does not answer for this many seconds."""
ENDED_S: Final = 30.0
"""A private server counts as ended if its socket is missing for this time, in seconds. If a private server dies, its
owner starts it again within a second."""
SHORTEST_S: Final = 0.05
_LONGEST_S: Final = 2.0
TIMEOUT_S: Final = 20.0
_CONNECT_S: Final = 5.0
"""Time limit for opening a connection, in seconds."""

_NO_INFO: Final = "this user may not call INFO, which shows whether the server was replaced"
_PASSING: Final = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    RedisClusterException,
    ReadOnlyError,
    OutOfMemoryError,
    TryAgainError,
    MovedError,
    AskError,
)
"""Temporary faults: a step that fails with one of them is sent again."""
_PASSING_WORDS: Final = (
    "MISCONF",
    "NOREPLICAS",
    "MASTERDOWN",
    "UNBLOCKED",
    "OOM",
    "READONLY",
    "LOADING",
    "CLUSTERDOWN",
)

Command = tuple[Any, ...]


class ConnectionCount:
    """Counts the connections made to the server. A new connection may lead to another server, or to an earlier state of
    the server.
    """

    def __init__(self) -> None:
        self.made = 0

    def open(self, connection: AbstractConnection) -> None:
        """Send the handshake of a new connection, and count the connection."""
        connection.on_connect()
        self.made += 1

    def count(self, _: AbstractConnection) -> None:
        """Count a new connection, after the cluster client has made the handshake."""
        self.made += 1


class ServerConnection:
    """The connection to one server or cluster.

    `private_socket` is the socket of a server that another crawl started.
    """

    def __init__(
        self,
        client: redis.Redis | redis.cluster.RedisCluster,
        *,
        shown: str,
        connections: ConnectionCount | None = None,
        private_socket: Path | None = None,
    ) -> None:
        self._private_socket = private_socket
        self.client = client
        self.shown = shown
        self.connections = connections or ConnectionCount()
        self._now = time.monotonic
        self._rest = time.sleep
        self._jitter = random.Random()
        self._end = EndLimit(self._pools)
        self._outage = Outage(shown)

    def send(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        """Send (key, command) pairs in one round trip per server. Return an answer or an error for each pair.

        After a temporary fault, unanswered commands are sent again, for at most `PATIENCE_S` and until the limit of
        `end_within`.

        Raises
        ------
        StoreAway
            if the server does not answer again.
        StoreError
            if the server refuses the user or password.
        """
        if not commands:
            return []
        answers: list[Any] = [None] * len(commands)
        left = list(range(len(commands)))
        began, waited = self._now(), False
        pause = SHORTEST_S
        while True:
            fault: Exception | None = None
            try:
                for i, answer in zip(left, self._send_once([commands[i] for i in left]), strict=True):
                    answers[i] = answer
            except _PASSING as error:
                fault = error
            else:
                left = [i for i in left if _passes(answers[i])]
                fault = answers[left[0]] if left else None
            if fault is None:
                if waited:
                    self._outage.end()
                return answers
            self._wait(fault, began, pause)
            waited = True
            pause = min(2 * pause, _LONGEST_S)

    def _wait(self, fault: Exception, began: float, pause: float) -> None:
        """Sleep after a fault of a call that started at `began`. Raise StoreAway if the fault lasts too long."""
        now = self._now()
        if now - began > PATIENCE_S or self._end.is_over:
            self._outage.give_up()
            raise StoreAway(f"{self.shown}: unusable for {now - began:.0f} s: {_one_line(fault)}") from None
        if self._private_socket is not None and now - began > ENDED_S and not self._private_socket.exists():
            self._outage.give_up()
            raise StoreAway(
                f"{self.shown}: the server stopped when the crawl that had started it ended; start this crawl again"
            )
        self._outage.wait(fault, _one_line(fault))
        longest = max(self._end.at - now, SHORTEST_S)
        self._rest(min(pause * self._jitter.uniform(0.5, 1.0), longest))
        self._probe_again()

    def end_within(self, seconds: float) -> None:
        """From now on, let no thread wait longer than `seconds` in total for the server. A later call of this method
        can only shorten the time limit.
        """
        self._end.set(seconds)

    @property
    def ends_at(self) -> float:
        """The time until which calls may wait for the server (`end_within`), in monotonic seconds, or inf."""
        return self._end.at

    def checked(self, answer: Any) -> Any:
        """Return an answer; raise StoreError if the answer is an error."""
        if isinstance(answer, Exception):
            raise StoreError(f"{self.shown}: {_one_line(answer)}")
        return answer

    def ask_all(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        """Run (key, command) pairs in one round trip per server. Return the answers; raise StoreError for an error."""
        return [self.checked(answer) for answer in self.send(commands)]

    def ask(self, key: bytes, *command: Any) -> Any:
        """Run one command on one key."""
        return self.ask_all([(key, command)])[0]

    def info(self) -> Mapping[str, Any]:
        """Return the INFO of a server (in a cluster, of one primary)."""
        try:
            if isinstance(self.client, redis.cluster.RedisCluster):
                found: Mapping[str, Any] = self.client.info(target_nodes=self.client.get_primaries()[0])
            else:
                found = self.client.info()
        except NoPermissionError:
            raise StoreError(f"{self.shown}: {_NO_INFO}") from None
        except RedisError as error:
            raise _refusal(self.shown, error) from None
        return found

    def setting(self, name: str) -> str | None:
        """Return a setting of the server, or None if the user may not read it."""
        try:
            if isinstance(self.client, redis.cluster.RedisCluster):
                found = self.client.config_get(name, target_nodes=self.client.get_primaries()[0])
            else:
                found = self.client.config_get(name)
        except RedisError:
            return None
        value = found.get(name)
        return value.decode() if isinstance(value, bytes) else value

    def pause_writes(self, seconds: float) -> bool:
        """Pause writes on every server for a time. Return False if the user has no permission."""
        return self._of_primaries("CLIENT PAUSE", int(1000 * seconds), "WRITE")

    def resume_writes(self) -> None:
        """End a pause of writes."""
        self._of_primaries("CLIENT UNPAUSE")

    def disconnect(self) -> None:
        """Close all connections; the next command opens new ones."""
        if isinstance(self.client, redis.cluster.RedisCluster):
            self.client.disconnect_connection_pools()
        else:
            self.client.connection_pool.disconnect()

    def close(self) -> None:
        """Close all connections, including the connections to the nodes of a cluster."""
        self.disconnect()
        self.client.close()

    def _of_primaries(self, *command: Any) -> bool:
        """Send one command to each primary; return whether all primaries accepted it."""
        try:
            if isinstance(self.client, redis.cluster.RedisCluster):
                self.client.execute_command(*command, target_nodes=redis.cluster.RedisCluster.PRIMARIES)
            else:
                self.client.execute_command(*command)
        except RedisError:
            return False
        return True

    def _pools(self) -> list[redis.ConnectionPool]:
        """Return the connection pool of the server, or of each node of the cluster."""
        if isinstance(self.client, redis.cluster.RedisCluster):
            nodes = list(self.client.nodes_manager.nodes_cache.values())
            return [node.redis_connection.connection_pool for node in nodes if node.redis_connection is not None]
        return [self.client.connection_pool]

    def _send_once(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        if not isinstance(self.client, redis.cluster.RedisCluster):
            return _pipelined(self.client, [command for _, command in commands])
        answers: list[Any] = [None] * len(commands)
        by_node: dict[str, list[int]] = {}
        for i, (key, _) in enumerate(commands):
            node = self.client.get_node_from_key(key)
            if node is None:
                raise ClusterDownError("no node has the slot")
            by_node.setdefault(node.name, []).append(i)
        for name, positions in by_node.items():
            node = self.client.get_node(node_name=name)
            if node is None:
                raise ClusterDownError(f"the node {name} is gone")
            found = _pipelined(self.client.get_redis_connection(node), [commands[i][1] for i in positions])
            for i, answer in zip(positions, found, strict=True):
                answers[i] = answer
        return answers

    def _probe_again(self) -> None:
        """Read the slots of a cluster again after a fault, because they may have moved."""
        if self._end.is_over:
            return
        if isinstance(self.client, redis.cluster.RedisCluster):
            try:
                self.client.nodes_manager.initialize()
            except (RedisError, OSError):
                return


def connect(
    url: str, *, parameters: Mapping[str, Any] | None = None, private_socket: Path | None = None
) -> ServerConnection:
    """Connect to the server at a URL. `parameters` are further arguments of the client (REDIS_PARAMS).

    Raises
    ------
    InputError
        if the URL has no known form.
    StoreError
        if the server cannot be reached, or refuses the user or password.
    """
    shown = without_password(url)
    more: dict[str, Any] = {
        "socket_timeout": TIMEOUT_S,
        "socket_connect_timeout": _CONNECT_S,
        "retry": Retry(NoBackoff(), 0),
        **(parameters or {}),
    }
    connections = ConnectionCount()
    more["redis_connect_func"] = connections.count if "+cluster://" in url else connections.open
    try:
        client = _client(url.partition("?")[0], more)
        client.ping()
    except RedisError as error:  # the server does not answer, the user is wrong, or the database does not exist
        raise _refusal(shown, error) from None
    except (ValueError, TypeError) as error:
        raise InputError(f"--store {shown!r}: {error}") from None
    return ServerConnection(client, shown=shown, connections=connections, private_socket=private_socket)


def query_of(url: str) -> dict[str, str]:
    """Return the store's own parameters in a URL: ``?prefix=NAME&shards=N``."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}


def _client(url: str, more: dict[str, Any]) -> redis.Redis | redis.cluster.RedisCluster:
    if "+cluster://" in url:
        return redis.cluster.RedisCluster.from_url(url.replace("+cluster", "", 1), **more)
    if url.startswith("redis+sentinel://"):
        parts = urlsplit(url)
        hosts = parts.netloc.rpartition("@")[2].split(",")
        pairs = [(host.rpartition(":")[0], int(host.rpartition(":")[2])) for host in hosts]
        login = {"username": parts.username, "password": unquote(parts.password)} if parts.password else {}
        name = parts.path.strip("/") or "mymaster"
        found: redis.Redis = redis.Sentinel(pairs, **more).master_for(name, **login, **more)
        return found
    if (database := urlsplit(url).path.strip("/")) and not url.startswith("unix:") and not database.isdigit():
        raise ValueError(f"the database {database!r} is not a number")  # the client would use the database 0
    return redis.Redis.from_url(url, **more)


def _pipelined(client: redis.Redis, commands: Sequence[Command]) -> list[Any]:
    pool = client.connection_pool
    connection = pool.get_connection()
    try:
        connection.send_packed_command(connection.pack_commands(commands))
        return [_answer(connection) for _ in commands]
    finally:
        pool.release(connection)


def _answer(connection: AbstractConnection) -> Any:
    try:
        return connection.read_response()
    except ResponseError as error:
        return error


def _passes(answer: object) -> bool:
    """Return whether an answer is a temporary fault."""
    if isinstance(answer, NoScriptError):
        return False
    return isinstance(answer, _PASSING) or (
        isinstance(answer, ResponseError) and str(answer).lstrip("-").startswith(_PASSING_WORDS)
    )


def _refusal(shown: str, error: Exception) -> StoreError:
    return StoreError(f"{shown}: {_one_line(error)}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
