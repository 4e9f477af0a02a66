"""Read fetched sitemaps, to find links, pages to check again, and further sitemaps.

The store worker reads sitemaps after the pages of a batch are settled. The judge treats URLs in a sitemap like links
that are one hop from the seeds. The date of a page (lastmod) is used only if the page's own site lists the sitemap and
the date is not in the future.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain import urls
from webfountain.formats.sitemap import SitemapFile, read_sitemap
from webfountain.frontier.batch import ReadSitemap
from webfountain.frontier.stage import Stage
from webfountain.frontier.worker.settlement import act_on
from webfountain.policy.scope import SitemapReach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webfountain.formats.document import ReadError
    from webfountain.frontier.batch import Batch, BatchResult, NamedSitemap
    from webfountain.frontier.worker.settlement import Discovery
    from webfountain.policy.judge import Judge
    from webfountain.records import FetchResult, Link
    from webfountain.store.contract import FrontierStore

__all__ = ["SITEMAP_DEPTH", "SitemapContent", "SitemapParser", "SitemapStage", "every_later"]

SITEMAP_DEPTH: Final = 1
"""Depth that URLs from a sitemap get, in hops from a seed."""


class SitemapContent(msgspec.Struct, frozen=True):
    """The content of one sitemap."""

    links: list[Link]
    """The links that the judge accepts, without duplicates."""
    modified: dict[bytes, float]
    """Time of each page's last change, in UTC seconds by page key, for pages on the site that lists the sitemap."""
    children: list[str]
    """Canonical URLs of further sitemaps."""
    counts: Mapping[str, int]
    """Numbers of URLs, refused links and errors, by name of the statistic."""


class SitemapParser:
    """Parses the sitemaps of one collection. If `believe_dates` is False, dates are ignored.

    `read_file` parses a body, or returns an error word.
    """

    __slots__ = ("_believe_dates", "_judge", "_read_file")

    def __init__(
        self,
        judge: Judge,
        *,
        believe_dates: bool = True,
        read_file: Callable[[bytes], SitemapFile | ReadError] = read_sitemap,
    ) -> None:
        self._judge = judge
        self._believe_dates = believe_dates
        self._read_file = read_file

    def read(self, fetched: FetchResult, *, site: str, at: float) -> SitemapContent:
        """Return the content of a fetched sitemap. If the fetch failed, the content is empty.

        `site` is the site that lists the sitemap. Dates are used only for pages of `site`, even if the sitemap is on
        another host.
        """
        counts: Counter[str] = Counter()
        if fetched.error is not None or fetched.status is None or not 200 <= fetched.status < 300:
            counts["sitemap/failed"] += 1
            return SitemapContent([], {}, [], counts)
        found = self._read_file(fetched.body) if fetched.reading is None else fetched.reading
        if isinstance(found, str):
            counts[f"sitemap/error/{found}"] += 1
            return SitemapContent([], {}, [], counts)
        if found.error is not None:
            counts[f"sitemap/error/{found.error}"] += 1
        return self._judged(found, fetched, site, at, counts)

    def _judged(
        self, found: SitemapFile, fetched: FetchResult, own: str, at: float, counts: Counter[str]
    ) -> SitemapContent:
        base = fetched.fetch.url
        named = _joined(base, found.pages, counts)
        counts["sitemap/urls"] += len(named)
        reach = SitemapReach(urls.site_of(base), named_by=own)
        times = {url: time for url, time in named.items() if reach.contains(urls.site_of(url))}
        counts["sitemap/foreign"] += len(named) - len(times)
        links, refused = self._judge.links(list(times), self._judge.sitemap(own, depth=SITEMAP_DEPTH))
        counts.update(f"judge/{reason}" for _, reason in refused)
        modified = {
            link.key: time
            for link in links
            if self._believe_dates and link.site == own and (time := times[link.url]) is not None and time <= at
        }
        children = _joined(base, ((url, None) for url in found.sitemaps), counts)
        return SitemapContent(links, modified, list(children), counts)


class SitemapStage(Stage):
    """The stage that reads the sitemaps of a batch."""

    def __init__(
        self,
        shelf: SitemapParser,
        store: FrontierStore,
        discovery: Discovery,
        *,
        due: Callable[[str, Mapping[bytes, bool]], list[bytes]],
    ) -> None:
        """`due` returns those pages of a site that must be made due. The second argument of `due` says for each page
        whether the date in the sitemap is later than our copy.
        """
        self._shelf = shelf
        self._due = due
        self._store = store
        self._discovery = discovery

    def discover_more(self, batch: Batch, result: BatchResult) -> None:
        for named in batch.sitemaps:
            act_on([named], partial(self._read, result), result, partial(self._give_up, result))

    def _give_up(self, result: BatchResult, named: NamedSitemap) -> None:
        """Report that reading a sitemap has ended, because its site waits for the end."""
        result.sitemaps.append(ReadSitemap(named.site, named.fetched.fetch.url, []))

    def _read(self, result: BatchResult, sitemaps: Sequence[NamedSitemap]) -> None:
        for named in sitemaps:
            site, at = named.site, result.batch.at
            read = self._shelf.read(named.fetched, site=site, at=at)
            result.counts.update(read.counts)
            self._discovery.discover(read.links, result)
            later = self._later(site, read.modified)
            if stale := self._due(site, later):
                self._store.queues.advance(site, stale, due=at, at=at)
            if dated := sum(later.values()):
                result.counts["sitemap/made_due"] += dated
                result.new_pages.add(site)
            result.sitemaps.append(ReadSitemap(site, named.fetched.fetch.url, read.children))

    def _later(self, site: str, modified: Mapping[bytes, float]) -> dict[bytes, bool]:
        """Return, for each crawled page, whether its date in the sitemap is later than its last fetch."""
        records = zip(modified.items(), self._store.pages.get_many(site, list(modified)), strict=True)
        return {
            key: record.last_crawled < at
            for (key, at), record in records
            if record is not None and record.last_crawled is not None
        }


def every_later(site: str, later: Mapping[bytes, bool]) -> list[bytes]:
    """Return all pages whose date in the sitemap is later than our copy, because all of them are due in a crawl without
    a budget.
    """
    del site
    return [key for key, is_later in later.items() if is_later]


def _joined(base: str, entries: Iterable[tuple[str, float | None]], counts: Counter[str]) -> dict[str, float | None]:
    """Return canonical URLs with their dates, and count invalid URLs."""
    joined: dict[str, float | None] = {}
    for written, time in entries:
        url = urls.join(base, written)
        if url is None:
            counts["sitemap/error/bad_url"] += 1
        else:
            joined[url] = time
    return joined
