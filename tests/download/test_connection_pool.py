"""Connections: for one name each, by another address where the first is dead; how many are kept, and which go first."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.download.peers import fetcher, ok, page, peer, server, terms
from webfountain.clock import SystemClock
from webfountain.download import connection_pool
from webfountain.download.bad_response import BadResponse
from webfountain.download.connection import Connection, Endpoint
from webfountain.download.connection_pool import ConnectionPool
from webfountain.download.fetcher import Fetcher, allowed
from webfountain.download.resolver import Resolver
from webfountain.records import Fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.records import FetchResult

ROOT = Path(__file__).resolve().parents[2]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def test_the_exchanges_of_one_site_are_ended_and_others_go_on() -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        await reader.read()

    async def run() -> list[str | None]:
        async with server(stall) as one, server(stall) as other, fetcher() as fetches:
            pool = fetches._pool
            tasks = [asyncio.ensure_future(page(fetches, f"http://127.0.0.1:{port}/")) for port in (one, other)]
            while sum(exchange.sink is not None for exchange in pool._active) < 2:
                await asyncio.sleep(0.01)
            pool.abort("lapsed", at={("127.0.0.1", one)})
            lapsed = (await tasks[0]).error
            assert not tasks[1].done()
            pool.abort()
            return [lapsed, (await tasks[1]).error]

    assert asyncio.run(run()) == ["lapsed", "cut"]


# ------------------------------------------------------------------- the time of a fetch


def test_a_body_that_flows_for_ever_ends_with_the_time_of_the_fetch() -> None:
    """300 bytes a second, three times the least rate, would take 9 hours for 10 MB."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        while True:
            writer.write(b"x" * 10)
            await writer.drain()
            await asyncio.sleep(0.005)

    async def run() -> FetchResult:
        async with server(drip) as port, fetcher() as client:
            return await page(client, f"http://127.0.0.1:{port}/", under=terms(timeout=0.4))

    fetched = asyncio.run(run())
    assert fetched.error == "too-slow"  # it does answer: not "timeout", which is said of sites
    assert fetched.seconds >= 0.4


# -------------------------------------------------------------------- one name, one connection


def test_two_names_of_one_address_do_not_share_a_plain_connection() -> None:
    async def run() -> None:
        async with peer(ok(b"1"), ok(b"2"), ok(b"3")) as served, fetcher() as client:
            other = served.base.replace("127.0.0.1", "other.test")
            for base in (served.base, other, served.base):
                await page(client, base + "/")
            assert served.connections == 2

    asyncio.run(run())


def test_a_name_that_begins_like_its_site_is_not_asked_at_the_site_s_address() -> None:
    """robots.txt of http://pp.exam may redirect to http://pp.example."""

    async def run() -> FetchResult:
        async with fetcher() as client:
            url = "http://no-such.invalid/robots.txt"
            return await client.fetch(Fetch(1, "robots", url, "http://no-such", "127.0.0.1"), terms())

    assert asyncio.run(run()).error == "dns"


# ---------------------------------------------------------------------- second addresses


@pytest.fixture
def mute() -> Iterator[tuple[str, int]]:
    """An address and port where nobody answers: the queue of those who wish to connect is full."""
    with socket.socket() as listening, contextlib.ExitStack() as others:
        listening.bind(("127.0.0.2", 0))
        listening.listen(0)
        where = listening.getsockname()
        for _ in range(4):
            caller = others.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(where)
        yield where


async def by_two_addresses(port: int, first: str, second: str, turns: list[str], waits: list[float]) -> FetchResult:
    """A fetch whose site stands at `first`; `waits` is what politeness says of `second`, call after call."""

    def detour(_: Fetch, address: str) -> float:
        turns.append(address)
        return waits.pop(0)

    async with fetcher() as client:
        site = f"http://two.test:{port}"
        return await client.fetch(
            Fetch(1, "page", site + "/", site, first, fallbacks=(second,)), terms(timeout=5, detour=detour)
        )


def test_a_refusing_address_gives_way_to_the_next_once_politeness_lets_it() -> None:
    async def run() -> None:
        turns: list[str] = []
        async with peer(ok(b"alive")) as served:
            port = int(served.base.rpartition(":")[2])
            fetched = await by_two_addresses(port, "127.0.0.2", "127.0.0.1", turns, [0.001, 0.001, 0.0])
            assert (fetched.body, fetched.address) == (b"alive", "127.0.0.1")
            assert turns == ["127.0.0.1"] * 3
            assert len(served.asked) == 1

    asyncio.run(run())


def test_a_mute_address_gives_way_to_the_next(mute: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "ATTEMPT_S", 0.02)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ok(b"alive"))

    async def run() -> FetchResult:
        address, port = mute
        async with server(answer, port):
            return await by_two_addresses(port, address, "127.0.0.1", [], [0.0])

    fetched = asyncio.run(run())
    assert (fetched.body, fetched.address) == (b"alive", "127.0.0.1")


