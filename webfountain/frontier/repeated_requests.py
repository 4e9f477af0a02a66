"""Another project's requests that are made once more, or first of all.

Place in the walk: beside it, in the worker thread. Each function gets the store (`StoreWorker.on_store`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webfountain.frontier.requests_by_url import failed_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.records import Link
    from webfountain.store.contract import FrontierStore

__all__ = ["made_before", "make_again", "make_failed_again", "put_first"]


def made_before(store: FrontierStore, links: Sequence[Link]) -> list[Link]:
    """Return those of the known requests that will not be made again."""
    return [
        link
        for link in links
        if (record := store.pages.get(link.site, link.key)) is None or record.state != "never-crawled"
    ]


def make_again(store: FrontierStore, links: Sequence[tuple[Link, float]], *, now: Callable[[], float]) -> list[Link]:
    """Put known requests first if last made at the given time or before. Return them."""
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
    """Put all requests first that failed when last made. Return their number."""
    return store.queues.immediate(list(failed_requests(store.pages)), at=now())


def put_first(store: FrontierStore, links: Sequence[Link], *, now: Callable[[], float]) -> None:
    """Put requests on the immediate queues of their sites."""
    store.queues.immediate(links, at=now())
