"""A hostile file is refused by one line that names it, and nothing of it is taken in."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.stores import ALWAYS, SITE, crawled, link, make_store
from webfountain.cli import main
from webfountain.records import Copy, Outcome, SiteState
from webfountain.store.answers import ParkRequest, Refill
from webfountain.store.transfer_file import write_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with every kind of row, in both forms."""
    folder = tmp_path_factory.mktemp("exported")
    store = make_store("memory", folder)
    store.queues.discover([link(n, site=site) for site in (SITE, "https://b.example") for n in range(6)], at=1.0)
    for home in store.sites.activate(9, owner="ant", until=1e9, at=2.0):
        [dealt] = store.queues.lease([Refill(home, 0, 4, 0, None, ALWAYS)])
        assert dealt is not None
        copy = Copy(1, 100, 20, 0)
        settled = [
            Outcome(one.id, "new", msgspec.structs.replace(crawled(one.record, 3.0), copy=copy, digest="ab" * 20))
            for one in dealt.never_crawled
        ]
        store.queues.settle(settled, at=3.0, learned=[(home, b"learned")], parts=[(home, 1, b"part")])
        store.sites.park([ParkRequest(home, 5.0, SiteState())], at=4.0)
    store.pages.forget(SITE, link(5).key, at=5.0)
    store.board.put_value("plan", b"\x00plan")
    for name in ("f.jsonl", "f.parquet"):
        write_rows(folder / name, store.rows())
    return folder


def imported(file: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Status and words; a refusal is one line that names the file, and leaves no store."""
    status = main(["import", str(file), "--store", f"rocksdb://{folder}"])
    said = capsys.readouterr().err
    if status:
        assert status == 2, said
        assert len(said.splitlines()) == 1, said
        assert str(file) in said
        assert not folder.exists()
    return status, said


def spoiled(exported: Path, file: Path, spoil: Callable[[Lines], Lines | None]) -> None:
    lines = [json.loads(line) for line in (exported / "f.jsonl").read_bytes().splitlines()]
    lines = spoil(lines) or lines
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def page(lines: Lines, **fields: Any) -> None:
    next(line for line in lines if line["row"] == "page").update(fields)


def twice(lines: Lines, row: str) -> Lines:
    at = next(at for at, line in enumerate(lines) if line["row"] == row)
    pages = {"page": "pages", "site": "sites", "change": "changes"}
    if row in pages:
        lines[-1][pages[row]] += 1
    return [*lines[: at + 1], *lines[at:]]


def of(lines: Lines, row: str, **fields: Any) -> None:
    next(line for line in lines if line["row"] == row).update(fields)


SPOILERS: dict[str, Callable[[Lines], Lines | None]] = {
    "javascript:": lambda lines: page(lines, url="javascript:alert(1)"),
    "of another site": lambda lines: page(lines, url="https://evil.example/"),
    "line feeds": lambda lines: page(lines, url=SITE + "/a\r\nHost: b"),
    "a lone surrogate": lambda lines: page(lines, url=SITE + "/\ud800"),
    "a page twice": lambda lines: twice(lines, "page"),
    "a site twice": lambda lines: twice(lines, "site"),
    "a change twice": lambda lines: twice(lines, "change"),
    "a page under two keys": lambda lines: page(twice(lines, "page"), key="////////////"),
    "an empty key": lambda lines: page(lines, key=""),
    "a bucket of 256": lambda lines: page(lines, bucket=256),
    "a bucket of 1e30": lambda lines: page(lines, bucket=10**30),
    "a depth below 0": lambda lines: page(lines, depth=-1),
    "a huge copy": lambda lines: page(lines, copy=[2**40, 0, 0, 0]),
    "a copy below 0": lambda lines: page(lines, copy=[1, -1, 0, 0]),
    "a site that is none": lambda lines: of(lines, "site", site="ftp://a"),
    "a site with a path": lambda lines: of(lines, "site", site=SITE + "/x"),
    "a period of 0": lambda lines: of(lines, "store", period_s=0),
    "a negative period": lambda lines: of(lines, "store", fastest_s=-5.0),
    "no collection": lambda lines: of(lines, "store", collection=""),
    "a strange log": lambda lines: of(lines, "store", log="../x"),
    "entries below 0": lambda lines: of(lines, "store", dropped=-3),
    "counts of 3": lambda lines: of(lines, "census", counts=[1.0, 2.0, 3.0]),
    "a census bucket of 999": lambda lines: of(lines, "census", bucket=999),
    "a part of nobody": lambda lines: of(lines, "part", site="https://c.example"),
    "a part below 0": lambda lines: of(lines, "part", number=-1),
    "rows in another order": lambda lines: [lines[0], *lines[-2:0:-1], lines[-1]],
    "null": lambda lines: page(lines, url=None),
    "a list": lambda lines: page(lines, url=[[[]]]),
}


@pytest.mark.parametrize("name", SPOILERS)
def test_rows_that_cannot_make_a_store_are_refused_by_one_line(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / "x.jsonl"
    spoiled(exported, file, SPOILERS[name])
    assert imported(file, tmp_path / "s", capsys)[0] == 2


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_good_file_is_taken(exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    assert imported(exported / f"f.{form}", tmp_path / "s", capsys) == (0, "")


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**9))
def test_whatever_bytes_are_changed_there_is_no_traceback(
    exported: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str], form: str, seed: int
) -> None:
    rng, folder = random.Random(seed), tmp_path_factory.mktemp("x")
    raw = bytearray((exported / f"f.{form}").read_bytes())
    for _ in range(rng.randrange(1, 9)):
        at = rng.randrange(len(raw))
        match rng.randrange(3):
            case 0:
                raw[at] = rng.randrange(256)
            case 1:
                del raw[at : at + rng.randrange(1, 40)]
            case _:
                raw[at:at] = rng.choice([b"\x00", b"9" * 30, b"-", b"null", b"[[", b'"', b"\xff\xfe", b"1e999"])
    file = folder / f"x.{form}"
    file.write_bytes(raw)
    imported(file, folder / "s", capsys)


def test_a_table_of_somebody_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], exported: Path
) -> None:
    """Columns with the right names and other types, missing ones, and rows without words."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(exported / "f.parquet")
    tables = [table.drop_columns([name]) for name in ("row", "json", "url", "copy")]
    for name in ("copy", "key", "scores", "importance", "json", "row", "site"):
        at = table.schema.names.index(name)
        tables.append(table.set_column(at, name, pa.array(["x"] * len(table))))
        tables.append(table.set_column(at, name, pa.nulls(len(table))))
    for number, each in enumerate(tables):
        file = tmp_path / f"{number}.parquet"
        parquet.write_table(each, file)
        imported(file, tmp_path / f"s{number}", capsys)
