"""Connections that are kept: how many, to whom, and which go first."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from webfountain.download import idle_connections
from webfountain.download.connection import Connection, Endpoint
from webfountain.download.connection_pool import ConnectionPool

ROOT = Path(__file__).resolve().parents[2]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


class Kept(asyncio.Transport):
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
    monkeypatch.setattr(idle_connections, "MAX_IDLE", 5)
    monkeypatch.setattr(idle_connections, "MAX_IDLE_TLS", 2)
    pool = ConnectionPool(ssl.create_default_context)
    transports = []
    for number in range(8):
        made = Connection(pool, Endpoint(f"127.0.0.{number}", 80, f"{number}.test", tls=tls))
        transports.append(Kept())
        made.connection_made(transports[-1])
        pool.keep(made)
    assert [transport.ended for transport in transports] == [True] * (8 - stay) + [False] * stay  # the longest idle go
    assert pool.statistics().kept == stay
    pool.close()
    assert all(transport.ended for transport in transports)
    assert pool.statistics().kept == 0


def test_few_connections_are_kept_to_an_address_that_many_sites_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_connections, "MAX_IDLE", 6)
    monkeypatch.setattr(idle_connections, "MAX_IDLE_AT", 3)
    pool = ConnectionPool(ssl.create_default_context)
    transports = []
    for number in range(12):  # every third is at another address
        address = f"127.0.0.{number if number % 3 == 0 else 1}"
        made = Connection(pool, Endpoint(address, 80, f"{number}.test", tls=False))
        transports.append(Kept())
        made.connection_made(transports[-1])
        pool.keep(made)
    assert [number for number, each in enumerate(transports) if not each.ended] == [3, 6, 8, 9, 10, 11]
    pool.close()
    assert all(transport.ended for transport in transports)


def test_a_connection_of_tls_that_left_counts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_connections, "MAX_IDLE_TLS", 2)
    pool = ConnectionPool(ssl.create_default_context)
    transports = []
    for number in range(4):
        made = Connection(pool, Endpoint("127.0.0.1", number, f"{number}.test", tls=True))
        transports.append(Kept())
        made.connection_made(transports[-1])
        pool.keep(made)
        if number < 2:
            made.abort()
    assert [transport.ended for transport in transports] == [True, True, False, False]
