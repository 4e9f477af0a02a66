"""`webfountain check` of a store of many ants: all their folders count, and what is on other machines is named so."""

from __future__ import annotations

import contextlib
import json
import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import redis

from tests.repository.captures import Crawl, capture, sha1, url_of
from tests.servers.valkey import cluster
from tests.store.invariants import check_valid
from tests.store.stores import server_url
from webfountain.cli import main
from webfountain.repository.repository import Repository, folder_of_ant
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.records import Copy, Lease, Outcome
    from webfountain.store.contract import FrontierStore

COPIES = 5
ELSEWHERE = 3
"""The ant of another machine."""


class DigestCrawl(Crawl):
    """Records have the digests of their copies, which are the pages' URLs."""

    def _outcome(self, lease: Lease, copy: Copy | None) -> Outcome:
        made = super()._outcome(lease, copy)
        digest = sha1(lease.record.url.encode())
        return msgspec.structs.replace(made, record=msgspec.structs.replace(made.record, digest=digest))


@pytest.fixture(scope="module")
def clustered() -> Iterator[str]:
    with cluster() as server:
        yield server


@pytest.fixture(params=["single", "cluster"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    server = request.getfixturevalue("clustered") if request.param == "cluster" else server_url()
    name = f"{server}?prefix=check-{tmp_path.name}&shards=3"
    fill(name, tmp_path)
    return name


def opened(url: str) -> contextlib.closing[FrontierStore]:
    return contextlib.closing(open_store(url, collection="tests", period_s=10.0))


def fill(url: str, folder: Path) -> None:
    """Three ants with five copies each, the third on another machine."""
    with opened(url) as store:
        assert store.claims is not None
        crawl = DigestCrawl()
        crawl.store = store  # type: ignore[assignment]
        for number in (1, 2, ELSEWHERE):
            root = folder / ("far" if number == ELSEWHERE else "copies")
            store.claims.claim([f"repository/{number}"], owner=f"host-{number}:{root}", until=math.inf, at=1.0)
            urls = [url_of(10 * number + n) for n in range(COPIES)]
            with contextlib.closing(Repository(folder_of_ant(root, number), number=number)) as repository:
                crawl.settle(urls, repository.write([capture(each, each.encode()) for each in urls]))


def check(url: str, folder: Path, capsys: pytest.CaptureFixture[str], *more: str, status: int) -> dict[str, Any]:
    assert main(["check", "--store", url, "--repository", str(folder / "copies"), "--json", *more]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_healthy_store_of_many_ants_is_whole(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = check(url, tmp_path, capsys, status=0)
    assert (found["whole"], found["counts"], found["lost"], found["copies"]) == (True, [], [], 3 * COPIES)
    assert found["elsewhere"] == {str(ELSEWHERE): [f"host-3:{tmp_path}/far", COPIES]}
    assert main(["check", "--store", url, "--repository", str(tmp_path / "copies")]) == 0
    said = capsys.readouterr().out
    assert f"copies  whole: {2 * COPIES} read" in said
    assert f"{COPIES} of ant {ELSEWHERE} not read: they are at host-3:{tmp_path}/far" in said


def test_repair_has_lost_copies_fetched_again_and_counts_anew(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each ant's own; what is on another machine is left alone."""
    server = url.partition("?")[0]
    prefix = url.partition("prefix=")[2].partition("&")[0]
    client: Any = (
        redis.cluster.RedisCluster.from_url(server.replace("+cluster", ""))
        if "+cluster" in server
        else redis.Redis.from_url(server)
    )
    with contextlib.closing(client):
        for shard in range(3):
            for hash_, name in (("counts", "state1"), ("buckets", "5p"), ("copies", "2:1")):
                client.hincrby(f"{{{prefix}:{shard}}}{hash_}", name, 7)
        if "+cluster" in server:
            client.disconnect_connection_pools()
    [file] = folder_of_ant(tmp_path / "copies", 2).glob("*.warc.gz")
    file.unlink()
    found = check(url, tmp_path, capsys, status=1)
    assert len(found["lost"]) == COPIES
    assert any("of ant 2" in what for what, _, _ in found["counts"])
    assert check(url, tmp_path, capsys, "--repair", status=0)["mended"]
    found = check(url, tmp_path, capsys, status=1)
    assert found["counts"] == []
    with opened(url) as store:
        check_valid(store)
        assert sum(store.pages.copies(repository=2).values()) == 0
        assert sum(store.pages.copies(repository=1).values()) == COPIES
        record = store.pages.get(site_of(url_of(20)), fingerprint(url_of(20)))
        assert record is not None
        assert record.due is not None
        assert (store.sites.next_due() or 0.0) < 1e12


def test_beside_ants_counts_are_not_compared_and_repair_is_refused(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(url):  # counts as an ant that begins
        found = check(url, tmp_path, capsys, status=0)
        assert not found["is_compared"]
        assert main(["check", "--store", url, "--repository", str(tmp_path / "copies"), "--repair"]) == 2
        assert "a crawl has the store open" in capsys.readouterr().err
