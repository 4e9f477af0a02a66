"""Files of connections are counted before they are opened; who finds none waits."""

from __future__ import annotations

import asyncio
import os
import resource
import ssl
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.download.peers import ok, page, server, terms
from webfountain.clock import SystemClock
from webfountain.download.connection_pool import ConnectionPool
from webfountain.download.fetcher import Fetcher
from webfountain.download.file_limit import spare_files
from webfountain.download.resolver import Resolver

if TYPE_CHECKING:
    from webfountain.records import FetchResult

ROOT = Path(__file__).resolve().parents[2]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def test_no_more_connections_are_opened_than_there_are_files_for() -> None:
    """The rest waits, and its time with it: none of them is late."""
    most = now = 0

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal most, now
        await reader.readuntil(b"\r\n\r\n")
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        writer.write(ok(b"page"))

    async def run() -> list[FetchResult]:
        pool = ConnectionPool(ssl.create_default_context, spare=lambda: 3 - pool.statistics().open)
        client = Fetcher(pool, SystemClock(), Resolver().resolve)
        async with server(slow) as port:
            sites = [f"http://{number}.test:{port}/" for number in range(20)]
            fetched = await asyncio.gather(*(page(client, site, under=terms(timeout=2)) for site in sites))
            assert pool.statistics().active == pool.statistics().waiting == 0
            pool.close()
            await asyncio.sleep(0.01)
            assert pool.statistics().open == 0
            return fetched

    assert {fetched.body for fetched in asyncio.run(run())} == {b"page"}
    assert most == 3


def test_those_who_wait_for_a_file_end_when_the_crawl_is_cut() -> None:
    async def hold(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async def run() -> None:
        pool = ConnectionPool(ssl.create_default_context, spare=lambda: 1 - pool.statistics().open)
        client = Fetcher(pool, SystemClock(), Resolver().resolve)
        async with server(hold) as port:
            sites = [f"http://{number}.test:{port}/" for number in range(3)]
            tasks = [asyncio.create_task(page(client, site, under=terms(timeout=240))) for site in sites]
            while pool.statistics().waiting < 2:
                await asyncio.sleep(0)
            tasks[2].cancel()  # and one gives up by itself
            await asyncio.sleep(0)
            assert pool.statistics().waiting == 1
            pool.abort()
            assert [(await task).error for task in tasks[:2]] == ["cut", "cut"]
            pool.close()
            await asyncio.sleep(0.01)
            assert pool.statistics() == (0, 0, 0, 0)

    asyncio.run(run())


def test_a_reserve_of_files_is_left_to_the_rest_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    open_now = len(os.listdir("/dev/fd"))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert 1024 - 160 - open_now - 2 <= spare_files() <= 1024 - 160 - open_now + 2
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    assert spare_files() <= 48
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert spare_files() > 100_000


@pytest.mark.parametrize("spare", ["spare_files", "lambda: 1000"])
def test_a_process_with_few_files_fetches_from_many_sites_at_once(spare: str) -> None:
    """Under a real limit of 96 files, 300 fetches at once: none fails for want of one, also where others took them."""
    program = f"""
        import asyncio, resource, sys
        from webfountain.download import connection_pool
        from webfountain.download.file_limit import spare_files
        connection_pool.spare_files = {spare}
        resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))
        from tests.download.peers import fetcher, page, terms

        async def run(port):
            async with fetcher() as client:
                urls = [f"http://{{number}}.test:{{port}}/" for number in range(300)]
                fetched = await asyncio.gather(*(page(client, url, under=terms(timeout=30)) for url in urls))
                print(*sorted({{str(each.error) for each in fetched}}))

        asyncio.run(run(int(sys.argv[1])))
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ok(b"page", "Connection: close"))
        await writer.drain()
        writer.close()

    async def run() -> bytes:
        async with server(answer) as port:
            command = [sys.executable, "-c", textwrap.dedent(program), str(port)]
            env = {**os.environ, "PYTHONPATH": str(ROOT)}
            child = await asyncio.create_subprocess_exec(*command, env=env, stdout=subprocess.PIPE)
            said, _ = await child.communicate()
            return said

    assert asyncio.run(run()).strip() == b"None"
