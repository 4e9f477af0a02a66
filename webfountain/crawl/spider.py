"""The fountain spider: crawls a collection without a line of code, one item per new, changed or gone page.

Place in the walk: where a landed fetch becomes a verdict. The frontier orders the fetches, so there are no start
requests and no requests come from here; links go to the frontier with the verdict, not through Scrapy. Feeds and
pipelines work as with any spider::

    scrapy crawl fountain -a collection=policies/demo.toml -O pages.jsonl
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final

from scrapy import Spider

from webfountain.crawl.flight import flight_of
from webfountain.crawl.scheduler import FountainScheduler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from webfountain.crawl.flight import Flight

__all__ = ["FountainSpider"]

Items = list[dict[str, Any]]
LARGE_BYTES: Final = 262_144


class FountainSpider(Spider):
    """Argument: `collection`, the policy file; without it the setting WEBFOUNTAIN_COLLECTION."""

    name = "fountain"
    is_fountain: ClassVar[bool] = True

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Hand the argument to the settings, where all of us read it."""
        collection = kwargs.get("collection")
        if collection is not None:
            crawler.settings.set("WEBFOUNTAIN_COLLECTION", collection, priority="cmdline")
        spider: Self = super().from_crawler(crawler, *args, **kwargs)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Nothing: the frontier holds the seeds."""
        return
        yield

    def parse(self, response: Response) -> Items | Awaitable[Items]:
        """The item of a page, if it is worth one.

        What could hold the loop goes to a thread: a changed page, which is compared with its old copy on disk, and
        a large one, whose parsing leaves the interpreter to others.
        """
        scheduler = self.crawler.engine.scheduler
        flight = None if response.request is None else flight_of(response.request)
        if flight is None or flight.fetched is None or not isinstance(scheduler, FountainScheduler):
            return []
        if len(flight.fetched.body) > LARGE_BYTES or scheduler.frontier.needs_old_copy(flight.fetched):
            return self._in_thread(scheduler, flight)
        return _items(scheduler, flight)

    @staticmethod
    async def _in_thread(scheduler: FountainScheduler, flight: Flight) -> Items:
        return await asyncio.to_thread(_items, scheduler, flight)


def _items(scheduler: FountainScheduler, flight: Flight) -> Items:
    item = scheduler.examine(flight).item()
    return [] if item is None else [item]
