"""A store that is opened with another time period or unit is in them, whatever holds it and whoever has it open."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.servers.valkey import cluster
from tests.store.invariants import check_valid
from tests.store.stores import crawled, lease, link, server_url
from webfountain.core.change_rate import append
from webfountain.errors import StoreError, StoreHeld
from webfountain.records import Outcome, SiteState
from webfountain.store import revision
from webfountain.store.answers import ParkRequest
from webfountain.store.contract import PLAN
from webfountain.store.opening import open_store
from webfountain.store.shared import maintenance
from webfountain.store.shared.maintenance import RevisedShard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

SITES = ("https://a.example", "https://b.example", "https://c.example:8443")


@pytest.fixture(scope="module")
def clustered() -> Iterator[str]:
    with cluster() as url:
        yield url


@pytest.fixture(params=["single", "cluster"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    server = request.getfixturevalue("clustered") if request.param == "cluster" else server_url()
    return f"{server}?prefix=units-{tmp_path.name}&shards=4"


def opened(url: str, period_s: float, fastest_s: float) -> FrontierStore:
    return open_store(url, collection="tests", period_s=period_s, fastest_s=fastest_s)


def fill(store: FrontierStore) -> None:
    """Pages that were seen to change, that never were, that are gone, that wait; one site whose ant was killed."""
    store.queues.discover([link(n, site=site) for site in SITES for n in range(40)], at=1.0)
    for home in sorted(store.sites.activate(9, owner="ant", until=1e9, at=1e8), key=lambda each: each.site):
        settled = []
        for n, one in enumerate(lease(store, home, 30)):
            history = b""
            for check in range(n % 9):
                history = append(history, 50.0, changed=check % 3 == 0)
            record = msgspec.structs.replace(
                crawled(one.record, 1100.0 + n, bucket=20 + 5 * n),
                history=history,
                checks=n % 9,
                changes=(n % 9) // 3,
                first_seen=100.0,
                state="gone" if n % 10 == 9 else "crawled",
            )
            settled.append(Outcome(one.id, "new", record))
        store.queues.settle(settled, at=1200.0)
        if home.site == SITES[2]:
            lease(store, home, 5, queue="recrawl")
            lease(store, home, 5)
        else:
            store.sites.park([ParkRequest(home, 5.0, SiteState(observed_time=5e3, changes=3))], at=1300.0)
    store.queues.immediate([link(3, site=SITES[0]), link(38, site=SITES[0])], at=1400.0)
    store.board.put_value(PLAN, b"in the old unit")


def records(store: FrontierStore) -> dict[tuple[str, str], PageRecord]:
    """Without the number of an immediate page, which is the store's own."""
    return {
        (site, record.url): msgspec.structs.replace(record, immediate=record.immediate and 1)
        for site, record in store.pages.records()
    }


def expected(folder: Path) -> dict[tuple[str, str], PageRecord]:
    """What the embedded store makes of the same."""
    for period, fastest in ((96.0, 1.0), (48.0, 4.0)):
        with contextlib.closing(opened(f"rocksdb://{folder}/reference", period, fastest)) as store:
            if fastest == 1.0:
                fill(store)
            found = records(store)
    return found


def test_the_bytes_are_made_anew_as_in_the_embedded_store(tmp_path: Path, url: str) -> None:
    with contextlib.closing(opened(url, 96.0, 1.0)) as store:
        fill(store)
    with contextlib.closing(opened(url, 48.0, 4.0)) as store:
        assert (store.census.period_s, store.census.fastest_s) == (48.0, 4.0)
        assert records(store) == expected(tmp_path)
        check_valid(store)
        assert store.census.rows(since=0) == []
        assert store.board.value(PLAN) is None
        assert sum(row.pages for row in store.census.buckets().values()) == store.census.statistics().pages["crawled"]
        store.board.put_value(PLAN, b"in the new unit")
    with contextlib.closing(open_store(url, collection=None, period_s=None)) as reading:
        assert (reading.census.period_s, reading.census.fastest_s) == (48.0, 4.0)
    with contextlib.closing(opened(url, 48.0, 4.0)) as store:
        assert store.board.value(PLAN) == b"in the new unit"


