"""A chain of redirects ends, however it was begun and however often the crawl is started."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Answer, Drive, collection_of
from tests.store.stores import server_url
from webfountain.clock import ManualClock
from webfountain.frontier.pages.examiner import MAX_HOPS
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch
    from webfountain.store.contract import FrontierStore

HOME, OTHER = "http://chain.example", "http://other.example"


def endless(fetch: Fetch, at: float) -> Answer:
    """Every page redirects to the next."""
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    number = int(fetch.url.rsplit("/", 1)[1] or 0)
    return 302, {"location": f"/{number + 1}"}, b"", 0.01


def opened(backend: str, folder: Path) -> FrontierStore:
    url = f"rocksdb://{folder}" if backend == "embedded" else f"{server_url()}?prefix={folder.name}&shards=1"
    return open_store(url, collection="test", period_s=86_400.0)


def _has_redirected(store: FrontierStore, pages: int) -> bool:
    return store.census.statistics().pages["redirected"] >= pages


def pages_of(drive: Drive) -> dict[str, tuple[str, str | None]]:
    return {record.url: (record.state, record.error) for _, record in drive.store.pages.records()}


def test_an_endless_chain_of_redirects_ends_after_twenty_and_is_counted() -> None:
    """245 URLs in a minute, and growing."""
    drive = Drive(collection_of([f"{HOME}/"], delay_factor=0), endless)
    drive.run(seconds=600.0)
    assert len(drive.asked()) == MAX_HOPS + 1
    assert pages_of(drive)[f"{HOME}/{MAX_HOPS}"] == ("failed", "redirect-chain")
    assert drive.metrics.get("links/chain_ended") == 1
    drive.run(seconds=90 * 86_400.0)
    assert len(pages_of(drive)) == MAX_HOPS + 1, "later visits make it no longer"


@pytest.mark.parametrize("backend", ["embedded", "shared"])
def test_a_chain_is_counted_across_restarts(tmp_path: Path, backend: str) -> None:
    clock = ManualClock(1_000_000.0)
    found: dict[str, tuple[str, str | None]] = {}
    for most in range(3, MAX_HOPS + 9, 6):
        store = opened(backend, tmp_path)
        drive = Drive(collection_of([f"{HOME}/"], delay_factor=0), endless, store=store, clock=clock)
        drive.run(seconds=600.0, until=partial(_has_redirected, store, most))
        found = pages_of(drive)
        drive.frontier.close()
    assert len(found) == MAX_HOPS + 1


def test_a_page_in_a_chain_begins_none_anew_and_a_link_does() -> None:
    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "page" and fetch.url == f"{HOME}/7":
            return 200, {"content-type": "text/html"}, b'<a href="/1000">on</a>', 0.01
        return endless(fetch, at)

    drive = Drive(collection_of([f"{HOME}/"], delay_factor=0), answer)
    drive.run(seconds=600.0)
    asked = drive.asked()
    assert f"{HOME}/8" not in asked
    assert f"{HOME}/{1000 + MAX_HOPS}" in asked
    assert f"{HOME}/{1001 + MAX_HOPS}" not in asked
    assert drive.page(f"{HOME}/1003").depth == 1, "its links are counted by their depth"


def test_an_endless_chain_of_sitemaps_across_two_sites_ends_after_twenty() -> None:
    """Each site asked the other for fifty a period: as many as it may name."""

    links = "".join(f'<a href="/{number}">x</a>' for number in range(200)).encode()

    def answer(fetch: Fetch, at: float) -> Answer:
        if fetch.kind == "robots" and fetch.site == HOME:
            return 200, {"content-type": "text/plain"}, f"Sitemap: {HOME}/map0\n".encode(), 0.01
        if fetch.kind == "sitemap":
            other = OTHER if fetch.site == HOME else HOME
            return 302, {"location": f"{other}/map{int(fetch.url.rpartition('map')[2]) + 1}"}, b"", 0.01
        return (404, {}, b"", 0.01) if fetch.kind == "robots" else (200, {"content-type": "text/html"}, links, 0.01)

    drive = Drive(collection_of([f"{HOME}/", f"{OTHER}/"], delay_factor=0, politeness="per_ip = false"), answer)
    drive.run(seconds=600.0)
    assert sum(kind == "sitemap" for _, kind, _ in drive.log) == MAX_HOPS + 1
