"""Start URLs that other programs push to a list in Redis, with the settings of scrapy-redis.

A spider has a list of start URLs if it has the attribute `redis_key`, like scrapy-redis's RedisSpider. The spider's
`make_request_from_data`, if any, makes the requests from an entry. Start URLs from the list are fetched before other
pages of their sites. An entry is done when its requests are in the store. If a worker dies before its entry is done,
another worker takes the entry.

Settings read: REDIS_ENCODING; REDIS_START_URLS_KEY, REDIS_START_URLS_AS_SET, REDIS_START_URLS_AS_ZSET;
MAX_IDLE_TIME_BEFORE_CLOSE, after which an idle spider closes (by default never).
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scrapy import FormRequest, Request, signals
from scrapy.exceptions import DontCloseSpider

from webfountain.crawl import engine
from webfountain.frontier.requests_by_url import put_first

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from webfountain.crawl.session import Session
    from webfountain.records import Link
    from webfountain.store.contract import FrontierStore
    from webfountain.store.shared_contract import Feed, FeedForm

__all__ = ["StartUrls"]

logger = logging.getLogger(__name__)
TAKEN_S: Final = 60.0
"""If an entry is not done this many seconds after a worker took it, another worker may take it."""
SHORTEST_S: Final = 0.2
LONGEST_S: Final = 2.0
"""Longest time between two reads of an empty list, in seconds."""


class StartUrls:
    """The Redis list of start URLs of one spider."""

    def __init__(self, feed: Feed, spider: Spider, settings: BaseSettings) -> None:
        self._feed = feed
        self._spider = spider
        self._encoding: str = getattr(spider, "redis_encoding", None) or settings.get("REDIS_ENCODING") or "utf-8"
        self._most = int(getattr(spider, "redis_batch_size", None) or settings.getint("CONCURRENT_REQUESTS"))
        idle = getattr(spider, "max_idle_time", None)
        self._idle_most = int(settings.getint("MAX_IDLE_TIME_BEFORE_CLOSE") if idle is None else idle)
        self._last = time.monotonic()

    @classmethod
    def of(cls, session: Session, store: FrontierStore) -> StartUrls | None:
        """Return the spider's list on the server of its store, or None if the spider has no list."""
        spider, settings = session.spider, session.crawler.settings
        key = getattr(spider, "redis_key", None)
        if key is None and settings.get("REDIS_START_URLS_KEY") is None:
            return None
        name = str(key or settings.get("REDIS_START_URLS_KEY")) % {"name": spider.name}
        form: FeedForm = "list"
        if settings.getbool("REDIS_START_URLS_AS_SET"):
            form = "set"
        elif settings.getbool("REDIS_START_URLS_AS_ZSET"):
            form = "zset"
        feed = store.feed(name, form)
        if feed is None:
            logger.warning(
                "%s has a redis_key, but its store is not on a server: nothing is read from %s", spider.name, name
            )
            return None
        if hasattr(spider, "fetch_data"):
            spider.fetch_data = _nothing  # scrapy-redis's own reader loses popped entries if it dies
        found = cls(feed, spider, settings)
        session.crawler.signals.connect(found._idle, signals.spider_idle, weak=False)
        logger.info("Start URLs of %s are read from the %s %r on the store's server", spider.name, form, name)
        return found

    async def move(self, session: Session, link_of: Callable[[Request], Link | None]) -> None:
        """Move the start URLs to the store until the crawl closes. `link_of` converts a request to a `Link` for the
        store, or returns None if the request is dropped.
        """
        frontier, wait_s = session.frontier, SHORTEST_S
        while True:
            await asyncio.sleep(wait_s)
            if engine.is_closing(session.crawler):
                return
            at = frontier.now()
            taken = await session.call(partial(self._feed.take, self._most, until=at + TAKEN_S, at=at))
            wait_s = SHORTEST_S if taken else min(1.5 * wait_s, LONGEST_S)
            requests = [request for entry in taken for request in self.requests(entry.data)]
            links = [link for request in requests if (link := link_of(request)) is not None]
            if taken:
                await session.on_store(partial(put_first, links=links, now=frontier.now))
                await session.call(partial(self._feed.done, taken))
                session.worker.stir()

    def requests(self, data: bytes) -> list[Request]:
        """Return the requests of an entry, or log that the entry is invalid."""
        self._last = time.monotonic()
        make = getattr(self._spider, "make_request_from_data", self._request_of)
        try:
            made = make(data)
        except Exception as error:  # pushed data may raise any error
            # Error and data may each be as long as the pushed entry.
            name = self._spider.name
            logger.error("An entry pushed to the start URLs of %s is invalid (%.200r): %.200r", name, error, data)
            return []
        found = [made] if isinstance(made, Request) else list(made or []) if isinstance(made, Iterable) else []
        return [each for each in found if isinstance(each, Request)]

    def _request_of(self, data: bytes) -> Request:
        """Return the request of an entry in the format of scrapy-redis: a URL, or JSON with url, meta, method and form
        fields.
        """
        text = data.decode(self._encoding)
        if not text.lstrip().startswith("{"):
            return Request(text.strip(), dont_filter=True)
        reported = json.loads(text)
        url, method, meta = reported.pop("url"), reported.pop("method", "GET").upper(), reported.pop("meta", {})
        return FormRequest(url, dont_filter=True, method=method, formdata=reported, meta=meta)

    def _idle(self) -> None:
        """Keep the idle spider open until MAX_IDLE_TIME_BEFORE_CLOSE has passed."""
        if not self._idle_most or time.monotonic() - self._last < self._idle_most:
            raise DontCloseSpider


def _nothing(*_: Any) -> list[bytes]:
    return []
