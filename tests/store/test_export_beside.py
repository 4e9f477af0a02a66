"""An export beside ants: one moment of each site, whatever the ants do meanwhile, and whatever they were killed in."""

from __future__ import annotations

import collections
import contextlib
import random
import threading
import time
from typing import TYPE_CHECKING

import msgspec
import pytest
import redis

from tests.servers.valkey import cluster
from tests.store.filled_memory import memory_store_of
from tests.store.invariants import check_valid
from tests.store.stores import ALWAYS, active, lease, link, make_store, outcome, server_url
from webfountain.errors import StoreError
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.opening import load_store, open_store
from webfountain.store.shared.opening import open_shared
from webfountain.store.transfer_file import read_rows, write_rows
from webfountain.store.transfer_rows import Page, Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

MORE = 100
SITES = [f"https://s{n}.example" for n in range(12)]


@pytest.mark.parametrize("backend", ["memory", "embedded", "shared"])
def test_what_is_leased_is_exported_in_its_place(tmp_path: Path, backend: str) -> None:
    """The bytes of a page's key are no text: a site that is held is read as any other, also when its ant was killed."""
    store = make_store(backend, tmp_path)
    store.queues.discover([link(2**63 + n) for n in range(200, 260)], at=1.0)
    assert len(lease(store, active(store), 40)) == 40
    found = list(store.rows())
    assert sum(isinstance(row, Page) for row in found) == 60
    moved = memory_store_of(iter(found))
    check_valid(moved)
    assert moved.census.statistics().leased == 0
    store.close()


class Ants:
    """Threads that lease, settle, discover and park as ants do, and remember every record that ever was.

    They discover until there are `MORE` pages more than at the last export, so that the store, which each export is
    compared with, grows with the number of exports and not with the time that they take.
    """

    def __init__(self, url: str, many: int) -> None:
        self.known: dict[bytes, set[PageRecord]] = collections.defaultdict(set)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._errors: list[BaseException] = []
        self._least = MORE
        self._ants = [threading.Thread(target=self._run, args=(url, n)) for n in range(many)]

    def __enter__(self) -> Ants:
        for each in self._ants:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._ants:
            each.join()
        assert not self._errors

    def await_more(self) -> set[bytes]:
        """All keys that are known, as soon as there are `MORE` more than at the last call."""
        until = time.monotonic() + 240.0
        while len(self.known) < self._least and not self._errors:
            assert time.monotonic() < until, "the ants do not crawl"
            time.sleep(0.01)
        with self._lock:
            self._least = len(self.known) + MORE
            return set(self.known)

    def _run(self, url: str, number: int) -> None:
        try:
            with contextlib.closing(open_store(url, collection="tests", period_s=10.0)) as store:
                self._crawl(store, random.Random(number), f"ant{number}", number << 32)
        except BaseException as error:
            self._errors.append(error)
            raise

    def _crawl(self, store: FrontierStore, rng: random.Random, owner: str, serial: int) -> None:
        at = 1e9
        while not self._over.is_set():
            at += 1.0
            homes = store.sites.activate(3, owner=owner, until=1e12, at=at)
            site = rng.choice(SITES)
            new = 5 if len(self.known) < self._least else 0
            found = [link(serial + n, site=site, importance=rng.random()) for n in range(new)]
            serial += new
            self._remember_links(store, found, at)
            dealt = store.queues.lease([Refill(home, 1, 20, 20, None, ALWAYS) for home in homes])
            leases = [one for deal in dealt if deal for one in (*deal.immediate, *deal.never_crawled, *deal.recrawl)]
            settled = [outcome(one, at, bucket=rng.randrange(9)) for one in leases]
            with self._lock:
                for one, each in zip(leases, settled, strict=True):
                    self.known[one.key].add(msgspec.structs.replace(each.record, immediate=None))
            kept = settled[: rng.randrange(len(settled) + 1)]
            store.queues.settle(kept, at=at)
            store.sites.park([ParkRequest(home, at, home.record.state) for home in homes], at=at)

    def _remember_links(self, store: FrontierStore, found: list, at: float) -> None:  # type: ignore[type-arg]
        store.queues.discover(found, at=at)
        with self._lock:
            for each in found:
                self.known[each.key]


