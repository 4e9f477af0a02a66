"""A store that was written by a clock that was ahead is corrected when it is opened, whatever holds it."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.servers.valkey import cluster
from tests.store.filled_memory import memory_store_of
from tests.store.invariants import check_valid
from tests.store.stores import PERIOD_S, crawled, lease, link, server_url
from webfountain.records import Copy, Outcome, SiteState
from webfountain.store import revision, transfer_rows
from webfountain.store.answers import ParkRequest
from webfountain.store.contract import FORECAST, PLAN, PRICE
from webfountain.store.embedded.disk import Disk
from webfountain.store.embedded.maintenance import RevisedDisk
from webfountain.store.memory.store import MemoryStore
from webfountain.store.opening import load_store, open_store, recount
from webfountain.store.revision import TOLERANCE_S
from webfountain.store.shared import maintenance
from webfountain.store.shared.connection import ServerConnection, connect
from webfountain.store.shared.maintenance import RevisedShard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from webfountain.store.answers import BucketCensus, Statistics
    from webfountain.store.contract import FrontierStore
    from webfountain.store.transfer_rows import Row

DAY = 86_400.0
PARKED, KILLED, LEARNED = "https://a.example", "https://b.example", "https://c.example:8443"
STORES = ("embedded", "single", "cluster")


@pytest.fixture(scope="module")
def clustered() -> Iterator[str]:
    with cluster() as url:
        yield url


def url_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    if kind == "embedded":
        return f"rocksdb://{folder}/store"
    server = request.getfixturevalue("clustered") if kind == "cluster" else server_url()
    return f"{server}?prefix=revision-{folder.name}&shards=4"


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path, request)


@pytest.fixture(autouse=True)
def _no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ants of these crawls were killed long ago, by the clock that is right."""
    monkeypatch.setattr(maintenance, "SILENCE_S", 0.05)


def opened(url: str, at: float | None = None) -> FrontierStore:
    return open_store(url, collection="tests", period_s=PERIOD_S, at=at)


def fill(store: FrontierStore, at: float) -> None:
    """Pages in each state and lane; a site that was parked, one whose ant was killed, one of which much was learned."""
    for site in (PARKED, KILLED, LEARNED):
        store.queues.discover([link(n, site=site) for n in range(12)], at=at - 2 * DAY)
        store.queues.discover([link(n, site=site, importance=0.5) for n in range(12, 16)], at=at)
    for home in sorted(store.sites.activate(9, owner="ant", until=at + 600.0, at=at), key=lambda each: each.site):
        settled = []
        for n, one in enumerate(lease(store, home, 8)):
            record = crawled(one.record, at - n * 0.4 * DAY, bucket=n)
            if n % 4 == 1:
                record = msgspec.structs.replace(record, state="failed", failures=1, due=at + 500.0)
            if n % 4 == 2:
                record = msgspec.structs.replace(record, last_changed=at, copy=Copy(file=n, offset=1, length=2))
            settled.append(Outcome(one.id, "new", record))
        learned = [(home, b"much")] if home.site == LEARNED else []
        store.queues.settle(settled, at=at, learned=learned, parts=[(home, 3, b"more") for _ in learned])
        if home.site == KILLED:
            lease(store, home, 2)
            lease(store, home, 2, queue="recrawl")
        else:
            state = SiteState(next_at=at + 5.0, robots_at=at, sitemaps=((f"{home.site}/s", at),))
            store.sites.park([ParkRequest(home, at + 50.0, state)], at=at)
    store.queues.immediate([link(3, site=PARKED), link(15, site=PARKED)], at=at)
    store.queues.advance(LEARNED, [n.to_bytes(8, "big") for n in range(16)], due=at + 7.0, at=at)
    for name in (PLAN, FORECAST, PRICE):
        store.board.put_value(name, b"of tomorrow")


def corrected(rows: Iterable[Row], at: float) -> list[Row]:
    """The rows of the same store as they should be: the simplest form of the rule."""
    found: list[Row] = []
    ahead = 0.0
    for row in rows:
        match row:
            case transfer_rows.Head():
                ahead = row.latest - at
                found.append(msgspec.structs.replace(row, latest=int(at)))
            case transfer_rows.Value(name=name) if name in {PLAN, FORECAST}:
                pass
            case transfer_rows.CensusEntry(period=period) if period > at // PERIOD_S:
                pass
            case transfer_rows.Part():
                pass
            case transfer_rows.Site():
                times = {"first_seen": min(row.first_seen, at), "due": _sooner(row.due, at, ahead), "learned": b""}
                times["changed"] = min(row.changed, at)
                state = msgspec.structs.replace(
                    row.state,
                    next_at=_sooner(row.state.next_at, at, ahead),
                    robots_at=_past(row.state.robots_at, at),
                    sitemaps=tuple((url, min(read, at)) for url, read in row.state.sitemaps),
                )
                found.append(msgspec.structs.replace(row, state=state, **times))
            case transfer_rows.Page(record=record):
                names = ("first_seen", "last_crawled", "last_changed", "copied")
                past = {name: _past(getattr(record, name), at) for name in names}
                due = None if record.due is None else _sooner(record.due, at, ahead)
                found.append(msgspec.structs.replace(row, record=msgspec.structs.replace(record, due=due, **past)))
            case _:
                found.append(row)
    return found


