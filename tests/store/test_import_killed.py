"""An import that is killed at any moment: what is half imported is no store, and a second import completes it."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.servers.valkey import single
from tests.store.invariants import check_valid
from tests.store.stores import link
from webfountain.errors import InputError, StoreError
from webfountain.store.memory.store import MemoryStore
from webfountain.store.opening import load_store, open_store
from webfountain.store.transfer_file import read_rows, write_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webfountain.store.transfer_rows import Row

PAGES = 3000
CHILD = """
import sys
from pathlib import Path
from webfountain.store.opening import load_store
from webfountain.store.transfer_file import read_rows

def rows():
    for number, row in enumerate(read_rows(Path(sys.argv[2]))):
        if number == int(sys.argv[3]):
            print("now", flush=True)
        yield row
    if int(sys.argv[3]) < 0:
        print("now", flush=True)

load_store(sys.argv[1], rows())
print("whole", flush=True)
"""


@pytest.fixture
def export(tmp_path: Path) -> Path:
    first = MemoryStore(period_s=10.0, collection="tests")
    first.queues.discover([link(n, site=f"https://s{n % 40}.example") for n in range(PAGES)], at=1.0)
    file = tmp_path / "export.parquet"
    write_rows(file, first.rows())
    return file


@contextlib.contextmanager
def place(kind: str, folder: Path) -> Iterator[str]:
    if kind == "embedded":
        yield f"rocksdb://{folder}/store"
    else:
        with single(appendonly="yes") as (url, _):
            yield f"{url}?shards=4"


def killed(url: str, export: Path, at_row: int, after_s: float = 0.0) -> bool:
    """Kill an import when it has come to a row (-1: the end of the rows); whether it was through."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, url, str(export), str(at_row)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    if after_s:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(after_s)
    child.kill()
    rest, _ = child.communicate()
    return "whole" in rest


def refused(url: str) -> str | None:
    """Why a store cannot be opened; None where it can."""
    try:
        open_store(url, collection=None, period_s=None).close()
    except (StoreError, InputError) as error:
        return str(error)
    return None


def check_and_complete(url: str, export: Path, *, whole: bool) -> None:
    wanted = sorted(map(repr, rows_of(read_rows(export))))
    if (refusal := refused(url)) is not None:
        assert not whole, refusal
        assert "import" in refusal or "no store" in refusal, refusal
        load_store(url, read_rows(export))
    store = open_store(url, collection=None, period_s=None)
    assert sorted(map(repr, rows_of(store.rows()))) == wanted
    check_valid(store)
    store.close()


def rows_of(rows: Iterator[Row]) -> list[Row]:
    """All but the head, which names when and by whom."""
    return list(rows)[1:]


@pytest.mark.parametrize("kind", ["embedded", "shared"])
@pytest.mark.parametrize("at_row", [0, 1, PAGES // 2, -1])
def test_an_import_that_was_killed_is_no_store_and_is_completed_by_another(
    tmp_path: Path, export: Path, kind: str, at_row: int
) -> None:
    with place(kind, tmp_path) as url:
        whole = killed(url, export, at_row)
        check_and_complete(url, export, whole=whole)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["embedded", "shared"])
def test_forty_imports_that_are_killed_at_random(tmp_path: Path, export: Path, kind: str) -> None:
    rng = random.Random(7)
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        with place(kind, folder) as url:
            at_row = rng.choice([-1, rng.randrange(PAGES)])
            check_and_complete(url, export, whole=killed(url, export, at_row, after_s=rng.uniform(0.0, 0.05)))
