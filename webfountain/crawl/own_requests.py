"""Our own requests for the engine: pages of a collection, and robots.txt and sitemaps of every crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scrapy import Request

from webfountain.crawl.flight import depart

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.crawl.landings import Landings
    from webfountain.records import Fetch

__all__ = ["no_output", "own_request"]

_META: Final = {
    "handle_httpstatus_all": True,
    "dont_redirect": True,
    "dont_retry": True,
    "dont_cache": True,
    "dont_obey_robotstxt": True,
    "verbatim_url": True,  # the canonical form is the key in the store, so it is requested unchanged
    "allow_offsite": True,
}


def no_output(_: object) -> None:
    """Do nothing. It is the callback of robots.txt and sitemaps, and the errback of our fetches, which were processed
    when they landed.
    """


def own_request(fetch: Fetch, landings: Landings, callback: Callable[..., Any] = no_output) -> Request:
    """Return the request of a fetch, and link it to its flight."""
    request = Request(fetch.url, callback=callback, errback=no_output, meta=dict(_META))
    depart(request, landings.flight(fetch, own=True))
    return request
