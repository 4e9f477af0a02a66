"""Derived files that are damaged: each is set aside with a line, and what it held is made anew."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from webfountain.core.sketch import SKETCH_BYTES
from webfountain.duplicates.index import DuplicateIndex, IndexedPage
from webfountain.duplicates.index_check import damaged_index, mend_index
from webfountain.ranking.link_files import COMPLETE_SINCE, DamagedFile, LogFiles
from webfountain.ranking.link_journal import read_rows
from webfountain.ranking.link_log import LinkLog, LinkLogReader, compact, fingerprint
from webfountain.ranking.log_completeness import GRACE_S, complete_since, damaged_files, mend
from webfountain.ranking.ranker_process import Job, carry_out
from webfountain.ranking.scores import EpochScores, damaged_scores, mend_scores, publish_scores
from webfountain.ranking.segment_register import damaged_registers
from webfountain.records import Link
from webfountain.urls import fingerprint as key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

KINDS = ("cut", "emptied", "flipped", "deleted", "garbage")
LOSSES = ("1 1.0 3 pagerank 250,1.5,2.5", "1 1.0 3 pagerank 250,1,5,2.5,3.5", "1 1.0 3 pagerank 250,1.5,nan,3.5")
"""Epochs whose losses are not those of three orders: one lost its end, in one a bit made a comma of a point."""


def damage(path: Path, kind: str, rng: random.Random) -> None:
    """Do to a file what disks and people do."""
    data = bytearray(path.read_bytes())
    if kind == "deleted":
        path.unlink()
        return
    if kind == "flipped" and data:
        for _ in range(3):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    if kind == "cut":
        data = data[: rng.randrange(max(len(data), 1))]
    elif kind == "emptied":
        data = bytearray()
    elif kind == "garbage":
        data = bytearray(rng.randbytes(max(len(data), 64)))
    path.write_bytes(bytes(data))


def log(folder: Path) -> str:
    """A log with two shards of 40 pages, of which 20 are in segments, too, and ten more in a segment of their own."""
    url = str(folder / "links")
    writer = LinkLog(url, writer="ant")
    for first, many in ((0, 40), (0, 20), (40, 10)):
        for number in range(first, first + many):
            site = f"http://{number % 5}.example"
            to = f"{site}/to"
            writer.append(f"{site}/{number}", site, at=float(number + many), links=[Link(to, site, key_of(to))])
        writer.flush()
        if many == 40:
            compact(url, shards=2)
    return url


def rows_of(url: str) -> set[int]:
    return {source for table in LinkLogReader(url).rows() for source in table["source"].to_pylist()}


def damages(folder: Path, seed: int) -> Iterator[tuple[Path, str]]:
    """Each file of a folder damaged in one way, each in a copy of the folder; the next seed damages it in another."""
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.name != "LOCK")
    for number, file in enumerate(files):
        kind = KINDS[(number + seed) % len(KINDS)]
        copy = folder.parent / f"copy-{seed}-{number}"
        shutil.copytree(folder, copy)
        damage(copy / file, kind, random.Random(f"{seed} {file}"))
        yield copy, f"{file} {kind}"
        shutil.rmtree(copy)


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 101), marks=pytest.mark.soak)])
def test_a_log_with_a_damaged_file_is_read_and_ranked_again(tmp_path: Path, seeds: range) -> None:
    """What is whole stays, each damaged file is named once, and a second look finds nothing."""
    url = log(tmp_path)
    every = rows_of(url)
    for seed in seeds:
        for copy, what in damages(Path(url), seed):
            found = damaged_files(str(copy))
            assert all(str(copy) in line and "\n" not in line and len(line) < 500 for line in found), what
            assert len(mend(str(copy), at=1.0)) == len(found), what
            assert damaged_files(str(copy)) == [], what
            assert rows_of(str(copy)) <= every
            assert len(rows_of(str(copy))) >= 20, what
            epoch = carry_out(Job(str(copy), str(copy / "scores"), at=1.0))
            assert epoch == 1, what


@pytest.mark.parametrize("kind", ["links", "names"])
@pytest.mark.parametrize("place", [0, -1])
def test_a_segment_that_was_deleted_is_missed(
    tmp_path: Path, kind: str, place: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """No other file named it before the next compaction: its pages were without a row, and nothing said so."""
    url = log(tmp_path)
    assert damaged_files(url) == []
    segments = sorted(Path(url).glob(f"segments/{kind}-*"), key=lambda path: path.name[-24:])
    live = [path for path in segments if f"segments/{path.name}" not in LogFiles(url).manifest().contained]
    live[place].unlink()
    [line] = damaged_files(url)
    assert live[place].name in line
    assert carry_out(Job(url, str(tmp_path / "scores"), at=1.0)) == 1
    assert live[place].name in capfd.readouterr().err
    assert complete_since(LogFiles(url)) == 1.0 + GRACE_S, "so its pages are logged again at their next visit"
    assert damaged_files(url) == []


def test_a_register_that_was_deleted_is_missed_and_made_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It alone names the newest segments, and nothing named it."""
    url = log(tmp_path)
    every = rows_of(url)
    [register] = Path(url).glob("written/*")
    register.unlink()
    [line] = damaged_files(url)
    assert register.name in line
    assert "it is missing" in line
    assert carry_out(Job(url, str(tmp_path / "scores"), at=1.0)) == 1
    assert capfd.readouterr().err.count(register.name) == 1
    assert damaged_files(url) == []
    assert rows_of(url) == every
    assert complete_since(LogFiles(url)) == 1.0 + GRACE_S, "for segments that were deleted with it"


