"""The index of duplicates: what is found, few files, nothing lost when killed, mended from its records."""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from webfountain.core.sketch import SKETCH_BYTES
from webfountain.duplicates.index import DuplicateIndex, IndexedPage
from webfountain.duplicates.page_records import digest_number, number_of
from webfountain.errors import RepositoryError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.sharedctypes import Synchronized
    from pathlib import Path

    from webfountain.duplicates.index import Match


def url_of(number: int) -> str:
    return f"http://a.example/{number}"


def drawn(pages: int, seed: int = 1, *, first: int = 0) -> list[IndexedPage]:
    """Pages that resemble none."""
    rng = np.random.default_rng(seed)
    sketches = rng.integers(0, 256, (pages, SKETCH_BYTES), dtype=np.uint8)
    return [IndexedPage(url_of(first + k), f"{seed:08x}{k:08x}", row.tobytes()) for k, row in enumerate(sketches)]


def near(page: IndexedPage, share: float, number: int) -> IndexedPage:
    """Another page that agrees in this share of the components."""
    assert page.sketch is not None
    rng = np.random.default_rng(number)
    drawn_bytes = np.frombuffer(page.sketch, dtype=np.uint8).copy()
    changed = rng.permutation(SKETCH_BYTES)[: round((1 - share) * SKETCH_BYTES)]
    drawn_bytes[changed] += 1
    return IndexedPage(url_of(number), f"ff{number:014x}", drawn_bytes.tobytes())


def add(index: DuplicateIndex, pages: Sequence[IndexedPage]) -> list[Match | None]:
    """The nearest representative of each, else it is one from then on."""
    answers: list[Match | None] = []
    for probe in index.probe(pages):
        found = index.nearest(probe)
        answers.append(found[0] if found else None)
        if not found:
            index.keep(probe)
    return answers


def test_a_near_duplicate_is_given_its_representative(tmp_path: Path) -> None:
    """Within a batch, among the fresh, and in runs; also after the index was opened again."""
    originals = drawn(100)
    copies = [near(each, 0.97, 1000 + number) for number, each in enumerate(originals)]
    with closing(DuplicateIndex(tmp_path, pages_a_run=16)) as index:
        for begin in range(0, 100, 5):
            assert add(index, originals[begin : begin + 5]) == [None] * 5
        reported = add(index, copies)
    with closing(DuplicateIndex(tmp_path, pages_a_run=16)) as index:
        assert len(index) == 100
        for found in (reported, add(index, copies)):
            assert [one.url for one in found if one is not None] == [page.url for page in originals]
            assert all(one is not None and 0.93 <= one.resemblance < 1.0 and not one.is_exact for one in found)
    with closing(DuplicateIndex(tmp_path / "other")) as index:
        both = add(index, [originals[0], copies[0]])
    assert both[0] is None
    assert both[1] is not None
    assert both[1].url == originals[0].url


def test_equal_digests_are_exact_duplicates_whatever_the_text(tmp_path: Path) -> None:
    with closing(DuplicateIndex(tmp_path, pages_a_run=2)) as index:
        assert add(index, [IndexedPage(url_of(1), "ab" * 20), *drawn(3, first=10)]) == [None] * 4
        [found] = add(index, [IndexedPage(url_of(2), "ab" * 20)])
    assert found is not None
    assert (found.url, found.resemblance, found.is_exact) == (url_of(1), 1.0, True)


def test_a_page_is_no_duplicate_of_itself_and_unlike_pages_are_none(tmp_path: Path) -> None:
    pages = drawn(3)
    with closing(DuplicateIndex(tmp_path)) as index:
        add(index, pages[:2])
        assert add(index, [near(pages[0], 0.99, 0), near(pages[1], 0.7, 5)]) == [None, None]
        assert len(index) == 3


@pytest.mark.parametrize("pages_a_run", [1, 1000])
def test_a_page_that_changed_is_found_as_it_is_now_and_no_longer_as_it_was(tmp_path: Path, pages_a_run: int) -> None:
    """Also when the index is opened again after a kill, which is what not closing it amounts to."""
    before, after = drawn(1)[0], IndexedPage(url_of(0), "00" * 20, drawn(1, seed=2)[0].sketch, canonical=url_of(9))
    index = DuplicateIndex(tmp_path, pages_a_run=pages_a_run)
    add(index, [before])
    add(index, [after])
    assert len(index) == 1
    for opened in (index, DuplicateIndex(tmp_path, pages_a_run=pages_a_run)):
        [was, now] = opened.probe([near(before, 1.0, 7), near(after, 1.0, 8)])
        assert opened.nearest(was) == []
        [found] = opened.nearest(now)
        assert (found.url, found.names) == (after.url, number_of(url_of(9)))
        opened.close()


