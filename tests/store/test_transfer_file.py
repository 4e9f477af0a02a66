"""A store moves: its rows, as a file of either form, make a store of any kind that gives the same rows."""

from __future__ import annotations

import contextlib
import json
import math
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.servers.valkey import cluster
from tests.store.filled_memory import memory_store_of
from tests.store.invariants import check_valid
from tests.store.stores import ALWAYS, SITE, crawled, lease, link, links, make_store, outcome, server_url
from webfountain.cli import main
from webfountain.errors import InputError, StoreError
from webfountain.records import Copy, Link, Outcome, PageRecord, SiteState
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.contract import PLAN
from webfountain.store.memory.store import MemoryStore
from webfountain.store.opening import load_store, open_store
from webfountain.store.shared.connection import ServerConnection
from webfountain.store.transfer_file import read_rows, write_rows
from webfountain.store.transfer_rows import ChangeEntry, Page, Row, Site

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webfountain.store.contract import FrontierStore

serial = count()


class Always:
    """A ranking that gives every page the same importance."""

    def __init__(self, importance: float) -> None:
        self.importance = importance

    def __call__(self, records: Sequence[PageRecord]) -> list[float]:
        return [self.importance] * len(records)


def in_order(rows: Iterator[Row]) -> list[Any]:
    """Rows as a list; sites, pages and what is barred lie in the order of their store."""
    return sorted(rows, key=lambda row: (type(row).__name__, "" if isinstance(row, ChangeEntry) else repr(row)))


def moved(kind: str, rows: Iterator[Row], folder: Path) -> FrontierStore:
    """A store of a kind made of rows."""
    if kind == "memory":
        return memory_store_of(rows)
    name = f"{folder.name}-{next(serial)}"
    url = f"rocksdb://{folder}/{name}" if kind == "embedded" else f"{server_url()}?prefix={name}&shards=3"
    load_store(url, rows)
    return open_store(url, collection=None, period_s=None)


numbers = st.floats(0.0, 2e9)
names = st.sampled_from(["https://a.example", "https://b.example:8443", "http://ünï.example"])
histories: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    importance=st.floats(0.0, 1e6),
    last_changed=st.none() | numbers,
    history=st.binary(max_size=30),
    digest=st.none() | st.sampled_from(["ab" * 20, "odd"]),
    etag=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    copy=st.none() | st.builds(Copy, st.integers(0, 9), st.integers(0, 2**40), st.integers(0, 9), st.integers(0, 3)),
    failures=st.sampled_from([0, 0, 0, 2]),
    due=st.none() | numbers | st.just(math.inf),
    sketch=st.none() | st.binary(max_size=9),
    scores=st.lists(st.floats(0, 1), max_size=2).map(tuple),
    trust=st.floats(0.0, 1.0),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("discover"), names, st.integers(0, 40), st.floats(0, 9)),
        st.tuples(st.just("immediate"), names, st.integers(0, 40)),
        st.tuples(
            st.just("fetch"), st.integers(1, 9), histories, st.sampled_from(["new", "changed", "gone", "failed"])
        ),
        st.tuples(st.just("park"), st.sampled_from([5.0, 1e9, math.inf]), st.integers(0, 9)),
        st.tuples(st.just("forget"), names, st.integers(0, 40)),
        st.tuples(st.just("regrade"), st.floats(0, 9), st.integers(1, 5)),
        st.tuples(st.just("trim"), st.integers(0, 4)),
    ),
    max_size=40,
)