def test_another_period_alone_leaves_the_bytes(tmp_path: Path, url: str) -> None:
    with contextlib.closing(opened(url, 96.0, 1.0)) as store:
        fill(store)
        before = records(store)
    with contextlib.closing(opened(url, 48.0, 1.0)) as store:
        assert records(store) == before
        assert store.census.rows(since=0) == []
        assert store.board.value(PLAN) is None


class KillSignal(BaseException):
    """In the place of a SIGKILL."""


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_a_change_that_was_killed_goes_on_at_the_next_opening(
    tmp_path_factory: pytest.TempPathFactory, at: list[int]
) -> None:
    """No byte is made anew twice, wherever the process was killed, and whatever units the next one wants."""
    folder = tmp_path_factory.mktemp("killed")
    url = f"{server_url()}?prefix=units-{folder.name}&shards=2"
    with contextlib.closing(opened(url, 96.0, 1.0)) as store:
        fill(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revision, "PAGES_AT_ONCE", 4)
        patch.setattr(maintenance, "LOCK_S", 0.01)
        replace = RevisedShard.replace
        for steps in at:
            left = [steps]

            def until_killed(*given: object, left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise KillSignal
                replace(*given)  # type: ignore[arg-type]

            patch.setattr(RevisedShard, "replace", until_killed)
            with pytest.raises(KillSignal):
                opened(url, 48.0, 4.0)
        patch.setattr(RevisedShard, "replace", replace)
        patch.setattr(maintenance, "OPENING_S", 0.0)
        with contextlib.closing(opened(url, 48.0, 4.0)) as store:
            assert records(store) == expected(folder)
            check_valid(store)


def test_of_many_that_open_at_once_one_makes_the_change_and_the_others_wait(tmp_path: Path, url: str) -> None:
    with contextlib.closing(opened(url, 96.0, 1.0)) as store:
        fill(store)
    found: list[FrontierStore | StoreError] = []

    def run() -> None:
        try:
            found.append(opened(url, 48.0, 4.0))
        except StoreError as error:
            found.append(error)

    ants = [threading.Thread(target=run) for _ in range(6)]
    for ant in ants:
        ant.start()
    for ant in ants:
        ant.join(timeout=240.0)
    assert len(found) == 6
    for each in found:
        assert not isinstance(each, StoreError)
        assert each.census.fastest_s == 4.0
        each.close()
    with contextlib.closing(opened(url, 48.0, 4.0)) as store:
        assert records(store) == expected(tmp_path)


def test_beside_ants_that_are_alive_it_is_refused_by_one_line(tmp_path: Path, url: str) -> None:
    """An ant that is alive renews its claim; the store is as it was."""
    with contextlib.closing(opened(url, 96.0, 1.0)) as store:
        fill(store)
        before = records(store)
        assert store.claims is not None
        over = threading.Event()

        def live() -> None:
            assert store.claims is not None
            until = 4e9
            while not over.wait(0.02):
                until += 1.0
                store.claims.claim(["ant/one"], owner="one", until=until, at=1.0)

        store.claims.claim(["ant/one"], owner="one", until=4e9, at=1.0)
        ant = threading.Thread(target=live)
        ant.start()
        try:
            with pytest.raises(StoreHeld, match=r"crawl with cycle.period 96 s .* not 48 s") as printed:
                opened(url, 48.0, 4.0)
            assert "\n" not in str(printed.value)
        finally:
            over.set()
            ant.join()
        with contextlib.closing(opened(url, 96.0, 1.0)) as again:
            assert records(again) == before
            assert again.board.value(PLAN) == b"in the old unit"