def examined(rows: Iterator[Row], before: set[bytes], ants: Ants) -> None:
    """A store of the rows is whole, has all that was known before, and each record was true at some moment."""
    store = memory_store_of(rows)
    check_valid(store)
    found = {row.key: row.record for row in store.rows() if isinstance(row, Page)}
    assert before <= found.keys()
    for key, record in found.items():
        plain = msgspec.structs.replace(record, immediate=None)
        assert record.state == "never-crawled" or plain in ants.known[key], record


@pytest.mark.untraced
@pytest.mark.parametrize("kind", ["single", "cluster"])
def test_exports_beside_ants_are_whole(tmp_path: Path, kind: str) -> None:
    beside(tmp_path, kind, exports=6, ants=3)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["single", "cluster"])
def test_two_hundred_exports_beside_eight_ants_are_whole(tmp_path: Path, kind: str) -> None:
    beside(tmp_path, kind, exports=200, ants=8)


def beside(folder: Path, kind: str, *, exports: int, ants: int) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(cluster()) if kind == "cluster" else server_url()
        url = f"{server}?prefix=beside-{folder.name}&shards=6"
        with contextlib.closing(open_store(url, collection="tests", period_s=10.0)) as store:
            store.queues.discover([link(2**48 + n, site=SITES[0]) for n in range(3000)], at=1.0)
        running = stack.enter_context(Ants(url, ants))
        for number in range(exports):
            before = running.await_more()
            file = folder / f"{number}.jsonl"
            with contextlib.closing(open_store(url, collection=None, period_s=None)) as store:
                write_rows(file, store.rows())
            examined(read_rows(file), before, running)
            if number == 0:
                load_store(f"{server}?prefix=copy-{folder.name}&shards=3", read_rows(file))
            file.unlink()


def test_an_export_waits_for_another(tmp_path: Path) -> None:
    """A server has one pause: the end of the first export would end that of the second."""
    url = f"{server_url()}?prefix=two-{tmp_path.name}&shards=2"
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(contextlib.closing(open_store(url, collection="tests", period_s=10.0)))
            for _ in range(2)
        )
        first.queues.discover([link(n) for n in range(50)], at=1.0)
        rows = first.rows()
        next(rows)
        found: list[Row] = []
        other = threading.Thread(target=lambda: found.extend(second.rows()))
        other.start()
        assert sum(isinstance(row, Page) for row in rows) == 50
        other.join(timeout=240.0)
        assert sum(isinstance(row, Page) for row in found) == 50
        assert first.queues.discover([link(99)], at=2.0).new == 1  # nothing is paused any more


def test_without_the_right_to_pause_a_site_that_changes_meanwhile_ends_the_export(tmp_path: Path) -> None:
    prefix = f"denied-{tmp_path.name}"
    url = f"{server_url()}?prefix={prefix}&shards=1"
    with contextlib.ExitStack() as stack:
        admin = stack.enter_context(contextlib.closing(redis.Redis.from_url(server_url())))
        admin.acl_setuser(
            "reader", enabled=True, nopass=True, keys=["*"], categories=["+@all"], commands=["-client|pause"]
        )
        stack.callback(admin.acl_deluser, "reader")
        store = stack.enter_context(contextlib.closing(open_store(url, collection="tests", period_s=10.0)))
        store.queues.discover([link(n) for n in range(5000)], at=1.0)
        home = active(store)
        reader = stack.enter_context(
            contextlib.closing(open_shared(url, collection=None, period_s=None, parameters={"username": "reader"}))
        )
        assert sum(isinstance(row, Page) for row in reader.rows()) == 5000
        rows = reader.rows()
        assert any(isinstance(row, Page) for row in rows)
        lease(store, home, 1)
        with pytest.raises(StoreError, match="changed while it was read"):
            collections.deque(rows, maxlen=0)