def _past(time: float | None, at: float) -> float | None:
    return None if time is None else min(time, at)


def _sooner(time: float, at: float, ahead: float) -> float:
    return max(at, time - ahead) if time > at else time


def in_order(found: Iterable[Row]) -> list[str]:
    """The rows in one order, which no store promises."""
    return sorted(map(repr, found))


def moment_of(rows: Iterable[Row]) -> float:
    """The time of a correction, as the store shows it: the store's server has the clock."""
    return max(row.record.last_crawled or 0.0 for row in rows if isinstance(row, transfer_rows.Page))


def corrections(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if "all times in the future are corrected" in line]


@pytest.mark.parametrize("ahead", [DAY, 30 * DAY])
def test_times_of_a_run_whose_clock_was_ahead_are_corrected_and_said(
    url: str, ahead: float, caplog: pytest.LogCaptureFixture
) -> None:
    began = time.time()
    with contextlib.closing(opened(url)) as store:
        fill(store, began + ahead)
    with contextlib.closing(opened(url)) as store:
        before = list(store.rows())
    with caplog.at_level(logging.WARNING, "webfountain.store"), contextlib.closing(opened(url, time.time())) as store:
        check_valid(store)
        after = list(store.rows())
        at = moment_of(after)
        assert began - 1.0 <= at <= time.time() + 1.0
        assert in_order(after) == in_order(corrected(before, at))
        assert store.sites.get(LEARNED).learned == b""  # type: ignore[union-attr]
        assert store.sites.part(LEARNED, 3) is None
        counted = counts_of(store)
        due = store.sites.next_due()
        assert due is not None
        assert due <= at
    [line] = corrections(caplog)
    assert ahead - 600.0 < float(line.split("the clock was ")[1].split()[0]) <= ahead
    recount(url)
    caplog.clear()
    with contextlib.closing(opened(url, time.time())) as store:
        assert in_order(store.rows()) == in_order(after)
        assert counts_of(store) == counted
    assert not corrections(caplog), "said once"


def test_a_clock_that_was_not_ahead_changes_nothing(url: str, caplog: pytest.LogCaptureFixture) -> None:
    at = time.time()
    with contextlib.closing(opened(url)) as store:
        fill(store, at + TOLERANCE_S / 2)
    with contextlib.closing(opened(url)) as store:
        kept = in_order(store.rows())
    for now in (None, at, at + DAY):
        with contextlib.closing(opened(url, now)) as store:
            assert in_order(store.rows()) == kept
    assert not corrections(caplog)


@pytest.mark.parametrize(
    ("kind", "owner", "call"),
    [("embedded", Disk, "write"), ("single", ServerConnection, "send"), ("cluster", ServerConnection, "send")],
)
def test_a_recount_that_is_interrupted_leaves_the_counts_as_they_were(
    kind: str, owner: type, call: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Above all those of copies: the next crawl deletes files that no page names."""
    url = url_of(kind, tmp_path, request)
    with contextlib.closing(opened(url)) as store:
        fill(store, time.time())
    with contextlib.closing(opened(url)) as store:
        counted = counts_of(store)
    assert counted[2], "copies"
    is_complete, calls = False, 0
    while not is_complete:
        with contextlib.closing(opened(url)) as store, pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, call, interrupted(getattr(owner, call), calls))
            with contextlib.suppress(KeyboardInterrupt):
                store.recount()
                is_complete = True
        with contextlib.closing(opened(url)) as store:
            check_valid(store)
            assert counts_of(store) == counted, calls
        calls += 1
    assert calls > 2


def test_a_store_that_is_made_anew_has_no_key_of_an_interrupted_recount(tmp_path: Path) -> None:
    url = f"{server_url()}?prefix=anew-{tmp_path.name}&shards=2"

    def keys() -> list[bytes]:
        with contextlib.closing(connect(url)) as connection:
            found: list[bytes] = connection.ask(b"", "KEYS", f"*anew-{tmp_path.name}*")
            return found

    with contextlib.closing(opened(url)) as store, pytest.MonkeyPatch.context() as patch:
        fill(store, time.time())
        patch.setattr(ServerConnection, "send", interrupted(ServerConnection.send, 10))
        with pytest.raises(KeyboardInterrupt):
            store.recount()
    assert [key for key in keys() if key.endswith(b"/new")]
    open_store(url, collection="tests", period_s=PERIOD_S, fresh=True).close()
    assert not [key for key in keys() if key.endswith((b"/new", b"pages"))]


def counts_of(store: FrontierStore) -> tuple[Statistics, dict[int, BucketCensus], dict[int, int]]:
    """All that a recount computes."""
    return store.census.statistics(), store.census.buckets(), store.pages.copies()


def interrupted(call: Callable[..., Any], after: int) -> Callable[..., Any]:
    """A call that works `after` times; then Ctrl-C comes."""
    left = iter(range(after))

    def until(*arguments: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return call(*arguments)

    return until


@pytest.mark.parametrize("kind", STORES)
def test_an_import_brings_the_time_along_and_is_corrected_too(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Also from memory: no opening corrects such a store, for it ends with its process."""
    source = MemoryStore(period_s=PERIOD_S, collection="tests")
    fill(source, time.time() + DAY)
    rows = list(source.rows())
    url = url_of(kind, tmp_path, request)
    load_store(url, iter(rows))
    with contextlib.closing(opened(url)) as store:
        before = list(store.rows())
        assert in_order(before) == in_order(rows)
    with contextlib.closing(opened(url, time.time())) as store:
        after = list(store.rows())
    assert in_order(after) == in_order(corrected(before, moment_of(after)))
    again = memory_store_of(iter(after))
    check_valid(again)
    assert in_order(again.rows()) == in_order(after)


class KillSignal(BaseException):
    """In the place of a SIGKILL."""


@pytest.mark.parametrize("kind", ["embedded", "single"])
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.integers(0, 14), min_size=1, max_size=3))
def test_a_correction_that_was_killed_goes_on_at_the_next_opening(
    kind: str, steps: list[int], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    """No time is moved twice, wherever the process was killed."""
    url = url_of(kind, tmp_path_factory.mktemp("killed"), request)
    with contextlib.closing(opened(url)) as store:
        fill(store, time.time() + DAY)
    with contextlib.closing(opened(url)) as store:
        before = list(store.rows())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revision, "PAGES_AT_ONCE", 4)
        patch.setattr(maintenance, "LOCK_S", 0.01)
        patch.setattr("webfountain.store.embedded.maintenance._AT_ONCE", 5)
        for many in steps:
            with pytest.MonkeyPatch.context() as inner:
                _kill_after(many, inner)
                with contextlib.suppress(KillSignal):
                    opened(url, time.time()).close()
        with contextlib.closing(opened(url, time.time())) as store:
            check_valid(store)
            after = list(store.rows())
    assert in_order(after) == in_order(corrected(before, moment_of(after)))