def test_a_representative_is_known_by_its_url(tmp_path: Path) -> None:
    pages = drawn(40)
    with closing(DuplicateIndex(tmp_path, pages_a_run=8)) as index:
        add(index, [*pages, IndexedPage("http://b.example/", "1" * 40, canonical=url_of(1))])
        known = index.known([page.url for page in pages])
        assert [(found[0].sketch, found[1]) for found in known if found] == [(page.sketch, 0) for page in pages]
        [other, absent] = index.known(["http://b.example/", url_of(99)])
        assert other is not None
        assert (other[0].sketch, other[1]) == (None, number_of(url_of(1)))
        assert absent is None
        assert index.url_of(other[1]) == url_of(1)
        assert index.url_of(number_of(url_of(99))) is None


def test_pages_are_found_through_merged_runs(tmp_path: Path) -> None:
    for begin in range(0, 640, 64):
        with closing(DuplicateIndex(tmp_path, pages_a_run=8)) as index:
            for page in drawn(64, seed=begin + 1, first=begin):
                add(index, [page])
    with closing(DuplicateIndex(tmp_path, pages_a_run=8)) as index:
        found = add(index, [near(page, 1.0, 5000 + k) for k, page in enumerate(drawn(64, first=0))])
        assert [one.url for one in found if one is not None] == [url_of(k) for k in range(64)]


def _add_until(folder: Path, calls: int) -> None:
    """Pages are added until a file is replaced for the n-th time, by any thread; the file "answered" counts them."""
    real = os.replace

    def replace(*paths: str) -> None:
        nonlocal calls
        if not calls:
            os.kill(os.getpid(), signal.SIGKILL)
        calls -= 1
        real(*paths)

    pytest.MonkeyPatch().setattr(os, "replace", replace)
    index = DuplicateIndex(folder, pages_a_run=8)
    with (folder / "answered").open("wb", buffering=0) as answered:
        for page in drawn(100):
            add(index, [page])
            answered.write(b".")


@pytest.mark.parametrize("calls", [1, 2, 3, 4, 7, 8])  # the first is at opening
def test_killed_at_any_file_no_page_that_was_answered_for_is_lost(tmp_path: Path, calls: int) -> None:
    process = multiprocessing.get_context("fork").Process(target=_add_until, args=(tmp_path, calls))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with (tmp_path / "records").open("ab") as file:
        file.write(b"torn")
    with closing(DuplicateIndex(tmp_path, pages_a_run=8)) as index:
        answered = (tmp_path / "answered").stat().st_size
        assert answered <= len(index) <= answered + 1
        found = add(index, [near(page, 1.0, 1000 + k) for k, page in enumerate(drawn(len(index)))])
        assert [one.url for one in found if one is not None] == [url_of(k) for k in range(len(index))]


@pytest.mark.parametrize("lost", ["INDEX", "run", "half an INDEX", "half a run"])
def test_what_is_lost_of_the_runs_is_made_anew_from_the_records(tmp_path: Path, lost: str) -> None:
    with closing(DuplicateIndex(tmp_path, pages_a_run=8)) as index:
        add(index, drawn(60))
    path = tmp_path / "INDEX" if lost.endswith("INDEX") else next(tmp_path.glob("run-*"))
    if lost.startswith("half"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 1])
    else:
        path.unlink()
    with closing(DuplicateIndex(tmp_path, pages_a_run=8)) as index:
        found = add(index, [near(page, 1.0, 1000 + k) for k, page in enumerate(drawn(60))])
        assert [one.url for one in found if one is not None] == [url_of(k) for k in range(60)]


