"""Pages that a store lost are known again by their copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.repository.captures import SITE, capture, url_of
from tests.store.stores import make_store
from webfountain.report.wholeness import discover_copies
from webfountain.repository.repository import Repository
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from pathlib import Path


def test_each_page_with_a_copy_is_known_again_once(tmp_path: Path) -> None:
    """Also where a page has several."""
    repository = Repository(tmp_path / "copies")
    repository.write([capture(url_of(n), b"body %d" % n) for n in range(4)])
    repository.write([capture(url_of(1), b"a newer one")])
    repository.close()
    store = make_store("memory", tmp_path)
    assert discover_copies(store, tmp_path / "copies", at=5.0) == 4
    assert discover_copies(store, tmp_path / "copies", at=6.0) == 0
    assert {record.url for _, record in store.pages.records()} == {url_of(n) for n in range(4)}
    found = store.pages.get(SITE, fingerprint(url_of(2)))
    assert found is not None
    assert (found.state, found.first_seen) == ("never-crawled", 5.0)


def test_a_store_without_copies_gets_none(tmp_path: Path) -> None:
    assert discover_copies(make_store("memory", tmp_path), tmp_path / "nowhere", at=5.0) == 0