def take(store: FrontierStore, drawn: list[Any]) -> None:
    """Take steps; at the end some sites may be active and some URLs leased."""
    held: dict[str, Any] = {}
    now = 1e9
    store.queues.discover(links(*range(9)), at=now)
    for kind, *values in drawn:
        now += 0.37
        if kind in ("discover", "immediate"):
            name, number, *importance = values
            found = [Link(f"{name}/é{n}", name, n.to_bytes(8, "big"), n % 3, "p", *importance) for n in range(number)]
            (store.queues.discover if kind == "discover" else store.queues.immediate)(found[-5:], at=now)
        if kind in ("fetch", "regrade"):
            held |= {home.site: home for home in store.sites.activate(2, owner="ant", until=math.inf, at=now)}
        if kind == "fetch":
            for home in held.values():
                [dealt] = store.queues.lease([Refill(home, 1, values[0], 1, None, ALWAYS)])
                leases = [] if dealt is None else dealt.immediate + dealt.never_crawled + dealt.recrawl
                state = {"gone": "gone", "failed": "failed"}.get(values[2], "crawled")
                settled = [
                    Outcome(
                        one.id, values[2], msgspec.structs.replace(crawled(one.record, now), state=state, **values[1])
                    )
                    for one in leases[:-1]
                ]
                parts = [(home, of, b"\x00part") for of in (values[0] % 3, 2**62)]
                store.queues.settle(settled, at=now, learned=[(home, b"\x00learned")], parts=parts)
        elif kind == "park" and held:
            home = held.pop(min(held))
            memory = SiteState(next_at=now, robots=b"User-agent: *\n", failures=values[1], sitemaps=((SITE, 1.5),))
            store.sites.park([ParkRequest(home, values[0], memory)], at=now)
        elif kind == "forget":
            name, number = values
            store.pages.forget(name, None if number == 40 else number.to_bytes(8, "big"), at=now)
            if number == 40:
                held.pop(name, None)
        elif kind == "regrade":
            for home in held.values():
                store.queues.regrade(home, Always(values[0]), epoch=3, n=values[1])
        elif kind == "trim":
            store.changes.trim(before=0.0, most=values[0])
    store.board.put_value(PLAN, b"\x00plan")


@pytest.mark.untraced
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=steps)
def test_what_is_exported_and_imported_again_is_the_same(tmp_path: Path, form: str, drawn: list[Any]) -> None:
    """Around all kinds of stores, whatever state they are in, through files."""
    first = make_store("memory", tmp_path)
    take(first, drawn)
    expected, store = in_order(first.rows()), first
    for kind in ("embedded", "shared", "embedded", "memory"):
        file = tmp_path / f"{next(serial)}.{form}"
        write_rows(file, store.rows())
        store.close()
        store = moved(kind, read_rows(file), tmp_path)
        assert in_order(store.rows()) == expected
        check_valid(store)
        assert store.census.statistics().pages == first.census.statistics().pages
        assert store.census.buckets() == first.census.buckets()
        assert store.census.rows(since=0) == first.census.rows(since=0)
        assert store.pages.copies() == first.pages.copies()


@pytest.mark.parametrize("kind", ["memory", "embedded", "shared"])
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=steps)
def test_a_store_that_moved_goes_on_as_the_one_it_was(tmp_path: Path, kind: str, drawn: list[Any]) -> None:
    """The same URLs are leased in the same order, and what is settled then is counted the same."""
    first = MemoryStore(period_s=10.0)
    take(first, drawn)
    rows = list(first.rows())
    stores = [memory_store_of(iter(rows)), moved(kind, iter(rows), tmp_path)]
    served = []
    for store in stores:
        homes = sorted(store.sites.activate(9, owner="other", until=math.inf, at=2e9), key=lambda home: home.site)
        dealt = store.queues.lease([Refill(home, 20, 20, 20, None, ALWAYS) for home in homes])
        leases = [one for deal in dealt if deal for one in (*deal.immediate, *deal.never_crawled, *deal.recrawl)]
        store.queues.settle([outcome(one, 2e9) for one in leases], at=2e9)
        store.queues.discover(links(*range(50)), at=2e9)
        served.append(([one.record for one in leases], store.census.buckets(), store.census.statistics().pages))
        check_valid(store)
    assert served[0] == served[1]


def filled(folder: Path, backend: str = "memory") -> FrontierStore:
    store = make_store(backend, folder)
    store.queues.discover(links(*range(5)), at=1.0)
    return store


@pytest.mark.parametrize("kind", ["embedded", "shared"])
def test_an_import_into_an_existing_store_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "there").mkdir()
    filled(tmp_path / "there", kind).close()
    url = f"rocksdb://{tmp_path}/there" if kind == "embedded" else f"{server_url()}?prefix=there"
    with pytest.raises(InputError, match="there is a store already"):
        load_store(url, filled(tmp_path).rows())
    again = open_store(url, collection="tests", period_s=10.0)
    assert sum(again.census.statistics().pages.values()) == 5
    again.close()


