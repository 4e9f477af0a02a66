"""The link log: one newest row a page, readable by any engine, whole at every moment."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from webfountain import urls
from webfountain.errors import RepositoryError
from webfountain.ranking import link_files
from webfountain.ranking.link_journal import NOFOLLOW
from webfountain.ranking.link_log import LinkLog, LinkLogReader, compact, fingerprint, surt
from webfountain.records import Link
from webfountain.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SITE, OTHER = "https://a.example", "https://b.example"


def append(log: LinkLog, page: str, at: float, targets: Sequence[str], **given: Any) -> None:
    links = [Link(target, site_of(target), urls.fingerprint(target)) for target in targets]
    log.append(f"{SITE}{page}", SITE, at=at, links=links, **given)


def rows_of(url: str) -> dict[int, tuple[float, list[int]]]:
    """Source -> (time, targets) of its newest row; every row is met."""
    found: dict[int, tuple[float, list[int]]] = {}
    for table in LinkLogReader(url).rows():
        for row in table.to_pylist():
            if row["source"] not in found or row["time"] >= found[row["source"]][0]:
                found[row["source"]] = (row["time"], row["targets"])
    return found


def write_pages(url: str, *, rounds: int = 3, pages: int = 20) -> None:
    """Each page in each round, with one more link; a segment a round."""
    for each in range(rounds):
        log = LinkLog(url, writer="ant")
        for page in range(pages):
            append(log, f"/{page}", 100.0 * each, [f"{OTHER}/{k}" for k in range(each + 1)])
        log.flush()


def test_the_newest_row_of_a_page_replaces_the_older(tmp_path: Path) -> None:
    write_pages(str(tmp_path))
    assert compact(str(tmp_path), shards=3) == 20
    assert rows_of(str(tmp_path)) == {
        fingerprint(f"{SITE}/{page}"): (200.0, [fingerprint(f"{OTHER}/{k}") for k in range(3)]) for page in range(20)
    }
    write_pages(str(tmp_path), rounds=1)  # older ones do not
    assert compact(str(tmp_path)) == 20
    assert {at for at, _ in rows_of(str(tmp_path)).values()} == {200.0}


def test_segments_are_merged_only_when_there_are_enough(tmp_path: Path) -> None:
    write_pages(str(tmp_path), rounds=3)
    assert compact(str(tmp_path), fewest=4) == 0
    assert len(LinkLogReader(str(tmp_path)).files) == 3
    assert compact(str(tmp_path), fewest=3) == 20


def test_any_engine_reads_the_files(tmp_path: Path) -> None:
    """DuckDB counts the links of each page, by their names."""
    log = LinkLog(str(tmp_path), writer="ant")
    append(log, "/", 1.0, [f"{OTHER}/x", f"{SITE}/y", f"{OTHER}/x"], flags=bytes([0, NOFOLLOW, 0]))
    append(log, "/y", 2.0, [])
    log.flush()
    compact(str(tmp_path))
    query = f"""
        with link as (select unnest(targets) as target, unnest(flags) as flag from '{tmp_path}/shards/links-*.parquet')
        select url, count(*), max(flag) from link join '{tmp_path}/shards/names-*.parquet' on target = fingerprint
        group by url order by url
    """
    assert duckdb.execute(query).fetchall() == [(f"{SITE}/y", 1, NOFOLLOW), (f"{OTHER}/x", 2, 0)]


def test_shards_are_sorted_by_site_and_page_and_names_in_surt_order(tmp_path: Path) -> None:
    write_pages(str(tmp_path))
    compact(str(tmp_path), shards=2)
    reader = LinkLogReader(str(tmp_path))
    for file in reader.files:
        keys = [(row["site"], row["source"]) for table in reader.rows(files=[file]) for row in table.to_pylist()]
        assert keys == sorted(keys)
        assert len({site % 2 for site, _ in keys}) <= 1
    for table in reader.names():
        order = [(surt(site_of(url)), url) for url in table["url"].to_pylist()]
        assert order == sorted(order)
    names = {row["url"]: row["fingerprint"] for table in reader.names() for row in table.to_pylist()}
    assert names == {url: fingerprint(url) for url in names}
    assert len(names) == 23


@pytest.mark.parametrize(
    ("site", "key"), [("https://www.example.org", "org,example,www)"), ("http://example.org:8080", "org,example:8080)")]
)
def test_a_domain_stays_together_in_surt_order(site: str, key: str) -> None:
    assert surt(site) == key


def test_a_segment_ends_with_its_period_or_when_it_is_full(tmp_path: Path) -> None:
    log = LinkLog(str(tmp_path), writer="ant", period=10.0, rows=2)
    for page, at in enumerate((1.0, 2.0, 3.0, 14.0)):
        append(log, f"/{page}", at, [])
    log.flush()
    log.flush()
    assert sorted(file.name[6:14] for file in (tmp_path / "segments").glob("links-*")) == ["00000000"] * 2 + [
        "00000001"
    ]


def test_anchor_texts_are_kept_where_they_are_given(tmp_path: Path) -> None:
    log = LinkLog(str(tmp_path), writer="ant")
    append(log, "/", 1.0, [f"{OTHER}/x"], anchors=["Ex"])
    append(log, "/plain", 1.0, [f"{OTHER}/x"])
    log.flush()
    found = [row["anchors"] for table in LinkLogReader(str(tmp_path)).rows() for row in table.to_pylist()]
    assert found == [["Ex"], None]


def test_writers_do_not_disturb_each_other_and_names_are_never_used_again(tmp_path: Path) -> None:
    """A segment of a reopened writer is live though one of its place was compacted and deleted."""
    for _ in range(3):
        write_pages(str(tmp_path), rounds=1, pages=1)
        compact(str(tmp_path))
    assert len(list((tmp_path / "segments").glob("links-*"))) == 1  # kept for readers that have just begun
    log = LinkLog(str(tmp_path), writer="ant")
    append(log, "/new", 5.0, [])
    log.flush()
    assert len(rows_of(str(tmp_path))) == 2


def test_a_log_may_lie_at_an_fsspec_url() -> None:
    url = "memory://link-log-test"
    write_pages(url, pages=3)
    assert compact(url, shards=2) == 3
    assert len(rows_of(url)) == 3


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RepositoryError, match="file"):
        LinkLog(str(tmp_path / "file"), writer="ant")


def _compact_until(url: str, writes: int) -> None:
    """A compaction that is killed after so many files."""
    real = link_files.LogFiles._write

    def write(files: Any, name: str, content: bytes) -> None:
        nonlocal writes
        if not writes:
            os.kill(os.getpid(), signal.SIGKILL)
        writes -= 1
        real(files, name, content)

    pytest.MonkeyPatch().setattr(link_files.LogFiles, "_write", write)
    compact(url)


@pytest.mark.parametrize("writes", [0, 1, 3, 4, 5])
def test_a_killed_compaction_leaves_all_rows_and_the_next_completes_it(tmp_path: Path, writes: int) -> None:
    """Two shards: four files, then the manifest."""
    url = str(tmp_path)
    write_pages(url, rounds=1, pages=9)
    compact(url, shards=2)
    write_pages(url)
    before = rows_of(url)
    process = multiprocessing.get_context("fork").Process(target=_compact_until, args=(url, writes))
    process.start()
    process.join()
    assert process.exitcode == (0 if writes == 5 else -signal.SIGKILL)
    assert rows_of(url) == before
    assert compact(url) == 20
    assert rows_of(url) == before


def test_a_reader_that_began_before_a_compaction_reads_to_its_end(tmp_path: Path) -> None:
    write_pages(str(tmp_path))
    reader = LinkLogReader(str(tmp_path))
    compact(str(tmp_path))
    assert sum(table.num_rows for table in reader.rows()) == 60


def test_who_links_a_page_is_reported_by_the_newest_rows(tmp_path: Path) -> None:
    """One page took its link back, another says nofollow now; in shards and in segments."""
    log, target = LinkLog(str(tmp_path), writer="ant"), f"{OTHER}/x"
    for page in ("/", "/a", "/b"):
        append(log, page, 1.0, [f"{OTHER}/y", target])
    log.flush()
    compact(str(tmp_path), shards=2)
    append(log, "/a", 2.0, [f"{OTHER}/y"])
    append(log, "/b", 2.0, [target], flags=bytes([NOFOLLOW]))
    append(log, "/c", 2.0, [f"{OTHER}/y", target])
    log.flush()
    for _ in range(2):
        found = LinkLogReader(str(tmp_path)).sources_of(fingerprint(target))
        assert found == {f"{SITE}/": 0, f"{SITE}/b": NOFOLLOW, f"{SITE}/c": 0}
        compact(str(tmp_path))
    assert LinkLogReader(str(tmp_path)).sources_of(fingerprint(f"{OTHER}/z")) == {}


def _write_and_compact(url: str, writer: str) -> None:
    log = LinkLog(url, writer=writer)
    for page in range(16):
        append(log, f"/{writer}/{page}", 1.0, [f"{OTHER}/{page}"])
        log.flush()
        if page % 4 == 3:
            compact(url, shards=2)


def test_rankers_of_two_collections_may_share_a_log(tmp_path: Path) -> None:
    """Each compacts when it likes, while both write: no row is lost, and none comes twice."""
    context = multiprocessing.get_context("fork")
    crawls = [context.Process(target=_write_and_compact, args=(str(tmp_path), name)) for name in ("one", "other")]
    for each in crawls:
        each.start()
    for each in crawls:
        each.join()
    assert [each.exitcode for each in crawls] == [0, 0]
    rows = [row["source"] for table in LinkLogReader(str(tmp_path)).rows() for row in table.to_pylist()]
    assert sorted(rows) == sorted(
        fingerprint(f"{SITE}/{name}/{page}") for name in ("one", "other") for page in range(16)
    )
