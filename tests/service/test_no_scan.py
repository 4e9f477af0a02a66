"""No view scans: what a read takes of the disk depends on what it answers, not on what the store holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from webfountain.api.opening import open_stored
from webfountain.records import Link
from webfountain.service import answers
from webfountain.service.table import OPERATIONS
from webfountain.store.embedded.disk import Disk
from webfountain.store.opening import open_store
from webfountain.store.site_orders import SITE_ORDERS
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from webfountain.service.operation import Operation

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


UNBOUND = ("copy", "versions", "compare", "texts", "explain", "search")
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


def entries_read(url: str, operation: Operation, query: msgspec.Struct, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many entries of the disk an operation went through."""
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
        assert operation.read is not None
        assert msgspec.json.encode(operation.read(collection, query), enc_hook=lambda value: value.item())
    finally:
        monkeypatch.setattr(Disk, "scan", scan)
        collection.close()
    return read


def test_a_larger_store_is_read_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = filled(tmp_path / "small", sites=60, pages=60)
    large = filled(tmp_path / "large", sites=300, pages=200)
    reads = [each for each in OPERATIONS if each.read is not None and each.name not in UNBOUND]
    assert {"status", "sites", "pages", "page", "history"} <= {each.name for each in reads}
    asked = [(each.name, each, QUERIES.get(each.name) or each.query()) for each in reads]
    [sites] = [each for each in reads if each.name == "sites"]
    asked += [(name, sites, query) for name, query in QUERIES.items() if name.startswith("sites by")]
    for name, operation, query in asked:
        of_small, of_large = (entries_read(url, operation, query, monkeypatch) for url in (small, large))
        most = 60 if name.startswith("sites") else of_small + 1000
        assert of_large <= most, f"{name}: {of_small} entries, {of_large} of the larger store"
