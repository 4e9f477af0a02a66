"""A damaged embedded store is named as such by one line, and repaired as far as it can be read."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.store.invariants import check_valid
from tests.store.stores import lease, link, outcome
from webfountain.cli import main
from webfountain.errors import StoreError
from webfountain.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SITES = [f"https://s{n}.example" for n in range(8)]
PAGES = 150
"""Of each site; half of them are crawled."""


def opened(folder: Path) -> Any:
    return contextlib.closing(open_store(f"rocksdb://{folder}", collection="tests", period_s=10.0))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of some tables and a log, as a kill leaves it: copied while it is open."""
    folder, copied = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("copied") / "s"
    for part in range(3):
        with opened(folder) as store:
            store.queues.discover(
                [link(PAGES * part + n, site=site) for site in SITES for n in range(PAGES // 3)], at=1.0
            )
            for home in store.sites.activate(99, owner="ant", until=1e9, at=1e8):
                settled = [outcome(one, 2.0 + part) for one in lease(store, home, PAGES // 6)]
                store.queues.settle(settled, at=2.0 + part)
            if part == 2:
                shutil.copytree(folder, copied)
    return copied


def flip(file: Path, rng: random.Random) -> None:
    data = bytearray(file.read_bytes())
    for _ in range(3):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


DAMAGES: dict[str, Callable[[Path, random.Random], object]] = {
    "cut": lambda file, rng: file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3]),
    "emptied": lambda file, _: file.write_bytes(b""),
    "flipped": flip,
    "deleted": lambda file, _: file.unlink(),
}


@pytest.mark.parametrize("kind", ["*.sst", "MANIFEST-*", "CURRENT", "*.log"])
@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_reported_in_one_line_or_harmless_and_repair_mends_it(
    made: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, name: str
) -> None:
    damaged(made, tmp_path, capfd, kind, name, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["*.sst", "MANIFEST-*", "CURRENT", "*.log", "OPTIONS-*"])
@pytest.mark.parametrize("name", DAMAGES)
def test_twenty_damages_of_each_kind(
    made: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, name: str, seed: int
) -> None:
    damaged(made, tmp_path, capfd, kind, name, seed=seed)


def damaged(made: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, name: str, *, seed: int) -> None:
    folder = tmp_path / "s"
    shutil.copytree(made, folder)
    rng = random.Random(seed)
    DAMAGES[name](rng.choice(sorted(each for each in (folder / "db").glob(kind) if each.stat().st_size)), rng)
    url = f"rocksdb://{folder}"
    status = main(["check", "--store", url, "--json"])
    printed = capfd.readouterr()
    assert status in {0, 1}
    assert "no store here" not in printed.out + printed.err
    assert "Traceback" not in printed.err
    if status:
        with contextlib.suppress(StoreError), opened(folder):  # a crawl says what it is in one line, or goes on
            pass
        assert main(["check", "--store", url, "--json", "--repair"]) == 0
        mended = json.loads(capfd.readouterr().out)
        assert mended["mended"] or mended["whole"]  # a crawl that was opened has cut a damaged log off, and said so
        assert main(["check", "--store", url, "--json"]) == 0
        assert json.loads(capfd.readouterr().out)["whole"]
    with opened(folder) as store:
        check_valid(store)
        store.queues.discover([link(10**6)], at=9.0)


def test_a_flipped_bit_costs_one_block_and_not_a_table(made: Path, tmp_path: Path) -> None:
    from webfountain.store.opening import salvage

    folder = tmp_path / "s"
    shutil.copytree(made, folder)
    table = max((folder / "db").glob("*.sst"), key=lambda path: path.stat().st_size)
    data = bytearray(table.read_bytes())
    data[len(data) // 3] ^= 1
    table.write_bytes(data)
    end = salvage(folder)
    assert end.pages >= len(SITES) * PAGES * 0.7
    assert (folder / "db.damaged-1").is_dir()
    with opened(folder) as store:
        check_valid(store)
        crawled = [record for _, record in store.pages.records(state="crawled")]
        assert crawled
        assert all(record.due == record.last_crawled and record.digest is None for record in crawled)


def test_a_new_store_is_no_damaged_one(tmp_path: Path) -> None:
    """Also where an older one was deleted by hand, or is to be made anew."""
    with opened(tmp_path) as store:
        store.queues.discover([link(1)], at=1.0)
    with contextlib.closing(
        open_store(f"rocksdb://{tmp_path}", collection="other", period_s=10.0, fresh=True)
    ) as store:
        assert sum(store.census.statistics().pages.values()) == 0
    shutil.rmtree(tmp_path / "db")
    with opened(tmp_path) as store:
        assert sum(store.census.statistics().pages.values()) == 0
