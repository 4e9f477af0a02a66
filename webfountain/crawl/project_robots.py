"""Count the robots.txt files of a project's crawl as Scrapy's own middleware does, and keep them for its downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector

    from webfountain.records import FetchResult

__all__ = ["ProjectRobots"]


class ProjectRobots:
    """Counter of the fetched robots.txt files. It keeps them in `bodies`, by host and port."""

    def __init__(self, stats: StatsCollector, bodies: dict[str, bytes]) -> None:
        self._stats = stats
        self._bodies = bodies

    def landed(self, fetched: FetchResult) -> None:
        """Count a fetch if it is a robots.txt."""
        if fetched.fetch.kind != "robots":
            return
        stats = self._stats
        stats.inc_value("robotstxt/request_count")
        if fetched.status is None:
            stats.inc_value(f"robotstxt/exception_count/{fetched.error}")
        else:
            stats.inc_value("robotstxt/response_count")
            stats.inc_value(f"robotstxt/response_status_count/{fetched.status}")
            self._share(fetched, fetched.status)

    def _share(self, fetched: FetchResult, status: int) -> None:
        """Keep a file that has rules, so that downloads beside the frontier (files, images) need not fetch it again."""
        parts = urlsplit(fetched.fetch.url)
        if parts.path == "/robots.txt" and not 300 <= status < 400:
            if status == 200:
                self._bodies[parts.netloc] = fetched.body
            elif status < 500:
                self._bodies[parts.netloc] = b""
