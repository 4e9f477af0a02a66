"""Log lines for a crawl of millions of pages: ordinary events are counted, not logged.

Scrapy formats a line for every answer and every item, even if the log level drops it (0.03 ms a page).
`webfountain.settings` sets this class as LOG_FORMATTER. With LOG_LEVEL=DEBUG the lines are logged.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.logformatter import LogFormatter

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

__all__ = ["FountainLogFormatter"]


class FountainLogFormatter(LogFormatter):
    """The log formatter. Settings read: LOG_LEVEL."""

    def __init__(self, *, every_page: bool) -> None:
        self._every_page = every_page

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        level = logging.getLevelName(str(crawler.settings.get("LOG_LEVEL")).upper())
        return cls(every_page=level == logging.DEBUG)

    def crawled(self, *args: Any, **kwargs: Any) -> Any:
        """Return a line for each answer, at DEBUG only."""
        return super().crawled(*args, **kwargs) if self._every_page else None

    def scraped(self, *args: Any, **kwargs: Any) -> Any:
        """Return a line for each item, at DEBUG only."""
        return super().scraped(*args, **kwargs) if self._every_page else None
