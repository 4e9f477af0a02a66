"""The journal of a link log: no row of a settled page is lost with its process or on a full disk."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import resource
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers, lists

from webfountain.errors import RepositoryError
from webfountain.ranking.link_journal import JournalRow, LinkJournal, left_behind, read_rows
from webfountain.ranking.link_log import LinkLog, LinkLogReader, compact, fingerprint
from webfountain.records import Link
from webfountain.urls import fingerprint as key_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SITE = "http://a.example"


def links(*names: str) -> list[Link]:
    return [Link(f"{SITE}/{name}", SITE, key_of(f"{SITE}/{name}")) for name in names]


def opened(folder: Path) -> LinkLog:
    return LinkLog(str(folder / "links"), writer="ant", journal=folder / "journal")


def sources(folder: Path) -> list[int]:
    tables = LinkLogReader(str(folder / "links")).rows()
    return sorted(source for table in tables for source in table["source"].to_pylist())


def write_and_die(folder: Path, first: int, many: int) -> None:
    log = opened(folder)
    for number in range(first, first + many):
        log.append(f"{SITE}/{number}", SITE, at=float(number), links=links("x", f"y{number}"), anchors=["an", "anchor"])
        log.commit()
        if number % 7 == 3:
            log.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def before_the_next_lock(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do what another process may do between the opening of a file and its lock."""
    real = fcntl.flock

    def flock(file: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        act()
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)


def test_a_new_journal_that_another_crawl_takes_for_ownerless_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_the_next_lock(monkeypatch, lambda: list(left_behind(tmp_path)))
    journal = LinkJournal(tmp_path, "ant")
    assert list(tmp_path.iterdir()) == [journal.path]
    assert list(left_behind(tmp_path)) == []
    journal.close()


def test_a_journal_that_its_writer_closes_while_another_crawl_opens_it_has_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = LinkJournal(tmp_path, "ant")

    def close() -> None:
        journal.remove()
        journal.close()

    before_the_next_lock(monkeypatch, close)
    assert list(left_behind(tmp_path)) == []


def test_kills_lose_no_row(tmp_path: Path) -> None:
    """Rows and names of all lives are there after the next opening, each once, and the journals are gone."""
    for life in range(4):
        process = multiprocessing.get_context("fork").Process(target=write_and_die, args=(tmp_path, life * 10, 10))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    opened(tmp_path).close()
    assert sources(tmp_path) == sorted(fingerprint(f"{SITE}/{number}") for number in range(40))
    assert not list((tmp_path / "journal").iterdir())
    assert compact(str(tmp_path / "links")) == 40
    found = LinkLogReader(str(tmp_path / "links")).sources_of(fingerprint(f"{SITE}/x"))
    assert found.keys() == {f"{SITE}/{number}" for number in range(40)}


def test_a_writer_takes_nothing_from_one_that_lives(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.append(f"{SITE}/1", SITE, at=1.0, links=links("x"))
    first.commit()
    opened(tmp_path).close()
    assert sources(tmp_path) == []
    first.close()
    assert sources(tmp_path) == [fingerprint(f"{SITE}/1")]


def test_a_row_that_the_disk_refuses_is_an_error_before_its_page_is_settled(tmp_path: Path) -> None:
    """And what was written before stays readable."""
    log = opened(tmp_path)
    log.append(f"{SITE}/1", SITE, at=1.0, links=links("x"))
    log.commit()
    [journal] = (tmp_path / "journal").iterdir()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    log.append(f"{SITE}/2", SITE, at=2.0, links=links(*map(str, range(200))))
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (journal.stat().st_size + 10, limit[1]))
        with pytest.raises(RepositoryError, match=r"\.rows"):
            log.commit()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    rows, end = read_rows(journal.read_bytes())
    assert ([row.url for row in rows], end) == ([f"{SITE}/1"], journal.stat().st_size)


@given(cut=integers(0, 2000), flips=lists(integers(0, 2000), max_size=3), garbage=binary(max_size=20))
def test_of_a_damaged_journal_the_rows_before_the_damage_are_taken(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flips: list[int], garbage: bytes
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    journal = LinkJournal(folder, "ant")
    for number in range(10):
        journal.add(JournalRow(f"{SITE}/{number}", SITE, 1.0, b"12345678", b"12345678", b"\0", None, []))
    journal.commit()
    data = bytearray((folder / "ant.rows").read_bytes())
    whole = len(data)
    for flip in flips:
        data[flip % len(data)] ^= 255
    first = min([cut, *(flip % len(data) for flip in flips)])
    data = data[:cut] + garbage
    rows, end = read_rows(bytes(data))
    assert end <= len(data)
    assert [row.url for row in rows] == [f"{SITE}/{number}" for number in range(len(rows))]
    assert len(rows) >= min(first, whole) * 10 // whole, "all rows that lie before the first damage"
    journal.close()
