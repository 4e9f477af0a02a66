"""Opening a shared store: whose it is, how it was made, and whether its server is one to trust a frontier to.

The store's own parameters stand in the URL: ``?prefix=NAME`` begins each key [webfountain], ``?shards=N`` is how many
shards a new store gets [256]; a store that exists keeps its number.

The way to the server: one pool a process, patient with faults, the same for one server and for a cluster.
``redis://``, ``rediss://`` (with user and password in the URL), ``unix://``, ``redis+cluster://`` and
``redis+sentinel://host:port,host:port/name``. A server that restarts, fails over, loads its data, is read-only or
full for a while, moves slots or does not answer is waited for: said once, asked again with jitter, and said when it
answers. A step that was sent and not answered may have been taken; every step bears being taken twice, but for
numbers that are then skipped and leases that end with their site's.
"""

from __future__ import annotations

import contextlib
import logging
import math
import random
import secrets
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
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

from webfountain.errors import InputError, StoreBound, StoreError, StoreHeld, StoreVersion
from webfountain.store import without_password
from webfountain.store.shared.colony import SharedClaims, bell_key
from webfountain.store.shared.private import CRAWL, PrivateServer, is_running, socket_of
from webfountain.store.shared.scripts import KEYS, Shards
from webfountain.store.shared.store import SharedStore
from webfountain.store.shared.transfer import fill
from webfountain.store.transfer import head_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from redis.connection import AbstractConnection

    from webfountain.store.transfer import Row

__all__ = [
    "FORMAT",
    "ServerConnection",
    "connect",
    "load_private",
    "load_shared",
    "open_private",
    "open_shared",
    "query_of",
]

logger = logging.getLogger(__name__)

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

Command = tuple[Any, ...]


