"""Drop items that are neither new nor changed.

WEBFOUNTAIN_ITEMS = "changed" turns it on. Place in the walk: items pass this pipeline before the project's own
pipelines. For each request (by its fingerprint), the items that it yielded when it was last made are remembered as a
set of digests. An item in this set is dropped (logged at DEBUG, counted in addon/items_unchanged).
WEBFOUNTAIN_ITEM_FIELDS_IGNORED names fields that change with each visit, such as the time of scraping. The digests
(`item_digests`) are stored in the store's folder.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem, NotConfigured

from webfountain.crawl.flight import CURRENT
from webfountain.crawl.item_digests import DIGEST_BYTES
from webfountain.crawl.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from scrapy.crawler import Crawler

    from webfountain.metrics import Metrics

__all__ = ["NewItemsPipeline"]


class NewItemsPipeline:
    """The pipeline that drops known items. Settings read: WEBFOUNTAIN_ITEMS, WEBFOUNTAIN_ITEM_FIELDS_IGNORED."""

    def __init__(self, session: Session, ignored: Iterable[str], metrics: Metrics) -> None:
        self._session = session
        self._ignored = frozenset(ignored)
        self._metrics = metrics

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        session = Session.of(crawler)
        if session.config.items != "changed":
            raise NotConfigured
        ignored = (session.config.item_fields_ignored or "").split(",")
        return cls(session, [name.strip() for name in ignored], session.metrics)

    def process_item(self, item: Any) -> Any:
        """Return the item. Raise DropItem if its page yielded the same item before."""
        flight = CURRENT.get()
        digests = self._session.item_digests
        if flight is None or flight.page is None or digests is None:
            return item
        if digests.is_known(flight.page, self.digest_of(item)):
            self._metrics.inc("addon/items_unchanged")
            raise DropItem("it equals the item of the last scrape", log_level="DEBUG")
        return item

    def digest_of(self, item: Any) -> bytes:
        """Return the digest of an item: its fields in any order, without the ignored ones."""
        fields = {name: value for name, value in ItemAdapter(item).asdict().items() if name not in self._ignored}
        text = json.dumps(fields, sort_keys=True, default=_spelled)
        return hashlib.sha1(text.encode(), usedforsecurity=False).digest()[:DIGEST_BYTES]


def _spelled(value: Any) -> str:
    return repr(sorted(value, key=repr)) if isinstance(value, set | frozenset) else repr(value)