@pytest.mark.parametrize("content", [b"", b"1 segments/links", b"\0" * 70])
def test_a_register_that_is_no_longer_whole_is_made_again(tmp_path: Path, content: bytes) -> None:
    """An empty one was read as one without segments."""
    url = log(tmp_path)
    [register] = Path(url).glob("written/*")
    register.write_bytes(content)
    assert len(mend(url, at=1.0)) == 1
    assert damaged_files(url) == []
    next(Path(url).glob("segments/links-*-ant-*")).unlink()
    assert len(damaged_files(url)) <= 1


def test_a_register_that_lost_its_last_lines_is_damaged(tmp_path: Path) -> None:
    url = log(tmp_path)
    [register] = Path(url).glob("written/*")
    lines = register.read_text().splitlines(keepends=True)
    for kept in range(len(lines)):
        register.write_text("".join(lines[:kept]))
        assert register.name in damaged_files(url)[0], kept


def test_a_manifest_is_missed_also_where_all_segments_are_in_the_shards(tmp_path: Path) -> None:
    """Then the registers are of an older generation. The rows of all shards were lost by the repair."""
    url = str(tmp_path / "links")
    writer = LinkLog(url, writer="ant")
    writer.append("http://1.example/", "http://1.example", at=1.0, links=[])
    writer.close()
    every = rows_of(url)
    for _ in range(2):
        compact(url, shards=2)
    (Path(url) / "manifest.json").unlink()
    [line] = damaged_files(url)
    assert "manifest.json: damaged: it is missing" in line
    mend(url, at=1.0)
    assert damaged_files(url) == []
    assert rows_of(url) == every


def test_a_journal_that_was_deleted_is_missed(tmp_path: Path) -> None:
    """Its rows were gone without a word, and an unchanged page was never logged again."""
    url = str(tmp_path / "links")
    writer = LinkLog(url, writer="ant", journal=tmp_path / "link-journal")
    writer.append("http://1.example/", "http://1.example", at=1.0, links=[])
    writer.commit()
    assert damaged_files(url) == []
    [journal] = (tmp_path / "link-journal").iterdir()
    journal.unlink()
    [line] = damaged_files(url)
    assert journal.name in line
    assert mend(url, at=1.0) == [line]
    assert damaged_files(url) == []
    assert complete_since(LogFiles(url)) == 1.0 + GRACE_S