def _kill_after(many: int, patch: pytest.MonkeyPatch) -> None:
    left = [many]

    def killing(step: Callable[..., object]) -> Callable[..., object]:
        def until_killed(*given: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise KillSignal
            return step(*given)

        return until_killed

    for kind in (RevisedDisk, RevisedShard):
        for name in ("move", "replace"):
            patch.setattr(kind, name, killing(getattr(kind, name)))


@pytest.mark.parametrize("kind", ["single", "cluster"])
def test_claims_of_ants_that_were_killed_in_the_future_end(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = url_of(kind, tmp_path, request)
    began = time.time()
    late = began + DAY
    with contextlib.closing(opened(url)) as store:
        fill(store, late)
        assert store.claims is not None
        store.claims.claim(["ant/one", "role/controller"], owner="one", until=late + 10.0, at=late)
        store.claims.claim(["repository/1"], owner="folder", until=float("inf"), at=late)
        addresses = [f"address/{n}" for n in range(9)]
        store.claims.claim(addresses, owner="one", until=late + 10.0, at=late)
        store.claims.drop({addresses[0]: late + 300.0, addresses[1]: began + 5.0}, owner="one", at=late)
    with contextlib.closing(opened(url, time.time())) as store:
        assert store.claims is not None
        now = time.time() + 1.0
        held = store.claims.holders(["ant/one", "role/controller", *addresses], at=now)
        assert [each for each in held[:2] + held[4:] if each is not None] == []
        assert held[2] is not None
        assert abs(held[2].until - (began + 300.0)) <= 30.0, "an open time ends by as much earlier"
        [kept] = store.claims.holders(["repository/1"], at=now)
        assert kept is not None
        assert kept.owner == "folder"
        assert {lease.site for lease in store.sites.activate(9, owner="two", until=now + 600.0, at=now + 60.0)} == {
            PARKED,
            KILLED,
            LEARNED,
        }


def test_beside_an_ant_that_is_alive_nothing_is_corrected_and_that_is_said(
    tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SILENCE_S", 600.0)
    url = url_of("single", tmp_path, request)
    with contextlib.closing(opened(url)) as store:
        fill(store, time.time() + DAY)
        kept = in_order(store.rows())
        claims, over = store.claims, threading.Event()
        assert claims is not None

        def live() -> None:
            until = time.time() + DAY
            while not over.wait(0.02):
                until += 1.0
                claims.claim(["ant/one"], owner="one", until=until, at=1.0)

        claims.claim(["ant/one"], owner="one", until=time.time() + DAY, at=1.0)
        ant = threading.Thread(target=live)
        ant.start()
        try:
            with contextlib.closing(opened(url, time.time())) as again:
                assert in_order(again.rows()) == kept
        finally:
            over.set()
            ant.join()
    assert [line for line in caplog.messages if "other ants crawl" in line]
