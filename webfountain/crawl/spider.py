"""The fountain spider: crawls a collection without a line of code, one item per new, changed or gone page.

Place in the walk: where a landed fetch becomes a verdict. The frontier orders the fetches, so there are no start
requests and no requests come from here; links go to the frontier with the verdict, not through Scrapy. Feeds and
pipelines work as with any spider::

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
    from webfountain.frontier.pages.examiner import Visit

__all__ = ["FountainSpider"]

Items = list[dict[str, Any]]


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

        What could hold the loop is done beside it: a changed page is compared with its old copy on disk, a large or
        strange one is read by a process that can be ended.
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