def test_a_running_writer_makes_a_deleted_journal_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "link-journal"
    writer = LinkLog(str(tmp_path / "links"), writer="ant", journal=folder)
    for number in range(3):
        writer.append(f"http://1.example/{number}", "http://1.example", at=1.0, links=[])
        writer.commit()
        if number == 1:
            shutil.rmtree(folder)
    [journal] = folder.iterdir()
    assert len(read_rows(journal.read_bytes())[0]) == 3
    assert len(caplog.messages) == 1
    assert damaged_files(str(tmp_path / "links")) == []
    writer.close()
    assert not list(folder.iterdir())
    assert damaged_files(str(tmp_path / "links")) == []


def test_the_register_of_a_killed_writer_ends_when_its_journal_is_taken_over(tmp_path: Path) -> None:
    url, folder = str(tmp_path / "links"), tmp_path / "link-journal"
    writer = LinkLog(url, writer="ant", journal=folder)
    writer.append("http://1.example/", "http://1.example", at=1.0, links=[])
    writer.commit()
    [journal] = folder.iterdir()
    rows, register = journal.read_bytes(), next(Path(url).glob("written/*"))
    opened = register.read_bytes()
    writer.close()
    journal.write_bytes(rows)
    register.write_bytes(opened)  # as after a kill
    LinkLog(url, writer="next", journal=folder).close()
    assert not list(folder.iterdir())
    assert damaged_files(url) == []
    for _ in range(4):
        compact(url)
    assert damaged_files(url) == []


def test_segments_of_an_earlier_version_are_no_damage(tmp_path: Path) -> None:
    """Its logs have neither registers nor a time."""
    url = log(tmp_path)
    every = rows_of(url)
    shutil.rmtree(Path(url) / "written")
    (Path(url) / COMPLETE_SINCE).unlink()
    assert damaged_files(url) == []
    LinkLog(url, writer="new", at=9.0).close()
    assert complete_since(LogFiles(url)) == 9.0
    assert damaged_files(url) == []
    assert compact(url) == len(every)
    assert rows_of(url) == every


def test_a_manifest_that_was_deleted_is_missed_and_its_shards_are_used_again(tmp_path: Path) -> None:
    """The log was called whole, and the rows of all shards were ignored."""
    url = log(tmp_path)
    every = rows_of(url)
    (Path(url) / "manifest.json").unlink()
    assert "manifest.json" in damaged_files(url)[0]
    mend(url, at=1.0)
    assert damaged_files(url) == []
    assert rows_of(url) == every
    for number in range(2):
        compact(url)
        assert damaged_files(url) == []
        writer = LinkLog(url, writer="ant")
        writer.append(f"http://1.example/new-{number}", "http://1.example", at=200.0, links=[])
        writer.close()
    assert damaged_files(url) == []


def test_a_compaction_that_ends_during_a_check_is_no_damage(tmp_path: Path) -> None:
    url = log(tmp_path)
    files = LogFiles(url)
    before = files.manifest()
    compact(url)
    writer = LinkLog(url, writer="other")
    writer.append("http://0.example/90", "http://0.example", at=1.0, links=[])
    writer.flush()
    assert files.manifest().generation > before.generation
    assert [str(each) for each in damaged_registers(files, before)] == []


def test_segments_in_the_shards_are_not_missed(tmp_path: Path) -> None:
    """They are deleted by the second compaction after them."""
    url = log(tmp_path)
    for number in range(4):
        writer = LinkLog(url, writer="ant")
        writer.append(f"http://1.example/{number}", "http://1.example", at=100.0 + number, links=[])
        writer.close()
        compact(url)
        assert damaged_files(url) == []
    registers = list((Path(url) / "written").iterdir())
    assert len(registers) <= 3, "those of writers that have ended and whose segments are in the shards are gone"