class ServerConnection:
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
        self._gives_up = math.inf

    def send(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        """Send (key, command) pairs in as few round trips as there are servers; an answer or an error for each.

        Waits as long as a fault passes, `PATIENCE_S` at most, and not beyond what `end_within` said.

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
            now = self._now()
            if since is None:
                since = now
                logger.warning("The store at %s cannot be used; waiting for it: %s", self.shown, _one_line(fault))
            elif now - since > PATIENCE_S or now >= self._gives_up:
                raise StoreError(f"{self.shown}: no use for {now - since:.0f} s: {_one_line(fault)}") from None
            longest = max(self._gives_up - now, _SHORTEST_S)
            self._rest(min(pause * self._jitter.uniform(0.5, 1.0), longest))
            pause = min(2 * pause, _LONGEST_S)
            self._probe_again()

    def end_within(self, seconds: float) -> None:
        """Let no fault be waited for any more after so long from now. A later call makes it no later."""
        self._gives_up = min(self._gives_up, self._now() + seconds)

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

    def pause_writes(self, seconds: float) -> bool:
        """Let every server hold back what writes to it, for a time; False where this user may not ask that."""
        return self._of_primaries("CLIENT PAUSE", int(1000 * seconds), "WRITE")

    def resume_writes(self) -> None:
        """End a pause."""
        self._of_primaries("CLIENT UNPAUSE")

    def disconnect(self) -> None:
        """Break all connections; what is sent next makes new ones."""
        if isinstance(self.client, redis.cluster.RedisCluster):
            self.client.disconnect_connection_pools()
        else:
            self.client.connection_pool.disconnect()

    def close(self) -> None:
        """Let the connections go."""
        self.client.close()

    def _of_primaries(self, *command: Any) -> bool:
        """One command to each primary; whether all took it."""
        try:
            if isinstance(self.client, redis.cluster.RedisCluster):
                self.client.execute_command(*command, target_nodes=redis.cluster.RedisCluster.PRIMARIES)
            else:
                self.client.execute_command(*command)
        except RedisError:
            return False
        return True

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
        """After a fault slots may have moved."""
        if isinstance(self.client, redis.cluster.RedisCluster):
            try:
                self.client.nodes_manager.initialize()
            except (RedisError, OSError):
                return


def connect(url: str, *, parameters: Mapping[str, Any] | None = None) -> ServerConnection:
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
    return ServerConnection(client, shown=shown)


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
    """The answers to commands that go out together, errors among them.

    As the client's own pipeline gives them, without what that looks for in each command and none of ours has.
    """
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


FORMAT: Final = 5
IMPORTING: Final = 0
"""The format of a store whose import has not come to its end."""
DEFAULT_PREFIX: Final = "webfountain"
DEFAULT_SHARDS: Final = 256
_MOST_SHARDS: Final = 16_384
_PRIVATE_SHARDS: Final = 16
"""Of one server for one machine: fewer make a question to all of them cheaper."""
_FASTEST: Final = 96
"""Without a word of the caller bucket 0 changes so often in a period."""


class _Meta(msgspec.Struct, frozen=True):
    """What a store says of itself."""

    format: int
    collection: str
    period_s: float
    fastest_s: float
    shards: int
    log: str
    """Name of its change log, in the log's cursors."""


def open_shared(
    url: str,
    *,
    collection: str | None,
    period_s: float | None,
    fastest_s: float | None = None,
    fresh: bool = False,
    parameters: Mapping[str, Any] | None = None,
    server: PrivateServer | None = None,
) -> SharedStore:
    """Open or make the store at a URL; see `open_store` for what it raises. A `server` ends with the store."""
    shown = without_password(url)
    prefix, wanted = _own_parameters(url, shown)
    connection = connect(url, parameters=parameters)
    try:
        key = _meta_key(prefix)
        if fresh:
            _delete(connection, prefix, key)
        meta = _made(connection, key, collection=collection, period_s=period_s, fastest_s=fastest_s, shards=wanted)
        _check(connection)
    except BaseException:
        connection.close()
        raise
    return SharedStore(
        connection,
        Shards(connection, prefix=prefix, count=meta.shards),
        values=_values_key(prefix),
        inbox=f"{{{prefix}}}inbox".encode(),
        bell=bell_key(prefix),
        collection=meta.collection,
        period_s=meta.period_s,
        fastest_s=meta.fastest_s,
        rng=random.Random(),
        log=meta.log,
        claims=SharedClaims(connection, prefix=prefix, count=meta.shards),
        server=server,
    )


def open_private(
    folder: Path,
    *,
    collection: str | None,
    period_s: float | None,
    fastest_s: float | None = None,
    fresh: bool = False,
) -> SharedStore:
    """Open or make the store on the server of a crawl's folder, which runs, or is run as long as the store is open.

    Raises
    ------
    InputError
        when there is none and nothing says how to make one.
    """
    if collection is None and not (folder / "valkey").is_dir():
        raise InputError(f"--store valkey://{folder}: there is no store there (`webfountain crawl --ants` makes one)")
    server = _started(folder)
    try:
        return open_shared(
            _private_url(folder),
            collection=collection,
            period_s=period_s,
            fastest_s=fastest_s,
            fresh=fresh,
            parameters=None if collection is None else {"client_name": CRAWL},
            server=server,
        )
    except BaseException:
        if server is not None:
            server.close()
        raise


def load_private(folder: Path, rows: Iterator[Row]) -> None:
    """As `load_shared`, on the server of a folder, which is started for it where none runs."""
    with _started(folder) or contextlib.nullcontext():
        load_shared(_private_url(folder), rows)


def _private_url(folder: Path) -> str:
    return f"unix://{socket_of(folder)}?shards={_PRIVATE_SHARDS}"


def _started(folder: Path) -> PrivateServer | None:
    """The folder's server, if this process is to own it; None when it runs already."""
    until = time.monotonic() + _TIMEOUT_S
    while not is_running(folder):
        try:
            return PrivateServer(folder)
        except StoreHeld:  # its owner is starting it
            if time.monotonic() > until:
                raise
            time.sleep(_SHORTEST_S)
    return None


def load_shared(url: str, rows: Iterator[Row]) -> None:
    """Make a store of rows where there is none; killed, it is no store and may be begun again.

    Raises
    ------
    InputError
        when there is a store at the URL.
    StoreError
        when the server cannot be used.
    """
    shown = without_password(url)
    prefix, count = _own_parameters(url, shown)
    head = head_of(rows)
    with contextlib.closing(connect(url)) as connection:
        key = _meta_key(prefix)
        meta = _Meta(IMPORTING, head.collection, head.period_s, head.fastest_s, count, head.log)
        if connection.ask(key, "SET", key, msgspec.json.encode(meta), "NX") is None:
            found = msgspec.json.decode(connection.ask(key, "GET", key), type=_Meta)
            if found.format != IMPORTING:
                raise InputError(f"{shown}: there is a store already; an import needs a new one")
            _delete(connection, prefix, key)
            connection.ask(key, "SET", key, msgspec.json.encode(meta))
        shards = Shards(connection, prefix=prefix, count=count)
        fill(connection, shards, rows, values=_values_key(prefix), dropped=head.dropped)
        connection.ask(key, "SET", key, msgspec.json.encode(msgspec.structs.replace(meta, format=FORMAT)))


def _meta_key(prefix: str) -> bytes:
    return f"{{{prefix}}}meta".encode()


def _values_key(prefix: str) -> bytes:
    return f"{{{prefix}}}values".encode()


def _own_parameters(url: str, shown: str) -> tuple[str, int]:
    given = query_of(url)
    prefix = given.pop("prefix", DEFAULT_PREFIX)
    shards = given.pop("shards", str(DEFAULT_SHARDS))
    if given:
        raise InputError(f"--store {shown!r}: {next(iter(given))} is no parameter (allowed: prefix, shards)")
    if not shards.isdigit() or not 1 <= int(shards) <= _MOST_SHARDS:
        raise InputError(f"--store {shown!r}: shards={shards} is not allowed (allowed: 1 to {_MOST_SHARDS})")
    if not prefix or any(each in prefix for each in "{}"):
        raise InputError(f"--store {shown!r}: prefix={prefix!r} is not allowed (allowed: a name without braces)")
    return prefix, int(shards)


def _made(
    connection: ServerConnection,
    key: bytes,
    *,
    collection: str | None,
    period_s: float | None,
    fastest_s: float | None,
    shards: int,
) -> _Meta:
    """What the store says of itself; a new one is made. Two processes that make it at once get the same."""
    shown = connection.shown
    found = connection.ask(key, "GET", key)
    if found is None:
        if collection is None or period_s is None:
            raise InputError(f"--store {shown!r}: there is no store there (`webfountain crawl` makes one)")
        fastest = period_s / _FASTEST if fastest_s is None else fastest_s
        made = _Meta(FORMAT, collection, period_s, fastest, shards, secrets.token_hex(4))
        connection.ask(key, "SET", key, msgspec.json.encode(made), "NX")
        found = connection.ask(key, "GET", key)
    meta = msgspec.json.decode(found, type=_Meta)
    if meta.format == IMPORTING:
        raise StoreError(f"{shown}: an import into it did not come to its end; import again")
    if meta.format != FORMAT:
        raise StoreVersion(
            f"{shown}: a store of format {meta.format}; this version reads {FORMAT}; "
            "`webfountain export` of the version that made it and `import` of this one move it"
        )
    if collection is not None and meta.collection != collection:
        raise StoreBound(f"{shown}: holds collection {meta.collection!r}, not {collection!r}")
    return meta


def _delete(connection: ServerConnection, prefix: str, key: bytes) -> None:
    """Take away all of a store, what it says of itself last."""
    found = connection.ask(key, "GET", key)
    if found is not None:
        shards = Shards(connection, prefix=prefix, count=msgspec.json.decode(found, type=_Meta).shards)
        for name in KEYS:
            shards.delete(name)
        connection.ask(key, "UNLINK", key, _values_key(prefix), bell_key(prefix))


def _check(connection: ServerConnection) -> None:
    """Say what a frontier would suffer from: keys that may be evicted, writes that a crash may lose."""
    policy = connection.setting("maxmemory-policy")
    if policy not in (None, "noeviction"):
        logger.warning(
            "The server at %s has maxmemory-policy %s: it may drop parts of the frontier when memory is short; "
            "set it to noeviction",
            connection.shown,
            policy,
        )
    info = connection.info()
    if not info.get("aof_enabled", 1):
        logger.warning(
            "The server at %s keeps no append-only file: when it dies, what it was told since its last snapshot is "
            "lost; set appendonly yes",
            connection.shown,
        )