@pytest.mark.parametrize("size", [0, 2400])
def test_a_run_that_is_cut_while_the_index_is_used_is_built_again_and_ends_no_process(
    tmp_path: Path, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A backup that is copied over a file empties it first; to read behind its end is a SIGBUS. Each size is less than
    that of the shortest run."""
    folders = [tmp_path / f"ant-{number:04d}" / "duplicates" for number in (1, 2)]
    pages = drawn(100)
    copies = [near(page, 1.0, 1000 + k) for k, page in enumerate(pages)]

    def use() -> None:
        with closing(DuplicateIndex(folders[0], beside=tmp_path, pages_a_run=30)) as writer:
            for begin in range(0, 100, 5):
                add(writer, pages[begin : begin + 5])
        # Opened again, so that no thread is merging runs while they are cut.
        one, other = (DuplicateIndex(folder, beside=tmp_path, pages_a_run=30) for folder in folders)
        with closing(one), closing(other):
            other.probe(copies)
            for run in folders[0].glob("run-*"):
                os.truncate(run, size)
            other.probe(copies)
            assert one.known([pages[0].url]) == [None]
            for index in (one, other):
                found = [index.nearest(probe) for probe in index.probe(copies)]
                assert [each[0].url for each in found] == [page.url for page in pages]
            assert len([line for line in caplog.messages if "became shorter" in line]) == 1

    process = multiprocessing.get_context("fork").Process(target=use)
    process.start()
    process.join()
    assert process.exitcode == 0


@pytest.mark.parametrize("form", [None, "0123456789abcdef"])
def test_an_index_of_other_sketches_is_begun_anew_with_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str | None
) -> None:
    """Those of before had no name; a text that is sketched otherwise has another."""
    pages = drawn(50)
    with closing(DuplicateIndex(tmp_path, pages_a_run=20)) as index:
        add(index, pages)
    with closing(DuplicateIndex(tmp_path)) as index:
        assert len(index) == 50
    assert not caplog.records
    if form is None:
        (tmp_path / "FORM").unlink()
    else:
        (tmp_path / "FORM").write_text(form)
    with closing(DuplicateIndex(tmp_path)) as index:
        assert len(index) == 0
        assert index.known([pages[0].url]) == [None]
        add(index, pages)
    assert [str(tmp_path) in record.getMessage() for record in caplog.records] == [True]
    with closing(DuplicateIndex(tmp_path)) as index:
        assert len(index) == 50
    assert len(caplog.records) == 1


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RepositoryError, match=r"file.*cannot be opened"):
        DuplicateIndex(tmp_path / "file")


def test_what_another_ant_keeps_is_found_beside(tmp_path: Path) -> None:
    """In its runs and behind them, kept again with another sketch, once it was opened anew, and by its fingerprint."""
    originals, later = drawn(40), drawn(40, seed=2)
    copies = [near(each, 0.97, 1000 + number) for number, each in enumerate(originals)]
    folders = [tmp_path / f"ant-{number:04d}" / "duplicates" for number in (1, 2)]
    one, other = (DuplicateIndex(folder, beside=tmp_path, pages_a_run=16) for folder in folders)
    with closing(other):
        with closing(one):
            for begin in range(0, 40, 5):
                add(one, originals[begin : begin + 5])
            reported = [found for probe in other.probe(copies) if (found := other.nearest(probe))]
            assert [found[0].url for found in reported] == [page.url for page in originals]
            assert {found[0].digest for found in reported} == {digest_number(page.digest) for page in originals}
            changed = [msgspec.structs.replace(page, url=url_of(k)) for k, page in enumerate(later)]
            for probe in one.probe(changed):
                assert not one.nearest(probe)
                one.keep(probe)
            changed = [near(each, 0.97, 2000 + number) for number, each in enumerate(later)]
            assert [other.nearest(probe)[0].url for probe in other.probe(changed)] == [page.url for page in originals]
            assert not any(other.nearest(probe) for probe in other.probe(copies))
            assert [each.url for each in other.nearest(other.probe(later)[3])] == []  # it is that page
            assert other.url_of(number_of(url_of(7))) == url_of(7)
        with closing(DuplicateIndex(folders[0], beside=tmp_path, pages_a_run=16)) as one:
            assert [other.nearest(probe)[0].url for probe in other.probe(changed)] == [page.url for page in originals]
        (folders[0] / "FORM").write_text("another version")
        with closing(DuplicateIndex(folders[0], beside=tmp_path)) as one:
            assert not any(other.nearest(probe) for probe in other.probe(changed))
            add(one, originals[:1])
            assert [other.nearest(probe)[0].url for probe in other.probe(copies[:1])] == [url_of(0)]


def test_runs_that_another_ant_builds_again_under_their_old_names_are_found_beside(tmp_path: Path) -> None:
    """Its `INDEX` was lost. The new runs are shorter, as if the old ones were cut."""
    pages = drawn(100)
    folders = [tmp_path / f"ant-{number:04d}" / "duplicates" for number in (1, 2)]
    copies = [near(each, 0.97, 1000 + number) for number, each in enumerate(pages)]
    with closing(DuplicateIndex(folders[1], beside=tmp_path)) as other:
        for pages_a_run in (100, 60):
            with closing(DuplicateIndex(folders[0], beside=tmp_path, pages_a_run=pages_a_run)) as one:
                if pages_a_run == 100:
                    add(one, pages)
                found = [other.nearest(probe) for probe in other.probe(copies)]
                assert [each[0].url for each in found] == [page.url for page in pages]
            (folders[0] / "INDEX").unlink()


def test_what_is_read_beside_is_whole_while_another_process_writes(tmp_path: Path) -> None:
    """Every page that was kept before a look is found at it; runs are written and merged meanwhile."""
    folder = tmp_path / "ant-0001" / "duplicates"
    context = multiprocessing.get_context("fork")
    kept = context.Value("i", 0)
    writer = context.Process(target=_keep_many, args=(folder, kept))
    with closing(DuplicateIndex(tmp_path / "ant-0002" / "duplicates", beside=tmp_path)) as index:
        writer.start()
        pages, seen = drawn(1500), 0
        copies = [near(each, 0.97, 5000 + number) for number, each in enumerate(pages)]
        while seen < len(pages):
            seen = kept.value
            polled = [0, seen // 2, seen - 1] if seen else []
            for _ in range(16):  # so that it has seen that the folder is there
                probes = index.probe([copies[number] for number in polled])
            assert [index.nearest(probe)[0].url for probe in probes] == [pages[number].url for number in polled]
        writer.join()
    assert writer.exitcode == 0


def _keep_many(folder: Path, kept: Synchronized[int]) -> None:
    with closing(DuplicateIndex(folder, pages_a_run=64)) as index:
        pages = drawn(1500)
        for begin in range(0, len(pages), 10):
            add(index, pages[begin : begin + 10])
            kept.value = begin + 10
