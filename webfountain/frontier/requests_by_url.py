"""Find the keys of a URL in the store.

A page of a collection has the key of its URL. A request of another project's spider has Scrapy's fingerprint as key,
which also covers method and body. A request with `dont_filter` has a unique key. Therefore one URL may have many keys
that cannot be computed from the URL. To find a URL among a project's requests, all records of the URL's site are read.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from webfountain.records import Link
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webfountain.store.contract import FrontierStore, PageRecords

__all__ = [
    "REPLACED",
    "failed_requests",
    "holds_requests",
    "keys_of_url",
    "made_before",
    "make_again",
    "make_failed_again",
    "put_first",
    "requests_of",
]

REPLACED: Final = "replaced"
"""Error of a request that a middleware replaced by another."""
_TRY_AGAIN: Final = frozenset({408, 425, 429, *range(500, 600)})
_SAMPLE: Final = 20
"""Number of a site's records that are read to find out the kind of store. A single record may be a URL without a
request, which `now` added.
"""


def holds_requests(store: PageRecords, site: str) -> bool:
    """Return whether the records of a site are another project's requests."""
    first = itertools.islice(store.records(site=site), _SAMPLE)
    return any(record.request is not None for _, record in first)


def keys_of_url(store: PageRecords, url: str) -> Sequence[bytes]:
    """Return the keys of a canonical URL: the URL's own key, or the keys of all known requests for the URL."""
    site, own = site_of(url), fingerprint(url)
    if not holds_requests(store, site):
        return [own]
    return requests_of(store, url) or [own]


def requests_of(store: PageRecords, url: str) -> list[bytes]:
    """Return the keys of all requests for a canonical URL, by reading every record of the site."""
    return [key for _, key, record in store.keyed(site=site_of(url)) if record.url == url]


def failed_requests(store: PageRecords) -> Iterator[Link]:
    """Yield every request that failed when last made: there was no answer, or an answer that requires another try.

    A request that a retry or a redirect replaced did not fail. Every record of the store is read.
    """
    for site, key, record in store.keyed():
        if record.request is None or record.error == REPLACED:
            continue
        if record.state == "failed" or record.status in _TRY_AGAIN:
            yield Link(url=record.url, site=site, key=key)


def made_before(store: FrontierStore, links: Sequence[Link]) -> list[Link]:
    """Return the requests among `links` that are known and will not be made again."""
    return [
        link
        for link in links
        if (record := store.pages.get(link.site, link.key)) is None or record.state != "never-crawled"
    ]


def make_again(store: FrontierStore, links: Sequence[tuple[Link, float]], *, now: Callable[[], float]) -> list[Link]:
    """Put each known request first that was last made at or before a given time. Return these requests."""
    found = [
        link
        for link, latest in links
        if (record := store.pages.get(link.site, link.key)) is not None
        and record.last_crawled is not None
        and record.last_crawled <= latest
    ]
    put_first(store, found, now=now)
    return found


def make_failed_again(store: FrontierStore, *, now: Callable[[], float]) -> int:
    """Put first all requests that failed when they were last made. Return their number."""
    return store.queues.immediate(list(failed_requests(store.pages)), at=now())


def put_first(store: FrontierStore, links: Sequence[Link], *, now: Callable[[], float]) -> None:
    """Put requests on the immediate queues of their sites."""
    store.queues.immediate(links, at=now())
