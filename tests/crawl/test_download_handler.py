"""Requests of another project's spiders through our download handler: what Scrapy's own handler does is done.

Scrapy's own tests for handlers run in `test_scrapys_handler_tests.py` (soak); here each point that once differed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    StopDownload,
)
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.test import get_crawler
from twisted.internet.ssl import Certificate

from tests.download.peers import ok, peer, tls_of
from webfountain.crawl import download_handler
from webfountain.crawl.download_handler import FountainDownloadHandler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from scrapy.crawler import Crawler
    from scrapy.http import Response

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


@pytest.fixture(autouse=True)
def _asyncio_without_a_reactor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own loop runs, and no reactor."""
    monkeypatch.setattr("scrapy.core.downloader.handlers._base_streaming.is_asyncio_available", lambda: True)


@contextlib.asynccontextmanager
async def handler(**settings: Any) -> AsyncIterator[tuple[FountainDownloadHandler, Crawler]]:
    crawler = get_crawler(Spider, {"TWISTED_REACTOR_ENABLED": False, **settings})
    built = build_from_crawler(FountainDownloadHandler, crawler)
    try:
        yield built, crawler
    finally:
        await built.close()
        for _ in range(4):
            await asyncio.sleep(0)


async def ask(url: str, *, meta: dict[str, Any] | None = None, **settings: Any) -> Response:
    async with handler(**settings) as (built, _):
        return await built.download_request(Request(url, meta=meta or {}))


def answered(answer: bytes, then: Callable[[str], Awaitable[Any]], **options: Any) -> Any:
    """What `then` makes of a server that answers once, and closes."""

    async def run() -> Any:
        async with peer(answer, **options) as served:
            return await then(served.base)

    return asyncio.run(run())


@pytest.mark.parametrize(
    "settings", [{"DOWNLOAD_BIND_ADDRESS": "127.0.0.3"}, {"DOWNLOAD_BIND_ADDRESS": ("127.0.0.3", 0)}]
)
def test_a_crawl_leaves_by_the_address_it_is_set(settings: dict[str, Any]) -> None:
    callers = []

    async def run() -> None:
        async with peer(ok(b"1"), ok(b"2")) as served:
            await ask(served.base + "/", **settings)
            callers.append(served.writers[-1].get_extra_info("peername")[0])
            await ask(served.base + "/", meta={"bindaddress": "127.0.0.4"}, **settings)
            callers.append(served.writers[-1].get_extra_info("peername")[0])

    asyncio.run(run())
    assert callers == ["127.0.0.3", "127.0.0.4"]


def test_host_names_are_resolved_by_the_resolver_that_scrapy_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def installed(host: str) -> tuple[str, ...]:
        return ("127.0.0.1",) if host == "mine.test" else ()

    monkeypatch.setattr(download_handler, "reactor_addresses", installed)
    response = answered(ok(b"1"), lambda base: ask(base.replace("127.0.0.1", "mine.test")))
    assert response.ip_address == ip_address("127.0.0.1")
    with pytest.raises(CannotResolveHostError):
        asyncio.run(ask("http://other.test/"))


def test_a_large_body_is_warned_of_and_a_larger_one_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert len(answered(ok(b"x" * 200), lambda base: ask(base, DOWNLOAD_WARNSIZE=100)).body) == 200
        assert "larger than download warn size (100)" in caplog.text
        with pytest.raises(DownloadCancelledError):
            answered(HEAD + b"\r\n" + b"x" * 200, lambda base: ask(base, DOWNLOAD_MAXSIZE=100))
        assert "larger than download max size (100)" in caplog.text