@pytest.mark.parametrize("kind", ["embedded", "shared"])
def test_an_import_that_was_cut_off_is_no_store_and_may_be_begun_again(tmp_path: Path, kind: str) -> None:
    url = f"rocksdb://{tmp_path}/s" if kind == "embedded" else f"{server_url()}?prefix=cut-{tmp_path.name}&shards=2"

    def breaking() -> Iterator[Row]:
        yield from list(filled(tmp_path).rows())[:4]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        load_store(url, breaking())
    with pytest.raises(StoreError, match="import into it is incomplete"):
        open_store(url, collection="tests", period_s=10.0)
    load_store(url, filled(tmp_path).rows())
    store = open_store(url, collection="tests", period_s=10.0)
    assert in_order(store.rows())[1:] == in_order(filled(tmp_path).rows())[1:]
    store.close()


def test_an_import_and_a_recount_whose_answers_are_lost_count_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step is sent again, for the server may not have taken it."""
    first = MemoryStore(period_s=10.0)
    first.queues.discover([link(n, site=f"https://s{n % 7}.example") for n in range(60)], at=1.0)
    first.queues.immediate([link(1, site="https://s1.example")], at=2.0)
    [home] = first.sites.activate(1, owner="ant", until=math.inf, at=3.0)
    first.queues.settle([outcome(one, 4.0) for one in lease(first, home, 5)], at=4.0, parts=[(home, 3, b"more")])
    url = f"{server_url()}?prefix=lossy-{tmp_path.name}&shards=3"
    with monkeypatch.context() as patch:
        patch.setattr(ServerConnection, "_send_once", losing_answers(ServerConnection._send_once))
        patch.setattr(ServerConnection, "_wait", lambda *_: None)
        load_store(url, first.rows())
    with contextlib.closing(open_store(url, collection=None, period_s=None)) as store:
        check_valid(store)
        assert in_order(store.rows()) == in_order(first.rows())
        before = store.census.statistics(), store.census.buckets(), store.pages.copies()
        assert before[0].sites == 7
        with monkeypatch.context() as patch:
            patch.setattr(ServerConnection, "_send_once", losing_answers(ServerConnection._send_once))
            patch.setattr(ServerConnection, "_wait", lambda *_: None)
            store.recount()
        assert (store.census.statistics(), store.census.buckets(), store.pages.copies()) == before


def losing_answers(send: Any) -> Any:
    """Let the server take each set of commands, and lose its first answer."""
    taken: set[str] = set()

    def lossy(connection: ServerConnection, commands: Any) -> Any:
        answers, name = send(connection, commands), repr(commands)
        if name not in taken:
            taken.add(name)
            raise redis.exceptions.ConnectionError("reset by peer")
        return answers

    return lossy


@pytest.mark.untraced
def test_a_large_site_arrives_with_a_tree_of_full_nodes(tmp_path: Path) -> None:
    """Thirty thousand pages: three levels; it is served in order and takes more."""
    first = MemoryStore(period_s=10.0)
    first.queues.discover([link(n, importance=float(n % 3)) for n in range(30_000)], at=1.0)
    store = moved("shared", first.rows(), tmp_path)
    check_valid(store)
    store.queues.discover(links(*range(29_990, 30_010)), at=2.0)
    [home] = store.sites.activate(1, owner="ant", until=math.inf, at=3.0)
    served = lease(store, home, 30_500)
    assert len(served) == len({one.key for one in served}) == 30_010
    assert [one.record.importance for one in served] == sorted((one.record.importance for one in served), reverse=True)
    store.queues.settle([outcome(one, 4.0) for one in served], at=4.0)
    check_valid(store)
    store.close()


def test_a_cluster_is_exported_and_filled(tmp_path: Path) -> None:
    with cluster() as url:
        first = MemoryStore(period_s=10.0)
        first.queues.discover([link(n, site=f"https://s{n % 40}.example") for n in range(400)], at=1.0)
        load_store(f"{url}?shards=16", first.rows())
        store = open_store(url, collection=None, period_s=None)
        assert in_order(store.rows()) == in_order(first.rows())
        store.close()


def test_an_export_beside_a_crawl_is_of_one_moment(tmp_path: Path) -> None:
    """What is written while it is read waits, and is in neither part of it."""
    url = f"{server_url()}?prefix=moment-{tmp_path.name}&shards=4"
    store = open_store(url, collection="tests", period_s=10.0)
    store.queues.discover([link(n, site=f"https://s{n % 40}.example") for n in range(400)], at=1.0)
    store.sites.activate(10, owner="ant", until=math.inf, at=2.0)
    reading = open_store(url, collection=None, period_s=None)
    rows = reading.rows()
    found = [next(rows)]
    # The server holds a writer back, which one of little patience sees.
    impatient = redis.Redis.from_url(server_url(), socket_timeout=0.05)
    with pytest.raises(redis.TimeoutError):
        impatient.set("x", 1)
    found += rows
    assert impatient.set("x", 1)
    assert sum(isinstance(row, Page) for row in found) == 400
    assert {row.due for row in found if isinstance(row, Site)} == {1.0}
    for each in (store, reading):
        each.close()
    impatient.close()


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda lines: lines[:-1], "was cut short"),
        (lambda lines: lines[1:], "is not an exported store"),
        (lambda lines: [*lines, lines[-1]], "rows follow the row that should be the last"),
        (lambda lines: [lines[0].replace(b'"format":1', b'"format":9'), *lines[1:]], "has format 9"),
        (lambda lines: [*lines[:2], lines[2][:20], *lines[3:]], "row 3: "),
        (lambda lines: [*lines[:2], *lines[3:]], "was cut short"),
    ],
)
def test_a_file_that_is_not_whole_is_refused_by_one_line(tmp_path: Path, spoil: Any, word: str) -> None:
    file = tmp_path / "f.jsonl"
    write_rows(file, filled(tmp_path).rows())
    file.write_bytes(b"\n".join(spoil(file.read_bytes().splitlines())) + b"\n")
    with pytest.raises(InputError, match=word):
        load_store(f"rocksdb://{tmp_path}/s", read_rows(file))


def test_a_parquet_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.parquet").write_bytes(b"PAR1" * 9)
    with pytest.raises(InputError, match="cannot be read"):
        list(read_rows(tmp_path / "f.parquet"))
    with pytest.raises(InputError, match="no such file"):
        list(read_rows(tmp_path / "g.parquet"))


def test_the_pages_of_a_parquet_file_are_columns(tmp_path: Path) -> None:
    """Anybody's tools read it."""
    import duckdb

    write_rows(tmp_path / "f.parquet", filled(tmp_path).rows())
    found = duckdb.execute(
        f"select url, state, bucket from '{tmp_path}/f.parquet' where row = 'page' order by url"
    ).fetchall()
    assert found[0] == (f"{SITE}/0", "never-crawled", 128)
    assert len(found) == 5


