"""The way to the server: one pool a process, patient with faults, the same for one server and for a cluster.

``redis://``, ``rediss://`` (with user and password in the URL), ``unix://``, ``redis+cluster://`` and
``redis+sentinel://host:port,host:port/name``. A server that restarts, fails over, loads its data, is read-only or full
for a while, moves slots or does not answer is waited for: said once, asked again with jitter, and said when it answers.
A step that was sent and not answered may have been taken; every step bears being taken twice, but for numbers that are
then skipped and leases that end with their site's.
"""

from __future__ import annotations

import logging
import random
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
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

from webfountain.errors import InputError, StoreError
from webfountain.store.opening import without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Connection", "connect", "query_of"]

PATIENCE_S: Final = 600.0
"""A server that does not come back within this time ends the crawl; nothing acknowledged is lost by that."""
_SHORTEST_S: Final = 0.05
_LONGEST_S: Final = 2.0
_TIMEOUT_S: Final = 20.0

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
"""Faults that pass: the step is sent again."""
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
logger = logging.getLogger(__name__)

Command = tuple[Any, ...]


class Connection:
    """One server or cluster. `now` and `rest` are the clock and the sleep of its patience."""

    def __init__(
        self,
        client: redis.Redis | redis.cluster.RedisCluster,
        *,
        shown: str,
        now: Callable[[], float] = time.monotonic,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client = client
        self.shown = shown
        self._now = now
        self._rest = rest
        self._jitter = random.Random()

    def send(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        """Send (key, command) pairs in as few round trips as there are servers; an answer or an error for each.

        Waits as long as a fault passes, `PATIENCE_S` at most.

        Raises
        ------
        StoreError
            when the server does not come back, or refuses user or password.
        """
        if not commands:
            return []
        answers: list[Any] = [None] * len(commands)
        left = list(range(len(commands)))
        since: float | None = None
        pause = _SHORTEST_S
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
                if since is not None:
                    logger.warning("The store at %s answers again after %.1f s", self.shown, self._now() - since)
                return answers
            if since is None:
                since = self._now()
                logger.warning("The store at %s cannot be used; waiting for it: %s", self.shown, _one_line(fault))
            elif self._now() - since > PATIENCE_S:
                raise StoreError(f"{self.shown}: no use for {PATIENCE_S:.0f} s: {_one_line(fault)}") from None
            self._rest(pause * self._jitter.uniform(0.5, 1.0))
            pause = min(2 * pause, _LONGEST_S)
            self._look_again()

    def checked(self, answer: Any) -> Any:
        """An answer that is no error; StoreError for one that is."""
        if isinstance(answer, Exception):
            raise StoreError(f"{self.shown}: {_one_line(answer)}")
        return answer

    def ask(self, key: bytes, *command: Any) -> Any:
        """One command on one key."""
        return self.checked(self.send([(key, command)])[0])

    def info(self) -> Mapping[str, Any]:
        """What a server says of itself (of a cluster: one of its primaries)."""
        try:
            if isinstance(self.client, redis.cluster.RedisCluster):
                found: Mapping[str, Any] = self.client.info(target_nodes=self.client.get_primaries()[0])
            else:
                found = self.client.info()
        except RedisError as error:
            raise _refusal(self.shown, error) from None
        return found

    def setting(self, name: str) -> str | None:
        """A setting of the server, None where it may not be asked."""
        try:
            if isinstance(self.client, redis.cluster.RedisCluster):
                found = self.client.config_get(name, target_nodes=self.client.get_primaries()[0])
            else:
                found = self.client.config_get(name)
        except RedisError:
            return None
        value = found.get(name)
        return value.decode() if isinstance(value, bytes) else value

    def disconnect(self) -> None:
        """Break all connections; what is sent next makes new ones."""
        if isinstance(self.client, redis.cluster.RedisCluster):
            self.client.disconnect_connection_pools()
        else:
            self.client.connection_pool.disconnect()

    def close(self) -> None:
        """Let the connections go."""
        self.client.close()

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

    def _look_again(self) -> None:
        """After a fault slots may have moved."""
        if isinstance(self.client, redis.cluster.RedisCluster):
            try:
                self.client.nodes_manager.initialize()
            except (RedisError, OSError):
                return


def connect(url: str, *, parameters: Mapping[str, Any] | None = None) -> Connection:
    """The connection that a URL names; `parameters` are further arguments of the client (REDIS_PARAMS).

    Raises
    ------
    InputError
        when the URL is none of the forms above.
    StoreError
        when the server cannot be reached at all, or refuses user or password.
    """
    shown = without_password(url)
    more: dict[str, Any] = {
        "socket_timeout": _TIMEOUT_S,
        "socket_connect_timeout": _TIMEOUT_S,
        "retry": Retry(NoBackoff(), 0),
        **(parameters or {}),
    }
    try:
        client = _client(_without_query(url), more)
        client.ping()
    except (AuthenticationError, NoPermissionError, *_PASSING) as error:
        raise _refusal(shown, error) from None
    except (ValueError, TypeError) as error:
        raise InputError(f"--store {shown!r}: {error}") from None
    return Connection(client, shown=shown)


def _without_query(url: str) -> str:
    """The URL without the parameters that are the store's own."""
    return url.partition("?")[0]


def query_of(url: str) -> dict[str, str]:
    """The store's own parameters in a URL: ``?prefix=NAME&shards=N``."""
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
    return redis.Redis.from_url(url, **more)


def _pipelined(client: redis.Redis, commands: Sequence[Command]) -> list[Any]:
    pipeline = client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)
    answers: list[Any] = pipeline.execute(raise_on_error=False)
    return answers


def _passes(answer: object) -> bool:
    """Whether an answer is a fault that passes by itself."""
    if isinstance(answer, NoScriptError):
        return False
    return isinstance(answer, _PASSING) or (
        isinstance(answer, ResponseError) and str(answer).lstrip("-").startswith(_PASSING_WORDS)
    )


def _refusal(shown: str, error: Exception) -> StoreError:
    return StoreError(f"{shown}: {_one_line(error)}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
