"""The index finds what it was given last, and nothing that was taken away."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webfountain.errors import InputError, StoreError
from webfountain.search.search_index import IndexedText, SearchFilter, SearchIndex, SearchState

WORDS = ("fox", "bear", "release")
TEXT = st.builds(
    IndexedText,
    url=st.sampled_from([f"http://{site}.example/{n}" for site in "ab" for n in range(3)]),
    verdict=st.sampled_from(["new", "changed"]),
    fetched=st.integers(0, 9).map(float),
    title=st.none(),
    text=st.none() | st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
)


@settings(max_examples=40)
@given(st.lists(st.lists(TEXT, max_size=4), max_size=5))
def test_a_search_finds_the_pages_that_have_the_word_now(steps: list[list[IndexedText]]) -> None:
    with TemporaryDirectory() as folder:
        index, model = SearchIndex(Path(folder) / "index"), dict[str, IndexedText]()
        for number, step in enumerate(steps):
            for _ in range(2):  # a repeated step changes nothing
                index.apply(step, str(number))
            model |= {each.url: each for each in step}
        held = {url: each for url, each in model.items() if each.text is not None}
        for word in WORDS:
            for wanted in (
                SearchFilter(),
                SearchFilter(site="http://a.example"),
                SearchFilter(since=5.0, verdict="new"),
            ):
                expected = {
                    url
                    for url, each in held.items()
                    if word in (each.text or "").split()
                    and (not wanted.site or url.startswith(wanted.site))
                    and (wanted.since is None or (each.fetched or 0) >= wanted.since)
                    and wanted.verdict in ("", each.verdict)
                }
                assert {each.url for each in index.find(word, wanted)} == expected
        assert index.state().pages == len(held)
        assert index.state().cursor == (str(len(steps) - 1) if steps else None)
        index.close()


def test_a_failed_step_leaves_pages_and_cursor_as_they_were(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path / "index")
    index.apply([IndexedText("http://a.example/", "new", 1.0, "one", "fox")], "1")
    with pytest.raises(AttributeError):
        index.apply([IndexedText("http://a.example/", "gone", 2.0, None, None), None], "2")  # type: ignore[list-item]
    assert index.state().cursor == "1"
    assert [each.title for each in index.find("fox", SearchFilter())] == ["one"]
    index.close()


def test_a_new_round_takes_out_what_it_does_not_bring(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path / "index")
    index.apply([IndexedText(f"http://a.example/{n}", "new", 1.0, None, "fox") for n in range(3)], "1")
    index.begin_round()
    assert index.state().cursor is None
    index.apply([IndexedText("http://a.example/1", "new", 1.0, None, "fox")], "2")
    index.end_round()
    assert [url for url, _, _ in index.urls()] == ["http://a.example/1"]
    index.clear()
    assert index.find("fox", SearchFilter()) == []
    index.close()


def test_a_file_with_many_free_pages_becomes_shorter(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path / "index")
    words = [" ".join(f"word{n * page}" for n in range(2000)) for page in range(30)]
    index.apply([IndexedText(f"http://a.example/{n}", "new", 1.0, None, each) for n, each in enumerate(words)], "1")
    index.clear()
    index.apply([IndexedText("http://a.example/", "new", 1.0, None, "fox")], "2")
    with contextlib.closing(sqlite3.connect(tmp_path / "index")) as base:
        before = base.execute("PRAGMA page_count").fetchone()[0]
        assert index.shrink()
        assert base.execute("PRAGMA page_count").fetchone()[0] < before / 2
    assert [each.url for each in index.find("fox", SearchFilter())] == ["http://a.example/"]
    index.close()


def test_a_reader_beside_the_writer_sees_its_last_step(tmp_path: Path) -> None:
    writer = SearchIndex(tmp_path / "index")
    reader = SearchIndex(tmp_path / "index", read_only=True)
    writer.apply([IndexedText("http://a.example/", "new", 1.0, None, "café")], "1")
    assert [each.url for each in reader.find("cafe", SearchFilter())] == ["http://a.example/"]
    with pytest.raises(StoreError):
        reader.apply([], "2")
    with pytest.raises(InputError):
        reader.find("fox", SearchFilter(), limit=0)
    reader.close()
    writer.close()
    assert (tmp_path / "index").stat().st_mode & 0o077 == 0


def test_a_phrase_is_found_among_pages_with_its_words(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path / "index")
    texts = ["new release of it", "release new", "a new release", "the new release is bad", "new"]
    index.apply(
        [IndexedText(f"http://a.example/{n}", "new", float(n), None, text) for n, text in enumerate(texts)], "1"
    )
    index.apply([IndexedText("http://b.example/9", "new", 9.0, None, "new release")], "2")

    def found(query: str, **wanted: Any) -> set[str]:
        return {each.url[-1] for each in index.find(query, SearchFilter(**wanted))}

    assert found('"new release"') == {"0", "2", "3", "9"}
    assert found('"new release" -bad') == {"0", "2", "9"}
    assert found('"new release" of') == {"0"}
    assert found('"new release"', site="http://b.example") == {"9"}
    assert found('"new release"', until=3.0) == {"0", "2"}
    assert found('"new bad"') == set()
    assert found('"new release" ba*') == {"3"}, "a prefix beside a phrase stays a prefix"


def test_an_index_of_an_older_version_is_built_again(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index = SearchIndex(path)
    index.apply([IndexedText("http://a.example/1", "new", 1.0, None, "text")], "1")
    index.close()
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute("PRAGMA user_version = 1")
        base.execute("DROP TABLE words")  # it was being removed when the process was killed
    with pytest.raises(InputError, match="build it again"):
        SearchIndex(path, read_only=True)
    index = SearchIndex(path)
    assert index.state() == SearchState(None, 0, 0)
    index.close()
    SearchIndex(path, read_only=True).close()