def test_half_a_body_is_data_loss_and_a_reset_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    half = HEAD + b"Content-Length: 9\r\n\r\nhalf"
    with pytest.raises(ResponseDataLossError):
        answered(half, ask)
    assert "Got data loss" in caplog.text
    response = answered(half, lambda base: ask(base, DOWNLOAD_FAIL_ON_DATALOSS=False))
    assert (response.body, response.flags) == (b"half", ["dataloss"])

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(half)
        await writer.drain()
        linger = struct.pack("ii", 1, 0)  # close with RST
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    async def run() -> None:
        server = await asyncio.start_server(reset, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            await ask(f"http://127.0.0.1:{port}/", DOWNLOAD_FAIL_ON_DATALOSS=False)

    with pytest.raises(DownloadFailedError) as caught:
        asyncio.run(run())
    assert not isinstance(caught.value, ResponseDataLossError)


def test_tls_versions_that_do_not_exist_are_an_error_at_the_start() -> None:
    assert not FountainDownloadHandler.lazy
    with pytest.raises(ValueError, match="DOWNLOAD_TLS_MIN_VERSION"):
        build_from_crawler(
            FountainDownloadHandler,
            get_crawler(Spider, {"TWISTED_REACTOR_ENABLED": False, "DOWNLOAD_TLS_MIN_VERSION": "TLSv9"}),
        )


def test_a_response_has_its_certificate_and_the_version_it_was_sent_with(tmp_path: Path) -> None:
    response = answered(ok(b"1"), ask, tls=tls_of(tmp_path, "localhost"))
    assert isinstance(response.certificate, Certificate)
    assert response.protocol == "HTTP/1.1"
    old = answered(b"HTTP/1.0 200 OK\r\n\r\nbody", ask)
    assert (old.certificate, old.protocol, old.body) == (None, "HTTP/1.0", b"body")


def test_a_download_takes_no_longer_than_its_time_to_the_last_byte() -> None:
    async def run() -> float:
        async with peer(
            HEAD + b"Content-Length: 9\r\n\r\nhalf", b"never asked for: the connection stays open"
        ) as served:
            loop = asyncio.get_running_loop()
            before = loop.time()
            with pytest.raises(DownloadTimeoutError, match=r"took longer than 0\.3 seconds"):
                await ask(served.base, meta={"download_timeout": 0.3})
            return loop.time() - before

    assert asyncio.run(run()) >= 0.3


def test_a_signal_may_stop_a_download_at_its_head_or_within_its_body() -> None:
    async def run() -> None:
        async with peer(ok(b"body", "X-A: 1"), ok(b"body")) as served, handler() as (built, crawler):

            def stop(**about: Any) -> None:
                printed.append(about)
                raise StopDownload(fail=False)

            for signal in (signals.headers_received, signals.bytes_received):
                printed: list[dict[str, Any]] = []
                crawler.signals.connect(stop, signal)
                response = await built.download_request(Request(served.base))
                crawler.signals.disconnect(stop, signal)
                assert response.flags == ["download_stopped"]
                assert len(printed) == 1
            assert response.body == b"body"

    asyncio.run(run())


def test_an_endless_head_is_cut_and_a_private_address_refused() -> None:
    """What Scrapy's handler does not do."""
    with pytest.raises(DownloadCancelledError, match="headers-too-large"):
        answered(HEAD + b"A: b\r\n" * 20_000, ask)
    with pytest.raises(DownloadCancelledError, match="private-address"):
        asyncio.run(ask("http://127.0.0.1:9/", WEBFOUNTAIN_ALLOW_PRIVATE=False))
    with pytest.raises(DownloadConnectionRefusedError):
        asyncio.run(ask("http://127.0.0.1:9/"))


def test_a_location_reaches_the_project_as_the_bytes_that_were_sent() -> None:
    sent = "/café".encode()
    response = answered(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + sent + b"\r\n\r\n", ask)
    assert response.headers["Location"] == sent


def test_a_length_that_is_no_number_beside_chunks_does_no_harm() -> None:
    body = b"Transfer-Encoding: chunked\r\nContent-Length: many\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    assert answered(HEAD + body, ask).body == b"ok"


def test_a_certificate_of_another_name_is_warned_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with peer(ok(b"1"), ok(b"2"), tls=tls_of(tmp_path, "elsewhere.test")) as served, handler() as (built, _):
            for _ in range(2):
                assert (await built.download_request(Request(served.base + "/"))).status == 200

    asyncio.run(run())
    assert caplog.text.count('Remote certificate is not valid for hostname "127.0.0.1"') == 1


@pytest.mark.parametrize(("host", "warnings"), [("elsewhere.test", 0), ("127.0.0.1", 1), ("other.test", 1)])
def test_a_certificate_is_compared_with_the_name_of_its_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, host: str, warnings: int
) -> None:
    certificate = answered(ok(b"1"), ask, tls=tls_of(tmp_path, "elsewhere.test")).certificate
    caplog.clear()
    download_handler.warn_of_other_name(host, certificate)
    assert caplog.text.count("is not valid for hostname") == warnings
