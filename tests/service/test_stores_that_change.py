"""Stores under the service: of another format, gone and back, of a crawl that is killed; names that are taken twice."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.acceptance.crawls import policy
from tests.api.crawled import crawled_store, served
from webfountain.errors import InputError
from webfountain.lab.demo.process import DemoServer
from webfountain.service import served_store
from webfountain.service.settings import ServeSettings, StoreEntry, store_entry
from webfountain.store.embedded.disk import WriteBatch, open_writing
from webfountain.store.embedded.keys import META

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.api.crawled import ServiceClient

ROOT = Path(__file__).resolve().parents[2]
ONE = "/v1/collections/one"


async def until(found: Callable[[], Awaitable[Any]]) -> Any:
    end = time.monotonic() + 240
    while not (value := await found()):
        assert time.monotonic() < end, "it takes too long"
        await asyncio.sleep(0.05)
    return value


async def status_is(service: ServiceClient, wanted: int) -> dict[str, Any] | None:
    status, found = await service.get(f"{ONE}/status")
    return found if status == wanted else None


def test_a_store_of_another_format_is_said_and_served_once_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_store, "_FIRST_RETRY_S", 0.05)
    folder, good = tmp_path / "store", tmp_path / "good"
    url = crawled_store(folder, seconds=5.0)
    shutil.copytree(folder, good)
    disk, batch = open_writing(folder), WriteBatch(raw_mode=True)
    batch.put(META, msgspec.msgpack.encode([99, "test", 86_400.0, 900.0]))
    disk.write(batch)
    disk.close()

    async def run() -> None:
        async with served(url) as service:
            found = await until(lambda: status_is(service, 503))
            assert "format 99" in found["detail"]
            async with service.client.get(f"{service.address}/collections/one") as response:
                assert response.status == 503
                assert "format 99" in await response.text()
            shutil.rmtree(folder)
            assert "no folder" in (await until(lambda: away_with(service, "no folder")))["detail"]
            shutil.copytree(good, folder)
            assert (await until(lambda: status_is(service, 200)))["known"] > 0

    asyncio.run(run())


async def away_with(service: ServiceClient, words: str) -> dict[str, Any] | None:
    found = await status_is(service, 503)
    return found if found is not None and words in found["detail"] else None


def test_a_crawl_that_is_killed_and_begun_again_is_served_all_along(tmp_path: Path) -> None:
    with DemoServer(seed=3, sites=2, pages=20, period=0, latency=0.002) as web:
        command = [sys.executable, "-m", "webfountain", "crawl", str(policy(tmp_path, web.urls))]
        command += [f"--store=rocksdb://{tmp_path}/store", "--max-seconds=600"]
        quiet = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

        async def crawling(service: ServiceClient, *, wanted: bool) -> dict[str, Any] | None:
            found = await status_is(service, 200)
            return found if found is not None and found["crawling"] is wanted else None

        async def run() -> None:
            async with served(f"rocksdb://{tmp_path}/store") as service:
                for _ in range(2):
                    process = subprocess.Popen(command, **quiet)  # type: ignore[call-overload]
                    try:
                        await until(lambda: crawling(service, wanted=True))
                    finally:
                        os.kill(process.pid, signal.SIGKILL)
                        process.wait()
                    assert (await until(lambda: crawling(service, wanted=False)))["known"] >= 0

        asyncio.run(run())


def test_two_collections_of_one_name_are_refused_with_the_name(tmp_path: Path) -> None:
    entries = (store_entry(f"rocksdb://{tmp_path}/a/news"), store_entry(f"rocksdb://{tmp_path}/b/news"))
    with pytest.raises(InputError, match="'news' occurs twice"):
        ServeSettings(stores=entries).checked()
    assert ServeSettings(stores=(entries[0], StoreEntry("other", entries[1].url))).checked()
