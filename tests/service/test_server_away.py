"""While a store's server is away the service says so, and it goes on by itself when the server is back."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from tests.api.crawled import ServiceClient, served
from tests.servers.set_backs import TimeMachine
from tests.servers.valkey import SERVERS, single
from tests.store.stores import active, lease, links, outcome
from webfountain.service import served_store
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    import pytest

CHANGES = "/v1/collections/one/changes"
STATUS = "/v1/collections/one/status"


def test_a_server_that_comes_back_is_served_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_store, "ANSWER_S", 0.3)

    async def run(url: str) -> None:
        async with served(url) as service:
            await until_status(service, 200)
            SERVERS[url].stop()
            status, found = await until_status(service, 503)
            assert (status, found["kind"]) == (503, "store-away")
            assert (await service.get("/readyz"))[0] == 503
            assert (await service.get("/healthz"))[0] == 200
            SERVERS[url].start(timeout=240.0)
            _, found = await until_status(service, 200)
            assert found["known"] == 3

    with single(appendonly="yes") as (url, _):
        store = open_store(url, collection="tests", period_s=60.0)
        store.queues.discover(links(1, 2, 3), at=1.0)
        store.close()
        asyncio.run(run(url))


def test_a_server_that_was_set_back_is_served_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cursors of the lost time are refused; everything else goes on by itself."""
    monkeypatch.setattr(served_store, "ANSWER_S", 0.3)

    async def run(machine: TimeMachine) -> None:
        async with served(machine.url) as service:
            status, found = await until_status(service, 200)
            assert found["known"] == 3
            status, early = await service.get(CHANGES)
            with contextlib.closing(open_store(machine.url, collection="tests", period_s=60.0)) as store:
                machine.remember()
                site = active(store)
                store.queues.settle([outcome(one, 2.0) for one in lease(store, site, 3)], at=2.0)
                _, late = await service.get(CHANGES, since=early["next"])
                assert len(late["items"]) == 3
            machine.go_back()
            await until_status(service, 200)
            assert (await service.get(CHANGES))[1]["items"] == []
            status, found = await service.get(CHANGES, since=late["next"])
            assert (status, found["kind"]) in ((410, "cursor-lost"), (400, "input")), found
            with contextlib.closing(open_store(machine.url, collection="tests", period_s=60.0)) as store:
                store.queues.discover(links(4), at=3.0)
            assert (await service.get(STATUS))[1]["known"] == 4

    with TimeMachine("snapshot") as machine:
        store = open_store(machine.url, collection="tests", period_s=60.0)
        store.queues.discover(links(1, 2, 3), at=1.0)
        store.close()
        asyncio.run(run(machine))


async def until_status(service: ServiceClient, status: int) -> tuple[int, dict[str, object]]:
    async with asyncio.timeout(60):
        while True:
            found = await service.get(STATUS)
            if found[0] == status:
                return found
            await asyncio.sleep(0.05)