def test_a_first_address_that_answers_is_the_only_one_asked() -> None:
    async def run() -> None:
        turns: list[str] = []
        async with peer(ok(b"first")) as served:
            port = int(served.base.rpartition(":")[2])
            fetched = await by_two_addresses(port, "127.0.0.1", "127.0.0.2", turns, [])
            assert (fetched.body, fetched.address, turns) == (b"first", "127.0.0.1", [])

    asyncio.run(run())


def test_where_no_address_answers_the_first_one_s_error_counts() -> None:
    async def run() -> FetchResult:
        async with peer() as served:
            port = int(served.base.rpartition(":")[2])
        return await by_two_addresses(port, "127.0.0.1", "127.0.0.2", [], [])

    assert asyncio.run(run()).error == "connect"


def test_a_name_with_a_dead_ipv4_and_a_live_ipv6_address_is_reached() -> None:
    """Also without an address that politeness was counted for: a robots.txt on another host, say."""

    async def both(_: str) -> tuple[str, ...]:
        return ("127.0.0.2", "::1")

    async def run() -> None:
        pool, resolver = ConnectionPool(ssl.create_default_context), Resolver(both)
        async with peer(ok(b"six"), host="::1") as served:
            client = Fetcher(pool, SystemClock(), resolver.resolve)
            fetched = await page(client, f"http://two.test:{served.base.rpartition(':')[2]}/", address=None)
            pool.close()
        assert (fetched.body, fetched.address) == (b"six", "::1")

    asyncio.run(run())


def test_of_several_addresses_the_private_ones_are_refused_each() -> None:
    assert allowed(["10.0.0.1", "1.1.1.1", "::1", "2606:4700::1111"], allow_private=False) == [
        "1.1.1.1",
        "2606:4700::1111",
    ]
    assert allowed(["10.0.0.1", "1.1.1.1"], allow_private=True) == ["10.0.0.1", "1.1.1.1"]
    with pytest.raises(BadResponse, match="private-address"):
        allowed(["10.0.0.1", "::1"], allow_private=False)
    with pytest.raises(BadResponse, match="dns"):
        allowed([], allow_private=True)


def test_a_crawl_of_our_own_leaves_by_the_address_it_is_set() -> None:
    async def run() -> None:
        pool = ConnectionPool(ssl.create_default_context)
        async with peer(ok(b"page")) as served:
            await page(Fetcher(pool, SystemClock(), Resolver().resolve, local=("127.0.0.3", 0)), served.base + "/")
            assert served.writers[0].get_extra_info("peername")[0] == "127.0.0.3"
            pool.close()
            await asyncio.sleep(0.01)

    asyncio.run(run())


class KeptTransport(asyncio.Transport):
    """A connection's transport, of which only the end is of interest."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False

    def is_closing(self) -> bool:
        return self.ended

    def abort(self) -> None:
        self.ended = True


@pytest.mark.parametrize(("tls", "stay"), [(False, 5), (True, 2)])
def test_more_plain_connections_are_kept_than_those_of_tls_that_take_so_much_more_memory(
    tls: bool, stay: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "MAX_IDLE", 5)
    monkeypatch.setattr(connection_pool, "MAX_IDLE_TLS", 2)
    pool = ConnectionPool(ssl.create_default_context)
    transports = []
    for number in range(8):
        made = Connection(pool, Endpoint(f"127.0.0.{number}", 80, f"{number}.test", tls=tls))
        transports.append(KeptTransport())
        made.connection_made(transports[-1])
        pool.keep(made)
    assert [transport.ended for transport in transports] == [True] * (8 - stay) + [False] * stay  # the longest idle go
    assert pool.statistics().kept == stay
    pool.close()
    assert all(transport.ended for transport in transports)
    assert pool.statistics().kept == 0


def test_few_connections_are_kept_to_an_address_that_many_sites_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "MAX_IDLE", 6)
    monkeypatch.setattr(connection_pool, "MAX_IDLE_AT", 3)
    pool = ConnectionPool(ssl.create_default_context)
    transports = []
    for number in range(12):  # every third is at another address
        address = f"127.0.0.{number if number % 3 == 0 else 1}"
        made = Connection(pool, Endpoint(address, 80, f"{number}.test", tls=False))
        transports.append(KeptTransport())
        made.connection_made(transports[-1])
        pool.keep(made)
    assert [number for number, each in enumerate(transports) if not each.ended] == [3, 6, 8, 9, 10, 11]
    pool.close()
    assert all(transport.ended for transport in transports)


def test_a_tls_connection_that_was_closed_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "MAX_IDLE_TLS", 2)
    pool = ConnectionPool(ssl.create_default_context)
    transports = []
    for number in range(4):
        made = Connection(pool, Endpoint("127.0.0.1", number, f"{number}.test", tls=True))
        transports.append(KeptTransport())
        made.connection_made(transports[-1])
        pool.keep(made)
        if number < 2:
            made.abort()
    assert [transport.ended for transport in transports] == [True, True, False, False]
