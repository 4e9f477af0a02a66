"""Drop items that are neither new nor changed.

WEBFOUNTAIN_ITEMS = "changed" switches this pipeline on, before the project's own pipelines. For each request, a file in
the store's folder contains digests of the items that the last response gave. If a request gives the same item as last
time, the item is dropped, and counted in addon/items_unchanged. WEBFOUNTAIN_ITEM_FIELDS_IGNORED names fields that
change with each visit, such as the time of scraping. New digests are written after the items are in the feeds, and
before the page is settled. After a kill, an item may come twice, but no item is lost.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from typing import TYPE_CHECKING, Any, Final

from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem, NotConfigured

from webfountain.crawl.flight import CURRENT
from webfountain.crawl.session import Session
from webfountain.errors import InputError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler

    from webfountain.metrics import Metrics

__all__ = ["ItemDigests", "NewItemsPipeline"]

FILE: Final = "items.sqlite"
DIGEST_BYTES: Final = 12


class ItemDigests:
    """The digests of the items that each request gave when it was last made."""

    def __init__(self, folder: Path | None) -> None:
        """Open the file. Raise InputError for a store without a folder, and StoreError if the file cannot be opened."""
        if folder is None:
            raise InputError('setting WEBFOUNTAIN_ITEMS: "changed" needs a store in a folder, rocksdb://FOLDER')
        self._file = folder / FILE
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file.touch(mode=0o600)
            self._database = sqlite3.connect(self._file, check_same_thread=False, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS items (page BLOB PRIMARY KEY, digests BLOB) WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self._file}: cannot be opened: {error}") from None
        self._now: dict[bytes, set[bytes]] = {}

    def is_known(self, page: bytes, digest: bytes) -> bool:
        """Return whether the last response to a request gave an item with this digest, and remember the digest."""
        self._now.setdefault(page, set()).add(digest)
        found = self._database.execute("SELECT digests FROM items WHERE page = ?", (page,)).fetchone()
        if found is None:
            return False
        held: bytes = found[0]
        return any(held[at : at + DIGEST_BYTES] == digest for at in range(0, len(held), DIGEST_BYTES))

    def write(self, pages: Iterable[bytes]) -> None:
        """Write the digests of the requests with the fingerprints `pages` to the file. Call this method after the items
        are in the feeds. Raises StoreError.
        """
        rows = [(page, b"".join(sorted(self._now.pop(page)))) for page in pages if page in self._now]
        if not rows:
            return
        try:
            with self._database:
                self._database.execute("BEGIN")
                self._database.executemany("INSERT OR REPLACE INTO items VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            raise StoreError(f"{self._file}: cannot be written: {error}") from None

    def close(self) -> None:
        self._database.close()


class NewItemsPipeline:
    """The pipeline that drops items that are neither new nor changed. Settings read: WEBFOUNTAIN_ITEMS,
    WEBFOUNTAIN_ITEM_FIELDS_IGNORED.
    """

    def __init__(self, ignored: Iterable[str], metrics: Metrics) -> None:
        self.digests: ItemDigests | None = None
        """The stored digests; None until the crawl is open."""
        self._ignored = frozenset(ignored)
        self._metrics = metrics

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        session = Session.of(crawler)
        if session.config.items != "changed":
            raise NotConfigured
        ignored = (session.config.item_fields_ignored or "").split(",")
        return cls([name.strip() for name in ignored], session.metrics)

    def process_item(self, item: Any) -> Any:
        """Return an item, or raise DropItem if the last response to the same request gave an equal item."""
        flight = CURRENT.get()
        if flight is None or flight.page is None or self.digests is None:
            return item
        if self.digests.is_known(flight.page, self.digest_of(item)):
            self._metrics.inc("addon/items_unchanged")
            raise DropItem("it equals the item of the last scrape", log_level="DEBUG")
        return item

    def digest_of(self, item: Any) -> bytes:
        """Return the digest of an item's fields, except ignored fields."""
        fields = {name: value for name, value in ItemAdapter(item).asdict().items() if name not in self._ignored}
        text = json.dumps(fields, sort_keys=True, default=_spelled)
        return hashlib.sha1(text.encode(), usedforsecurity=False).digest()[:DIGEST_BYTES]


def _spelled(value: Any) -> str:
    return repr(sorted(value, key=repr)) if isinstance(value, set | frozenset) else repr(value)
