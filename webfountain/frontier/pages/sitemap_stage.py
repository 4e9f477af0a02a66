"""Sitemaps in a batch: their URLs are discovered, and their changed pages become due.

Place in the walk: a stage of the store worker, after the pages of a batch are settled.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from webfountain.frontier.batch import SitemapRead
from webfountain.frontier.worker.item_by_item import act_on
from webfountain.frontier.worker.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.frontier.batch import Batch, BatchResult, NamedSitemap
    from webfountain.frontier.pages.sitemap_reader import SitemapParser
    from webfountain.frontier.worker.discovery import Discovery
    from webfountain.store.contract import FrontierStore

__all__ = ["SitemapStage"]


class SitemapStage(Stage):
    """Processes the sitemaps of a batch."""

    def __init__(self, shelf: SitemapParser, store: FrontierStore, discovery: Discovery) -> None:
        self._shelf = shelf
        self._store = store
        self._discovery = discovery

    def after_settle(self, batch: Batch, result: BatchResult) -> None:
        for named in batch.sitemaps:
            act_on([named], partial(self._read, result), result)

    def _read(self, result: BatchResult, sitemaps: Sequence[NamedSitemap]) -> None:
        for named in sitemaps:
            site, at = named.site, result.batch.at
            read = self._shelf.read(named.fetched, site=site, at=at)
            result.counts.update(read.counts)
            self._discovery.discover(read.links, result)
            if stale := self._older(site, read.modified):
                self._store.queues.advance(site, stale, due=at, at=at)
                result.counts["sitemap/made_due"] += len(stale)
                result.new_pages.add(site)
            result.sitemaps.append(SitemapRead(site, read.children))

    def _older(self, site: str, modified: Mapping[bytes, float]) -> list[bytes]:
        """Return the pages whose copy was fetched before the time that the sitemap gives for their last change."""
        records = zip(modified.items(), self._store.pages.get_many(site, list(modified)), strict=True)
        return [
            key
            for (key, at), record in records
            if record is not None and record.last_crawled is not None and record.last_crawled < at
        ]
