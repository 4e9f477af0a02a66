"""A fetched sitemap becomes links to discover, pages to look at again, and sitemaps to fetch.

Place in the walk: beside the pages. URLs of a sitemap pass the same judge as links; they count as one hop from
the seeds. A lastmod is believed for pages of the site that named it only, and not when it lies in the future: that
page would be due for ever. What stands in the file is read by `formats.sitemap`; nothing here asks the store.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from webfountain import urls
from webfountain.formats.sitemap import SitemapFile, read_sitemap
from webfountain.records import Link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webfountain.formats.document import ReadError
    from webfountain.policy.judge import Judge
    from webfountain.records import Fetched

__all__ = ["SITEMAP_DEPTH", "SitemapReading", "SitemapShelf"]

SITEMAP_DEPTH: Final = 1
"""Hops from a seed: the site vouches for its pages as a seed's links do."""


class SitemapReading(msgspec.Struct, frozen=True):
    """What one sitemap says.

    links : never mind whether known, judged, each once. modified : key on the site that named it -> UTC seconds
    of the page's last change. children : canonical URLs of further sitemaps. counts : by stat name.
    """

    links: list[Link]
    modified: dict[bytes, float]
    children: list[str]
    counts: Mapping[str, int]


class SitemapShelf:
    """Reads sitemaps for one collection; `believe_dates` False leaves the dates of change aside.

    `read_file` reads a body, or says in a word why it cannot be read.
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

    def read(self, fetched: Fetched, *, site: str, at: float) -> SitemapReading:
        """Understand the end of a sitemap fetch, whatever it was; an unanswered one says nothing.

        `site` named it: its own pages' dates are believed, also where the sitemap lies elsewhere.
        """
        counts: Counter[str] = Counter()
        if fetched.error is not None or fetched.status is None or not 200 <= fetched.status < 300:
            counts["sitemap/failed"] += 1
            return SitemapReading([], {}, [], counts)
        found = self._read_file(fetched.body)
        if isinstance(found, str):
            counts[f"sitemap/error/{found}"] += 1
            return SitemapReading([], {}, [], counts)
        if found.error is not None:
            counts[f"sitemap/error/{found.error}"] += 1
        return self._judged(found, fetched, site, at, counts)

    def _judged(
        self, found: SitemapFile, fetched: Fetched, own: str, at: float, counts: Counter[str]
    ) -> SitemapReading:
        base = fetched.fetch.url
        times = _joined(base, found.pages, counts)
        counts["sitemap/urls"] += len(times)
        verdicts = self._judge.judge(list(times), self._judge.sitemap(own, depth=SITEMAP_DEPTH))
        links = []
        for url, verdict in zip(times, verdicts, strict=True):
            if verdict.reason is None:
                links.append(
                    Link(
                        url,
                        urls.site_of(url),
                        urls.fingerprint(url),
                        SITEMAP_DEPTH,
                        verdict.policy,
                        importance=self._judge.importance(verdict),
                        trust=verdict.trust,
                    )
                )
            else:
                counts[f"judge/{verdict.reason}"] += 1
        modified = {
            link.key: time
            for link in links
            if self._believe_dates and link.site == own and (time := times[link.url]) is not None and time <= at
        }
        children = _joined(base, ((url, None) for url in found.sitemaps), counts)
        return SitemapReading(links, modified, list(children), counts)


def _joined(base: str, entries: Iterable[tuple[str, float | None]], counts: Counter[str]) -> dict[str, float | None]:
    """Canonical URL -> time, each URL once, the last time wins; what is no URL is counted."""
    joined: dict[str, float | None] = {}
    for written, time in entries:
        url = urls.join(base, written)
        if url is None:
            counts["sitemap/error/bad_url"] += 1
        else:
            joined[url] = time
    return joined
