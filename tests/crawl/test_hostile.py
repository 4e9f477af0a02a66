"""Every hostile behaviour, met by the downloader: the outcome, in bounded time and memory, others unaffected.

The servers are of `tests/servers/hostile.py`. What a whole crawl makes of them is in `test_hostile_crawl.py`.
"""

from __future__ import annotations

import asyncio
import resource
import time
from typing import TYPE_CHECKING

import pytest

from tests.crawl.pace import slowness
from tests.download.peers import fetcher, page, terms
from tests.servers.hostile import BEHAVIOURS, HostileServer

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = {
    "unknown-coding": "content-coding",
    "endless-headers": "headers-too-large",
    "endless-header-line": "headers-too-large",
    "many-cookies": "headers-too-large",
    "endless-interim-answers": "bad-response",
    "trickled-headers": "timeout",
    "silence": "timeout",
    "trickled-body": "too-slow",
    "stalled-body": "too-slow",
    "oversize-with-length": "too-large",
    "oversize-without-length": "too-large",
    "endless-chunks": "too-large",
    "tiny-chunks": "bad-response",
    "endless-chunk-extension": "bad-response",
    "endless-trailers": "bad-response",
    "broken-chunks": "bad-response",
    "huge-chunk-size": "bad-response",
    "length-too-long": "cut",
    "length-negative": "bad-response",
    "two-lengths": "bad-response",
    "cut-in-the-body": "cut",
    "cut-in-the-headers": "cut",
    "reset-before-the-answer": "cut",
    "closed-before-the-answer": "cut",
    "no-status-line": "bad-response",
    "status-without-number": "bad-response",
    "http-0-9": "bad-response",
    "random-bytes": "bad-response",
    "gzip-bomb": "bomb",
    "nested-bomb": "bomb",
    "deflate-bomb": "bomb",
    "brotli-bomb": "bomb",
    "gzip-that-is-plain": "bad-response",
    "gzip-cut-short": "cut",
    "image-as-html": "content-type",
}
"""The error word of each behaviour that must fail; the others are answers."""
PAGES = sorted(name for name, behaviour in BEHAVIOURS.items() if behaviour.place == "/bad")
TIMEOUT_S = 1.5
"""On an idle machine."""
MEGABYTES = 60


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.fixture(scope="module")
def timeout() -> float:
    return TIMEOUT_S * slowness()


def host_of(base: str) -> str:
    return base.split("//")[1].split(":", maxsplit=1)[0]


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize("name", PAGES)
def test_a_hostile_page_ends_in_its_word_in_bounded_time_and_memory(
    server: HostileServer, name: str, timeout: float
) -> None:
    bounds = terms(timeout=timeout)

    async def run() -> None:
        bad, plain = server.sites[name].rstrip("/"), server.sites["plain"].rstrip("/")
        before, start = peak_megabytes(), time.monotonic()
        async with fetcher() as client:
            hostile = asyncio.create_task(page(client, f"{bad}/bad", address=host_of(bad), under=bounds))
            good = await page(client, f"{plain}/good", address=host_of(plain), under=bounds)
            fetched = await hostile
        assert (good.status, good.error) == (200, None)
        assert good.seconds < timeout
        assert fetched.error == WORDS.get(name)
        assert (fetched.status is None) == (fetched.error is not None)
        assert time.monotonic() - start < 3 * timeout
        assert peak_megabytes() - before < MEGABYTES

    asyncio.run(run())


def test_the_good_page_of_a_hostile_site_can_be_fetched_afterwards(server: HostileServer, timeout: float) -> None:
    bounds = terms(timeout=timeout)

    async def run() -> None:
        async with fetcher() as client:
            for name in ("cut-in-the-body", "length-too-short", "random-bytes"):
                base = server.sites[name].rstrip("/")
                await page(client, f"{base}/bad", address=host_of(base), under=bounds)
                good = await page(client, f"{base}/good", address=host_of(base), under=bounds)
                assert good.status == 200

    asyncio.run(run())


def test_there_are_at_least_25_behaviours_and_every_word_names_one() -> None:
    assert len(PAGES) >= 25
    assert set(WORDS) <= set(PAGES)
