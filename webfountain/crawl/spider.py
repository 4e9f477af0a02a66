"""The fountain spider: it crawls a collection without a line of code, and yields one item per new, changed or gone
page.

The frontier orders the fetches, so the spider yields no requests. Feeds and pipelines work as with any spider::

    scrapy crawl fountain -a collection=policies/demo.toml -O pages.jsonl
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import Spider

from webfountain.crawl.flight import flight_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from webfountain.crawl.flight import Flight
    from webfountain.frontier.visit import Visit

__all__ = ["FountainSpider", "Items"]

Items = list[dict[str, Any]]


class FountainSpider(Spider):
    """The spider of a collection. The argument `collection` is the policy file, by default the setting
    WEBFOUNTAIN_COLLECTION.
    """

    name = "fountain"
    is_fountain: ClassVar[bool] = True

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Copy the spider argument `collection` to the setting WEBFOUNTAIN_COLLECTION."""
        collection = kwargs.get("collection")
        if collection is not None:
            crawler.settings.set("WEBFOUNTAIN_COLLECTION", collection, priority="cmdline")
        spider: Self = super().from_crawler(crawler, *args, **kwargs)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Yield nothing, because the frontier contains the seeds."""
        return
        yield

    def parse(self, response: Response) -> Items | Awaitable[Items]:
        """Return the item of a new, changed or gone page, or None. If the comparison with the stored copy may take
        long, it runs in another thread.
        """
        flight = None if response.request is None else flight_of(response.request)
        if flight is None or flight.fetched is None:
            return []
        visit = flight.landing.examine_at_once(flight)
        return self._later(flight) if visit is None else _items(visit)

    @staticmethod
    async def _later(flight: Flight) -> Items:
        visit = await flight.landing.examine_apart(flight)
        return [] if visit is None else _items(visit)


def _items(visit: Visit) -> Items:
    item = visit.item()
    return [] if item is None else [item]
