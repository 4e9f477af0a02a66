"""Find the keys of a URL in the store.

In a collection, the key of a page is the fingerprint of its URL. The key of a request from a Scrapy project's spider is
Scrapy's fingerprint, which depends also on the method and the body. A request with `dont_filter` has a unique key. One
URL can have many keys, which cannot be computed from the URL.
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
"""Error word of a request that a retry or redirect middleware replaced with another request."""
_TRY_AGAIN: Final = frozenset({408, 425, 429, *range(500, 600)})
_SAMPLE: Final = 20  # one is too few: `webfountain now` may have added a URL without a request
"""How many of a site's records are read to find out whether a Scrapy project's spider made them."""


def holds_requests(store: PageRecords, site: str) -> bool:
    """Return whether the records of a site are requests of a Scrapy project's spider."""
    first = itertools.islice(store.records(site=site), _SAMPLE)
    return any(record.request is not None for _, record in first)


def keys_of_url(store: PageRecords, url: str) -> Sequence[bytes]:
    """Return the keys of a canonical URL: the URL's own key, or the keys of all known requests for the URL."""
    site, own = site_of(url), fingerprint(url)
    if not holds_requests(store, site):
        return [own]
    return requests_of(store, url) or [own]


def requests_of(store: PageRecords, url: str) -> list[bytes]:
    """Return the keys of all requests for a canonical URL, by reading every record of the URL's site."""
    return [key for _, key, record in store.keyed(site=site_of(url)) if record.url == url]


def failed_requests(store: PageRecords) -> Iterator[Link]:
    """Yield every request whose last attempt had no answer, or an answer such as 503 that calls for another attempt.

    A request that was replaced by a retry or a redirect does not count as failed. The function reads every record of
    the store.
    """
    for site, key, record in store.keyed():
        if record.request is None or record.error == REPLACED:
            continue
        if record.state == "failed" or record.status in _TRY_AGAIN:
            yield Link(url=record.url, site=site, key=key)


def made_before(store: FrontierStore, links: Sequence[Link]) -> list[Link]:
    """Return the links for which the crawl will make no request, because the request was made before or is not in the
    store.
    """
    return [
        link
        for link in links
        if (record := store.pages.get(link.site, link.key)) is None or record.state != "never-crawled"
    ]


def make_again(store: FrontierStore, links: Sequence[tuple[Link, float]], *, now: Callable[[], float]) -> list[Link]:
    """Put already attempted requests on the immediate queues, and return their links. A request is left out if its last
    attempt is later than the time given with its link.
    """
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
    """Move all failed requests to the front of the queues, and return their number."""
    return store.queues.immediate(list(failed_requests(store.pages)), at=now())


def put_first(store: FrontierStore, links: Sequence[Link], *, now: Callable[[], float]) -> None:
    """Put requests on the immediate queues of their sites."""
    store.queues.immediate(links, at=now())
