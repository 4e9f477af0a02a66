"""Texts for an index: a reader may die behind any line, and no cursor passes what could not be read."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.repository.captures import Crawl, capture, url_of
from tests.store.stores import lease
from webfountain.api.collection import StoredCollection
from webfountain.errors import InputError, RepositoryError
from webfountain.policy.collection_file import CollectionInForce
from webfountain.records import Copy, Link, Outcome, SiteState
from webfountain.report.texts import ListPlace, PageTexts, TextForm, is_list_cursor, texts, texts_since
from webfountain.repository.repository import Repository
from webfountain.repository.warc_reader import StoredCopy
from webfountain.store.answers import ParkRequest
from webfountain.store.contract import COLLECTION
from webfountain.store.memory.store import MemoryStore
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from webfountain.records import State
    from webfountain.repository.repository import Pages

SITES = ["https://a.org", "https://b.org", "https://c.org"]
URLS = [f"{site}/{number}" for site in SITES for number in range(7)]


class Copies:
    """Copies by their offset; some cannot be read."""

    def __init__(self, *broken: str) -> None:
        self.broken = set(broken)

    def read(self, copy: Copy, url: str) -> StoredCopy:
        if url in self.broken:
            raise RepositoryError(f"{url}: damaged")
        headers = (("content-type", "text/html"),)
        return StoredCopy(url=url, at=1.0, status=200, headers=headers, body=f"<p>{url} {copy.offset}".encode())


class OwnCopies(Copies):
    """The same, of a media type that only the project reads."""

    def read(self, copy: Copy, url: str) -> StoredCopy:
        kept = super().read(copy, url)
        headers = (("content-type", "application/x-own"),)
        return msgspec.structs.replace(kept, headers=headers, body=f"{url} {copy.offset}".encode())


def settle(store: MemoryStore, *urls: str, state: State = "crawled", at: float) -> None:
    """One fetch of each URL."""
    for url in urls:
        site, key = site_of(url), fingerprint(url)
        store.queues.immediate([Link(url, site, key)], at=at)
        (held,) = store.sites.enlist([site], owner="ant", until=1e9, at=at)
        (one,) = lease(store, held, 1, queue="immediate")
        known = one.record.digest is not None
        place = Copy(1, int(at), 1) if state == "crawled" else one.record.copy
        digest = f"{at}" if state == "crawled" else one.record.digest
        record = msgspec.structs.replace(
            one.record, state=state, digest=digest, copy=place, last_crawled=at, copied=at, due=1e9
        )
        kind: Any = {"crawled": "changed" if known else "new", "gone": "gone"}[state]
        store.queues.settle([Outcome(one.id, kind, record)], at=at)
        store.sites.park([ParkRequest(held, 0.0, SiteState())], at=at)


@pytest.fixture
def store() -> MemoryStore:
    opened = MemoryStore(period_s=1000.0)
    settle(opened, *URLS, at=10.0)
    settle(opened, URLS[3], URLS[9], state="gone", at=20.0)
    settle(opened, "https://b.org/never", state="gone", at=30.0)
    return opened


def listed(store: MemoryStore, copies: Copies, behind: str | None = None) -> list[dict[str, Any]]:
    place = None if behind is None else ListPlace.parse(behind)
    return list(texts(store, cast("Pages", copies), behind=place, unreadable=lambda _: None))


def since(store: MemoryStore, copies: Copies, cursor: str) -> list[dict[str, Any]]:
    return list(texts_since(store, cast("Pages", copies), cursor, unreadable=lambda _: None))


def urls_of(rows: Iterable[dict[str, Any]]) -> list[str]:
    return [row["url"] for row in rows]


def test_the_list_has_a_tombstone_of_what_was_held_and_none_of_what_never_was(store: MemoryStore) -> None:
    rows = listed(store, Copies())
    assert sorted(urls_of(rows)) == sorted(URLS)
    assert {row["url"] for row in rows if row["text"] is None} == {URLS[3], URLS[9]}


def test_a_reader_that_died_behind_any_line_of_the_list_goes_on_with_the_next(store: MemoryStore) -> None:
    rows = listed(store, Copies())
    for number, row in enumerate(rows[:-1], start=1):
        assert is_list_cursor(row["cursor"])
        assert listed(store, Copies(), row["cursor"]) == rows[number:]
    assert rows[-1]["cursor"] == store.changes.end()


def test_what_changes_while_the_list_is_taken_is_reported_behind_it(store: MemoryStore) -> None:
    half = listed(store, Copies())[9]["cursor"]
    settle(store, URLS[0], "https://a.org/later", at=40.0)
    rest = listed(store, Copies(), half)
    assert set(urls_of(since(store, Copies(), rest[-1]["cursor"]))) == {URLS[0], "https://a.org/later"}


def test_each_line_since_a_cursor_can_be_gone_on_from(store: MemoryStore) -> None:
    begin = store.changes.end()
    settle(store, URLS[0], URLS[8], URLS[2], at=40.0)
    settle(store, URLS[0], at=50.0)
    settle(store, URLS[5], state="gone", at=60.0)
    rows = since(store, Copies(), begin)
    assert urls_of(rows) == [URLS[8], URLS[2], URLS[0], URLS[5]], "in the order of their last entries"
    for number, row in enumerate(rows, start=1):
        assert since(store, Copies(), row["cursor"]) == rows[number:]
    assert rows[-1]["cursor"] == store.changes.end()


def test_no_cursor_passes_a_copy_that_cannot_be_read(store: MemoryStore) -> None:
    whole = listed(store, Copies())
    lost = whole[4]["url"]
    rows = listed(store, Copies(lost))
    assert urls_of(rows) == [url for url in urls_of(whole) if url != lost], "the others are told all the same"
    assert {row["cursor"] for row in rows[4:]} == {whole[3]["cursor"]}
    assert urls_of(listed(store, Copies(), rows[-1]["cursor"])) == urls_of(whole[4:])
    begin = store.changes.end()
    settle(store, *URLS[:3], at=40.0)
    assert {row["cursor"] for row in since(store, Copies(URLS[0]), begin)} == {begin}


def test_a_copy_that_is_replaced_while_it_is_read_is_read_where_it_is_then(store: MemoryStore) -> None:
    class Moving(Copies):
        def read(self, copy: Copy, url: str) -> StoredCopy:
            if url == URLS[0] and copy.offset == 10:
                settle(store, url, at=70.0)
                raise RepositoryError("the file is gone")
            return super().read(copy, url)

    rows = {row["url"]: row for row in listed(store, Moving())}
    assert rows[URLS[0]]["text"] == f"{URLS[0]} 70"


@given(st.text(alphabet="0123456789abcdef+-:/.x", max_size=60))
def test_what_is_no_cursor_of_a_list_is_refused_in_one_line(text: str) -> None:
    if is_list_cursor(text):
        return
    with pytest.raises(InputError, match="is not a cursor of `texts`"):
        ListPlace.parse(text)


def test_a_seeds_file_that_was_away_for_a_moment_is_forgotten(tmp_path: Path) -> None:
    """A service runs for months: one failed read must not decide how it writes texts."""
    text = (
        '[collection]\nname = "c"\nseeds_file = "seeds.txt"\n[content]\ntext = "main"\n'
        '[politeness]\nuser_agent = "c (+https://example.org/bot)"\n'
    )
    store = MemoryStore(period_s=1000.0)
    store.board.put_value(COLLECTION, msgspec.msgpack.encode(CollectionInForce(str(tmp_path / "c.toml"), text)))
    reader = PageTexts(store)
    page = StoredCopy(
        "http://a.example/", 1.0, 200, (("content-type", "text/html"),), b"<nav>Home</nav><p>The whole text of it.</p>"
    )
    assert reader.by_policy(page, TextForm(), "default", reader.rules()).text == "Home\nThe whole text of it."
    (tmp_path / "seeds.txt").write_text("http://a.example/\n")
    assert reader.by_policy(page, TextForm(), "default", reader.rules()).text == "The whole text of it."


def with_extractor(folder: Path, store: MemoryStore, *, title: str) -> None:
    """Put a policy file in force whose extractor gives a title and the body in capitals."""
    (folder / "own_texts.py").write_text(
        "import os\n"
        "from webfountain.formats.extractors import ExtractedText\n"
        f"def extract(body, kind):\n    return ExtractedText({title}, body.decode().upper())\n"
    )
    text = (
        '[collection]\nname = "c"\nseeds = ["http://a.example/"]\n'
        '[content.extractors]\n"application/x-own" = "own_texts:extract"\n'
        '[politeness]\nuser_agent = "c (+https://example.org/bot)"\n'
    )
    store.board.put_value(COLLECTION, msgspec.msgpack.encode(CollectionInForce(str(folder / "c.toml"), text)))


def test_a_type_with_an_extractor_of_the_project_is_read_by_it_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`texts`, `cat` and the APIs hand on what the crawl compared."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    store = MemoryStore(period_s=1000.0)
    with_extractor(tmp_path, store, title="'T'")
    settle(store, URLS[0], at=10)
    settle(store, URLS[1], at=20)
    rows = {row["url"]: row for row in listed(store, OwnCopies())}
    assert rows[URLS[0]]["text"] == f"{URLS[0]} 10".upper()
    assert rows[URLS[1]]["title"] == "T"
    copy = OwnCopies().read(Copy(1, 10, 1), URLS[0])
    reader = PageTexts(store)
    found = reader.of_copy(copy, TextForm("markdown"))
    assert (found.title, found.text) == ("T", f"{URLS[0]} 10".upper())
    cut = msgspec.structs.replace(copy, size=len(copy.body) + 1)  # as in a list of versions
    assert reader.of_copy(cut).title is None


def test_a_closed_collection_leaves_no_process_of_an_extractor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    crawl, url = Crawl(), url_of(0)
    with_extractor(tmp_path, crawl.store, title="str(os.getpid())")
    with closing(Repository(tmp_path / "copies")) as repository:
        crawl.settle([url], repository.write([capture(url, headers=(("content-type", "application/x-own"),))]))
    collection = StoredCollection(crawl.store, "redis://127.0.0.1:1/0", repository=tmp_path / "copies")
    child = int(collection.page_text(url).title or 0)
    assert child != os.getpid()
    os.kill(child, 0)  # it is alive
    collection.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