@pytest.mark.parametrize(
    ("written", "flipped"),
    [('"shards/links', '"sharDs/links'), ("-000001-", "-000003-"), ('"generation": 1', '"generation": 9')],
)
def test_a_manifest_that_names_other_files_is_damaged_itself_and_no_row_is_lost(
    tmp_path: Path, written: str, flipped: str
) -> None:
    url = log(tmp_path)
    every = rows_of(url)
    manifest = Path(url) / "manifest.json"
    manifest.write_text(manifest.read_text().replace(written, flipped, 1))
    [damaged] = damaged_files(url)
    assert "manifest.json: damaged: it names other files than its shards" in damaged
    assert len(mend(url, at=1.0)) == 1
    assert damaged_files(url) == []
    assert rows_of(url) == every


def test_a_file_without_rows_whose_columns_are_others_is_damaged(tmp_path: Path) -> None:
    """A flipped bit in the name of a column. It was no damage to who reads row by row, and ranking failed for good."""
    url = log(tmp_path)
    shard = min((Path(url) / "shards").glob("links-*"))
    pq.write_table(pa.table({"sourcf": pa.array([], pa.uint64())}), shard)
    [line] = damaged_files(url)
    assert str(shard) in line
    assert carry_out(Job(url, str(tmp_path / "scores"), at=1.0)) == 1
    assert damaged_files(url) == []


def test_a_segment_that_passes_the_check_can_be_compacted(tmp_path: Path) -> None:
    """A wrong count of rows in the footer ends the batches of a check early; reading the whole file fails by it."""
    url = str(tmp_path / "links")
    with closing(LinkLog(url, writer="ant")) as writer:
        for page in "ab":
            writer.append(f"http://{page}.example/", f"http://{page}.example", at=1.0, links=[])
    [segment] = Path(url).glob("segments/links-*")
    files, name, whole = LogFiles(url), f"segments/{segment.name}", segment.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for place in range(footer, len(whole)):
        segment.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        checked = _rows(lambda: files.read_batches(name, 100))
        assert checked is None or checked == _rows(lambda: [files.read(name)]), place


def _rows(read: Callable[[], Iterable[pa.Table]]) -> int | None:
    """Return the number of rows, or None if the file is damaged."""
    try:
        return sum(map(len, read()))
    except DamagedFile:
        return None


def test_the_ranker_repairs_a_log_that_it_cannot_read_and_reports_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = log(tmp_path)
    for path in [*Path(url).glob("segments/links-*"), next(Path(url).glob("shards/links-*"))]:
        path.write_bytes(b"no such thing")
    assert carry_out(Job(url, str(tmp_path / "scores"), at=1.0)) == 1
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 3
    assert all("is set aside" in line for line in said)
    assert EpochScores(tmp_path / "scores").epoch == 1
    assert sorted(path.name[:14] for path in (tmp_path / "links" / "damaged").iterdir())


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 103), marks=pytest.mark.soak)])
def test_damaged_scores_are_set_aside_and_the_next_ranking_holds(tmp_path: Path, seeds: range) -> None:
    keys = np.arange(100, dtype=np.uint64) * np.uint64(7)
    folder = tmp_path / "scores"
    for _ in range(2):
        publish_scores(folder, keys, {"pagerank": np.ones(100), "crawled": np.ones(100)}, at=5.0, links=3)
    for seed in seeds:
        for copy, what in damages(folder, seed):
            held = EpochScores(copy)
            read = held.lookup("pagerank", keys) if held.epoch else np.zeros(1)
            assert np.isfinite(read).all(), what
            assert publish_scores(copy, keys, {"pagerank": np.full(100, 2.0)}, at=6.0) >= held.epoch, what
            held.refresh()
            assert held.lookup("pagerank", keys[:2]).tolist() == [2.0, 2.0], what
            assert damaged_scores(copy) == [], what