def test_a_field_that_an_older_file_has_not_is_at_its_default(tmp_path: Path) -> None:
    import pyarrow.parquet

    write_rows(tmp_path / "f.parquet", filled(tmp_path).rows())
    table = pyarrow.parquet.read_table(tmp_path / "f.parquet").drop_columns(["trust", "sketch"])
    pyarrow.parquet.write_table(table, tmp_path / "g.parquet")
    pages = [row.record for row in read_rows(tmp_path / "g.parquet") if isinstance(row, Page)]
    assert {(each.trust, each.sketch) for each in pages} == {(PageRecord("").trust, None)}


def test_export_and_import_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    filled(tmp_path / "a", "embedded").close()
    file, there = str(tmp_path / "x.parquet"), f"{server_url()}?prefix=cli-{tmp_path.name}&shards=2"
    assert main(["export", file, "--store", f"rocksdb://{tmp_path}/a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": file, "sites": 1, "pages": 5, "changes": 0}
    assert main(["import", file, "--store", there, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pages"] == 5
    assert main(["import", file, "--store", there]) == 2
    assert "there is a store already" in capsys.readouterr().err
    assert main(["export", f"{file}2", "--store", "rocksdb://nowhere"]) == 2


def test_export_replaces_no_file_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    filled(tmp_path / "a", "embedded").close()
    file, store = tmp_path / "thesis.txt", f"rocksdb://{tmp_path}/a"
    file.write_text("mine")
    assert main(["export", str(file), "--store", store]) == 2
    assert capsys.readouterr().err.count("exists already; --force replaces it\n") == 1
    assert file.read_text() == "mine"
    assert main(["export", str(file), "--store", store, "--force"]) == 0
    assert sum(isinstance(row, Page) for row in read_rows(file)) == 5
    for wrong in (tmp_path, tmp_path / "nowhere" / "x.jsonl"):
        assert main(["export", str(wrong), "--store", store, "--force"]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
