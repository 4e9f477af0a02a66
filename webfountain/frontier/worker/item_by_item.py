"""Handle items that raise an unexpected error: repeat the step for each item alone, without the faulty one.

Place in the walk: around the settling of leases, the discovery of offered requests and the reading of sitemaps.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from webfountain.errors import WebfountainError
from webfountain.frontier.batch import LeaseEnd, NamedSitemap
from webfountain.records import FetchResult, Link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webfountain.frontier.batch import BatchResult

__all__ = ["act_on"]

logger = logging.getLogger(__name__)
_T = TypeVar("_T")


def act_on(
    items: Sequence[_T],
    act: Callable[[Sequence[_T]], object],
    result: BatchResult,
    instead: Callable[[_T], object] = lambda _: None,
) -> None:
    """Process all items at once. After an unexpected error, process each item alone, and call `instead` for the faulty
    ones.

    Errors of the store and the disk (`WebfountainError`) are not caused by an item, and are raised.
    """
    try:
        act(items)
    except WebfountainError:
        raise
    except Exception as error:
        if len(items) > 1:
            for item in items:
                act_on([item], act, result, instead)
            return
        logger.error("An item could not be processed (%r): %s", error, _url_of(items[0]), extra={"event": "ant/broken"})
        result.counts["ant/broken"] += 1
        instead(items[0])


def _url_of(item: object) -> str:
    """Return the URL of an item of a batch, for the log."""
    match item:
        case LeaseEnd(lease=lease):
            return lease.record.url
        case NamedSitemap(fetched=fetched) | (FetchResult() as fetched):
            return fetched.fetch.url
        case Link(url=url):
            return url
    return ""
