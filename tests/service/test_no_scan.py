"""No view scans: what a read takes of the disk depends on what it answers, not on what the store holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from webfountain.api.opening import open_stored
from webfountain.records import Link
from webfountain.service import answers
from webfountain.service.pages.page_pages import ComparePageQuery, LinksPageQuery, PagePageQuery
from webfountain.service.pages.site_pages import PagesPageQuery, SitePageQuery, SitesPageQuery
from webfountain.service.pages.views import VIEWS
from webfountain.service.table import OPERATIONS
from webfountain.store.embedded.disk import Disk
from webfountain.store.opening import open_store
from webfountain.store.site_orders import SITE_ORDERS
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest

    from webfountain.api.collection import StoredCollection

SITE = "http://site-3.example"
QUERIES = {
    "site": answers.SiteQuery(SITE),
    "pages": answers.PagesQuery(SITE, limit=50),
    "page": answers.PageQuery(f"{SITE}/1"),
    "sites": answers.SitesQuery(limit=50),
    **{f"sites by {order}": answers.SitesQuery(sort=order, limit=50) for order in SITE_ORDERS},
    "history": answers.HistoryQuery(),
    "links": answers.PageQuery(f"{SITE}/1"),
    **{name: answers.SiteQuery(SITE) for name in ("robots", "sections", "waiting")},
}


UNBOUND = ("copy", "text", "versions", "compare", "texts", "explain", "search")
"""Those that read copies."""


def filled(folder: Path, *, sites: int, pages: int) -> str:
    """A store of so many sites with so many pages each, never crawled."""
    url = f"rocksdb://{folder}"
    store = open_store(url, collection="test", period_s=60.0)
    for number in range(sites):
        home = f"http://site-{number}.example"
        urls = [f"{home}/{page}" for page in range(pages)]
        store.queues.discover([Link(each, home, fingerprint(each)) for each in urls], at=1.0)
    store.close()
    return url


def entries_read(url: str, read_it: Callable[[StoredCollection], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many entries of the disk an answer or a page went through."""
    read = 0
    scan = Disk.scan

    def counting(disk: Disk, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        nonlocal read
        for entry in scan(disk, start, end):
            read += 1
            yield entry

    collection = open_stored(url)
    monkeypatch.setattr(Disk, "scan", counting)
    try:
        assert read_it(collection) is not None
    finally:
        monkeypatch.setattr(Disk, "scan", scan)
        collection.close()
    return read


def test_a_larger_store_is_read_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = filled(tmp_path / "small", sites=60, pages=60)
    large = filled(tmp_path / "large", sites=300, pages=200)
    reads = [each for each in OPERATIONS if each.read is not None and each.name not in UNBOUND]
    assert {"status", "sites", "pages", "page", "history"} <= {each.name for each in reads}
    asked = [(each.name, each.read, QUERIES.get(each.name) or each.query()) for each in reads]
    [sites] = [each.read for each in reads if each.name == "sites"]
    asked += [(name, sites, query) for name, query in QUERIES.items() if name.startswith("sites by")]
    for name, read, query in asked:
        of_small, of_large = (entries_read(url, partial(answered, read, query), monkeypatch) for url in (small, large))
        most = 60 if name.startswith("sites") else of_small + 1000
        assert of_large <= most, f"{name}: {of_small} entries, {of_large} of the larger store"


def answered(read: Any, query: msgspec.Struct, collection: StoredCollection) -> bytes:
    """The JSON of an answer, so that all of it is read."""
    return msgspec.json.encode(read(collection, query), enc_hook=lambda value: value.item())


def values_of(read: Any, query: msgspec.Struct, collection: StoredCollection) -> object:
    """What a template gets."""
    return read(collection, query)


def test_no_page_reads_more_of_a_larger_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may read a sample of 1,000 pages or sites, and the smaller store has fewer."""
    small = filled(tmp_path / "small", sites=1200, pages=2)
    large = filled(tmp_path / "large", sites=3000, pages=4)
    queries = {
        "site": SitePageQuery(SITE), "pages": PagesPageQuery(SITE), "page": PagePageQuery(f"{SITE}/1"),
        "compare": ComparePageQuery(f"{SITE}/1"), "links": LinksPageQuery(f"{SITE}/1"),
    }  # fmt: skip
    asked = [(each.name, each.read, queries.get(each.name) or each.query()) for each in VIEWS]
    [sites] = [each.read for each in VIEWS if each.name == "sites"]
    asked += [("failing sites", sites, SitesPageQuery(only="failing"))]
    asked += [(f"sites by {order}", sites, SitesPageQuery(sort=order)) for order in SITE_ORDERS]
    for name, read, query in asked:
        values = partial(values_of, read, query)
        of_small, of_large = (entries_read(url, values, monkeypatch) for url in (small, large))
        assert of_large <= of_small + 20, f"{name}: {of_small} entries, {of_large} of the larger store"