@pytest.mark.parametrize("content", ["", "garbage", "-3 1.0 2", "7 nan 3", "9999999 1.0 3", "\0" * 40, "é", *LOSSES])
def test_garbage_in_place_of_an_epoch_is_found_and_mended(tmp_path: Path, content: str) -> None:
    publish_scores(tmp_path, np.arange(3, dtype=np.uint64), {"pagerank": np.ones(3)})
    (tmp_path / "EPOCH").write_text(content)
    assert len(damaged_scores(tmp_path)) == 1
    assert len(mend_scores(tmp_path)) == 1
    assert damaged_scores(tmp_path) == []
    assert EpochScores(tmp_path).epoch == 0
    assert publish_scores(tmp_path, np.arange(3, dtype=np.uint64), {"pagerank": np.ones(3)}) == 2


def test_names_that_are_gone_are_left_out(tmp_path: Path) -> None:
    url = log(tmp_path)
    for path in [*Path(url).glob("segments/names-*"), *Path(url).glob("shards/names-*")]:
        path.write_bytes(b"")
    mend(url, at=1.0)
    reader = LinkLogReader(url)
    assert reader.sources_of(fingerprint("http://1.example/to")) == {}
    assert reader.unfollowed() == {}


def index(folder: Path) -> list[IndexedPage]:
    """An index of 40 pages, some of them in runs; the pages."""
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, 256, (40, SKETCH_BYTES), dtype=np.uint8)
    pages = [IndexedPage(f"http://a.example/{n}", f"{n:016x}", row.tobytes()) for n, row in enumerate(drawn)]
    with closing(DuplicateIndex(folder, pages_a_run=8)) as made:
        for page in pages:
            [probe] = made.probe([page])
            made.nearest(probe)
            made.keep(probe)
    return pages


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 101), marks=pytest.mark.soak)])
def test_a_damaged_index_of_duplicates_never_errs_and_is_whole_again(tmp_path: Path, seeds: range) -> None:
    """No look-up names a page that is not its match; after a second opening, or a mend, all is found again."""
    folder = tmp_path / "duplicates"
    pages = index(folder)
    assert damaged_index(folder) == []
    of_url = {page.url: page for page in pages}
    for seed in seeds:
        for copy, what in damages(folder, seed):
            mended = copy.with_name(copy.name + "-mended")
            shutil.copytree(copy, mended)
            mend_index(mended)
            assert damaged_index(mended) == [], what
            for place in (copy, mended):
                for life in range(2):
                    with closing(DuplicateIndex(place, pages_a_run=8)) as held:
                        for page in pages:
                            other = msgspec.structs.replace(page, url=page.url + "/copy")
                            [probe] = held.probe([other])
                            for match in held.nearest(probe):
                                assert match.url in of_url, what
                            [probe] = held.probe([page])
                            held.nearest(probe)
                            held.keep(probe)
                        if life:
                            found = held.nearest(held.probe([msgspec.structs.replace(pages[5], url="x")])[0])
                            assert [match.url for match in found] == [pages[5].url], what
            shutil.rmtree(mended)


def test_a_url_file_of_garbage_makes_no_long_lines_and_is_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "duplicates"
    pages = index(folder)
    (folder / "urls").write_bytes(random.Random(1).randbytes(5_000_000).replace(b"\n", b"x"))
    with closing(DuplicateIndex(folder, pages_a_run=8)) as held:
        assert len(held) == 0
        [probe] = held.probe([pages[0]])
        assert held.nearest(probe) == []
    assert len(caplog.messages) == 1
    assert "is damaged: a new index is built" in caplog.text
    assert len(caplog.text) < 500


def test_damage_that_is_met_in_mid_crawl_is_said_once_and_the_index_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "duplicates"
    pages = index(folder)
    with closing(DuplicateIndex(folder, pages_a_run=8)) as held:
        (folder / "urls").write_bytes(b"")
        for page in pages:
            [probe] = held.probe([msgspec.structs.replace(page, url=page.url + "/copy")])
            assert held.nearest(probe) == []
        assert len(held) == 0
        [probe] = held.probe([pages[1]])
        held.keep(probe)
        assert len(held.nearest(held.probe([msgspec.structs.replace(pages[1], url="x")])[0])) == 1
    assert len(caplog.messages) == 1
