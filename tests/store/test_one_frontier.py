"""A folder holds one frontier: that of one process, or that of many ants, never both."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.store.stores import links
from webfountain.errors import InputError
from webfountain.store.memory.store import MemoryStore
from webfountain.store.opening import load_store, open_store, private_server

if TYPE_CHECKING:
    from pathlib import Path


def made(folder: Path, kind: str) -> str:
    """The URL of the folder as a store of the other kind."""
    with contextlib.closing(open_store(f"{kind}://{folder}", collection="tests", period_s=10.0)) as store:
        store.queues.discover(links(1, 2), at=1.0)
    return f"{'rocksdb' if kind == 'valkey' else 'valkey'}://{folder}"


@pytest.mark.parametrize("kind", ["rocksdb", "valkey"])
def test_a_store_of_the_other_kind_is_refused_by_one_line(tmp_path: Path, kind: str) -> None:
    other = made(tmp_path, kind)
    before = sorted(tmp_path.iterdir())
    for crawl in (True, False):
        with pytest.raises(InputError, match="the folder holds a store for"):
            open_store(other, collection="tests" if crawl else None, period_s=10.0 if crawl else None)
    with pytest.raises(InputError, match="the folder holds a store for"):
        load_store(other, MemoryStore(period_s=10.0).rows())
    if kind == "rocksdb":
        with pytest.raises(InputError, match="the folder holds a store for"):
            private_server(other)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("kind", ["rocksdb", "valkey"])
def test_a_crawl_of_the_other_kind_is_refused(tmp_path: Path, kind: str) -> None:
    other = made(tmp_path, kind)
    policy = tmp_path / "p.toml"
    lines = ("[collection]", 'name = "tests"', 'seeds = ["http://127.0.0.1:9/"]', "[network]", "allow_private = true")
    policy.write_text("\n".join(lines))
    ants = [] if kind == "valkey" else ["--ants", "2"]
    command = [sys.executable, "-m", "webfountain", "crawl", str(policy), "--store", other, "--max-seconds", "5", *ants]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.count("holds a store for") == 1
    assert len(done.stderr.splitlines()) == 1
