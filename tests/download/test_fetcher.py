"""One conditional GET: what is asked, over which connection, to which address, and what comes back."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.download.peers import fetcher, ok, page, peer, terms, tls_of
from webfountain.clock import SystemClock
from webfountain.download.connection_pool import ConnectionPool
from webfountain.download.fetcher import Fetcher
from webfountain.download.resolver import Resolver

if TYPE_CHECKING:
    from pathlib import Path

GONE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def test_a_page_is_asked_by_the_terms_and_comes_back_whole() -> None:
    async def run() -> None:
        async with peer(ok(b"<p>hi</p>", 'ETag: "a"')) as server, fetcher() as client:
            fetched = await page(client, server.base + "/x?a=1")
            assert (fetched.status, fetched.body, fetched.header("etag"), fetched.error) == (
                200,
                b"<p>hi</p>",
                '"a"',
                None,
            )
            lines = server.asked[0].splitlines()
            assert lines[0] == "GET /x?a=1 HTTP/1.1"
            assert lines[1:-1] == [f"{name}: {value}" for name, value in fetched.request_headers]
            assert "User-Agent: test/1.0" in lines
            assert f"Host: {server.base.removeprefix('http://')}" in lines
            assert 0 < fetched.seconds < 1

    asyncio.run(run())


def test_a_known_page_is_asked_with_its_validators() -> None:
    async def run() -> None:
        async with peer(b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n') as server, fetcher() as client:
            fetched = await page(client, server.base + "/", etag='"a"', last_modified="Thu, 01 Jan 1970 00:00:00 GMT")
            assert (fetched.status, fetched.body) == (304, b"")
            assert 'If-None-Match: "a"' in server.asked[0]
            assert "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT" in server.asked[0]

    asyncio.run(run())


def test_one_connection_serves_a_site_while_it_is_in_step() -> None:
    async def run() -> None:
        async with peer(ok(b"1"), ok(b"2"), GONE) as server, fetcher() as client:
            assert [(await page(client, server.base + "/")).status for _ in range(3)] == [200, 200, 404]
            assert server.connections == 1

    asyncio.run(run())


def test_a_connection_out_of_step_is_not_used_again() -> None:
    async def run() -> None:
        async with peer(ok(b"1") + b"HTTP/1.1 200 OK\r\n", ok(b"2")) as server, fetcher() as client:
            assert [(await page(client, server.base + "/")).body for _ in range(2)] == [b"1", b"2"]
            assert server.connections == 2

    asyncio.run(run())


def test_a_kept_connection_that_the_peer_closed_is_replaced_without_an_error() -> None:
    async def run() -> None:
        async with peer(ok(b"1"), None, ok(b"2")) as server, fetcher() as client:
            assert [(await page(client, server.base + "/")).body for _ in range(2)] == [b"1", b"2"]
            assert server.connections == 2

    asyncio.run(run())


def test_a_fresh_connection_that_is_closed_without_a_word_is_cut_and_not_tried_again() -> None:
    async def run() -> None:
        async with peer(None, ok(b"2")) as server, fetcher() as client:
            assert (await page(client, server.base + "/")).error == "cut"
            assert len(server.asked) == 1

    asyncio.run(run())


def test_only_the_given_address_is_connected_to_whatever_the_name_resolves_to() -> None:
    async def run() -> None:
        async with peer(ok(b"here")) as server, fetcher() as client:
            url = server.base.replace("127.0.0.1", "no-such-name.invalid") + "/"
            assert (await page(client, url)).body == b"here"

    asyncio.run(run())


def test_a_name_without_an_address_is_an_error_of_dns() -> None:
    async def run() -> None:
        async with fetcher() as client:
            assert (await page(client, "http://no-such-name.invalid/", address=None)).error == "dns"

    asyncio.run(run())


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fe80::1", "0.0.0.0", "224.0.0.1"],
)
def test_private_addresses_are_refused_whoever_named_them(address: str) -> None:
    async def run() -> None:
        async with fetcher() as client:
            fetched = await page(client, "http://rebound.test/", address=address, under=terms(allow_private=False))
            assert fetched.error == "private-address"

    asyncio.run(run())


def test_a_name_that_resolves_to_loopback_is_refused_without_a_given_address() -> None:
    async def run() -> None:
        async with fetcher() as client:
            fetched = await page(client, "http://localhost/", address=None, under=terms(allow_private=False))
            assert fetched.error == "private-address"

    asyncio.run(run())


def test_nobody_listening_is_an_error_of_connecting() -> None:
    async def run() -> None:
        async with peer() as server, fetcher() as client:
            base = server.base
        async with fetcher() as client:
            assert (await page(client, base + "/")).error == "connect"

    asyncio.run(run())


def test_an_ipv6_address_is_asked_in_brackets() -> None:
    async def run() -> None:
        async with peer(ok(b"six"), host="::1") as server, fetcher() as client:
            fetched = await page(client, server.base + "/", address="::1")
            assert fetched.body == b"six"
            assert f"Host: {server.base.removeprefix('http://')}" in server.asked[0]

    asyncio.run(run())


def test_tls_names_the_site_and_keeps_the_connection(tmp_path: Path) -> None:
    async def run() -> None:
        server_side = tls_of(tmp_path, "site.test")
        names: list[str | None] = []
        server_side.sni_callback = lambda _, name, __: names.append(name)
        async with peer(ok(b"one"), ok(b"two"), tls=server_side) as server, fetcher() as client:
            url = server.base.replace("127.0.0.1", "site.test") + "/"
            assert [(await page(client, url)).body for _ in range(2)] == [b"one", b"two"]
            assert names == ["site.test"]

    asyncio.run(run())


def test_a_certificate_that_must_be_verified_and_cannot_is_an_error_of_its_own(tmp_path: Path) -> None:
    async def run() -> None:
        verifying = ssl.create_default_context()
        async with peer(ok(b"one"), tls=tls_of(tmp_path, "site.test")) as server, fetcher(verifying) as client:
            assert (await page(client, server.base.replace("127.0.0.1", "site.test") + "/")).error == "certificate"

    asyncio.run(run())


def test_a_body_that_ends_with_the_tls_connection_is_whole(tmp_path: Path) -> None:
    async def run() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nuntil the end"
        async with peer(answer, tls=tls_of(tmp_path, "site.test")) as server, fetcher() as client:
            assert (await page(client, server.base + "/")).body == b"until the end"

    asyncio.run(run())


def test_the_content_coding_is_undone() -> None:
    async def run() -> None:
        answer = ok(gzip.compress(b"<p>packed</p>"), "Content-Encoding: gzip")
        async with peer(answer) as server, fetcher() as client:
            assert (await page(client, server.base + "/")).body == b"<p>packed</p>"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("content_type", "error"),
    [
        ("image/png", "content-type"),
        ("TEXT/HTML; charset=x", None),
        ("application/pdf;q=1", "content-type"),
        ("", None),
    ],
)
def test_a_page_of_a_type_that_nobody_wants_is_cut_after_its_head(content_type: str, error: str | None) -> None:
    async def run() -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: {content_type}\r\n\r\n"
        async with peer(head.encode() + b"ok") as server, fetcher() as client:
            assert (await page(client, server.base + "/")).error == error

    asyncio.run(run())


def test_robots_and_sitemaps_are_taken_whatever_their_type() -> None:
    async def run() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/octet-stream\r\n\r\nok"
        async with peer(answer, answer) as server, fetcher() as client:
            assert (await page(client, server.base + "/robots.txt", kind="robots")).body == b"ok"
            assert (await page(client, server.base + "/sitemap.xml", kind="sitemap")).body == b"ok"

    asyncio.run(run())


def test_robots_txt_counts_to_500_kib_and_no_further() -> None:
    async def run() -> None:
        async with peer(ok(b"#" * 700_000)) as server, fetcher() as client:
            fetched = await page(client, server.base + "/robots.txt", kind="robots")
            assert (fetched.error, len(fetched.body)) == (None, 512_000)

    asyncio.run(run())


def test_a_length_above_the_bound_is_refused_before_the_body() -> None:
    async def run() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"
        async with peer(answer) as server, fetcher() as client:
            assert (await page(client, server.base + "/", under=terms(max_bytes=1000))).error == "too-large"

    asyncio.run(run())


def test_a_fetch_that_is_cancelled_leaves_no_connection_behind() -> None:
    async def run() -> None:
        async with peer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", ok(b"2")) as server, fetcher() as client:
            task = asyncio.create_task(page(client, server.base + "/"))
            while not server.asked:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await page(client, server.base + "/")).body == b"2"
            assert server.connections == 2

    asyncio.run(run())


def test_an_abort_ends_what_runs_for_good_also_on_a_kept_connection() -> None:
    async def run() -> None:
        silent = b""
        async with peer(ok(b"1"), silent, ok(b"2")) as server:
            pool = ConnectionPool(ssl.create_default_context)
            client = Fetcher(pool, SystemClock(), Resolver().resolve)
            await page(client, server.base + "/")
            task = asyncio.create_task(page(client, server.base + "/"))
            while len(server.asked) < 2:
                await asyncio.sleep(0)
            pool.abort()
            assert (await task).error == "cut"
            assert len(server.asked) == 2
            pool.close()

    asyncio.run(run())
