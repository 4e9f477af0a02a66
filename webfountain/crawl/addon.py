"""The add-on that schedules the requests of an existing Scrapy project through the frontier.

Set ``ADDONS = {"webfountain.crawl.addon.FountainAddon": 500}``. The frontier stores only the requests that the
project's spiders yield; webfountain extracts no links itself. No request is lost in a restart. Each request is made
once, or again and again with WEBFOUNTAIN_RECRAWL. The project's settings keep their meaning; `project_pace` applies
DOWNLOAD_DELAY and similar settings. If WEBFOUNTAIN_COLLECTION names a collection file, the politeness rules of this
file replace DOWNLOAD_DELAY and similar settings.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.settings.default_settings import DOWNLOADER, DUPEFILTER_CLASS, SCHEDULER
from scrapy.utils.misc import load_object

from webfountain.crawl import engine

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

__all__ = ["FountainAddon"]

logger = logging.getLogger(__name__)

_SCHEDULER: Final = "webfountain.crawl.scheduler.FountainScheduler"
_DOWNLOADER: Final = "webfountain.crawl.downloader.FountainDownloader"
_MIDDLEWARES: Final = {
    "webfountain.crawl.middlewares.RefusingMiddleware": 100,
    "webfountain.crawl.middlewares.LandingMiddleware": 999,
}
_BESIDE: Final = "webfountain.crawl.project_robots.BesideMiddleware"
_ROBOTS_ORDER: Final = 100
_DOWNLOAD_HANDLER: Final = "webfountain.crawl.download_handler.FountainDownloadHandler"
_NEW_ITEMS: Final = "webfountain.crawl.new_items.NewItemsPipeline"
_BESIDE_THE_CRAWL: Final = {
    "webfountain.crawl.reporter.Reporter": 0,
    "webfountain.crawl.recording.Recording": 0,
    "webfountain.crawl.metrics_server.MetricsServer": 0,
}
_CONCURRENT_REQUESTS: Final = 256
"""Default of CONCURRENT_REQUESTS for a project that uses the politeness rules of a collection file."""
_WITHOUT_EFFECT: Final = (
    "JOBDIR",
    "SCHEDULER_PRIORITY_QUEUE",
    "SCHEDULER_DISK_QUEUE",
    "SCHEDULER_MEMORY_QUEUE",
    "SCHEDULER_START_DISK_QUEUE",
    "SCHEDULER_START_MEMORY_QUEUE",
)


class FountainAddon:
    """The Scrapy add-on, which puts the frontier in the place of the project's scheduler."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Replace Scrapy's components, such as the scheduler and the downloader, by webfountain's. The project's own
        download handlers stay in use.

        Commands that only inspect pages (`scrapy shell`, `fetch`, `parse`) keep Scrapy's components.
        """
        if engine.is_inspecting():
            return
        self._say_replaced(settings)
        _impose(settings, "SCHEDULER", _SCHEDULER)
        settings.set("DOWNLOADER", _DOWNLOADER, priority="addon")
        if settings.get("WEBFOUNTAIN_COLLECTION"):
            settings.set("CONCURRENT_REQUESTS", _CONCURRENT_REQUESTS, priority="addon")
        _impose(settings, "DOWNLOADER_MIDDLEWARES", _with_ours(settings.getdict("DOWNLOADER_MIDDLEWARES")))
        _impose(settings, "EXTENSIONS", {**settings.getdict("EXTENSIONS"), **_BESIDE_THE_CRAWL})
        if str(settings.get("DUPEFILTER_CLASS")).startswith("scrapy_redis."):
            _impose(settings, "DUPEFILTER_CLASS", DUPEFILTER_CLASS)  # the store knows which requests were made
        if settings.get("WEBFOUNTAIN_ITEMS") == "changed":
            _impose(settings, "ITEM_PIPELINES", {_NEW_ITEMS: -1000, **settings.getdict("ITEM_PIPELINES")})
        own = settings.getdict("DOWNLOAD_HANDLERS")
        ours = {scheme: _DOWNLOAD_HANDLER for scheme in ("http", "https") if scheme not in own}
        _impose(settings, "DOWNLOAD_HANDLERS", {**own, **ours})

    @staticmethod
    def _say_replaced(settings: BaseSettings) -> None:
        scheduler = settings.get("SCHEDULER")
        if scheduler not in (SCHEDULER, _SCHEDULER):
            logger.info("webfountain replaces SCHEDULER=%s", scheduler)
        if settings.get("DOWNLOADER") not in (DOWNLOADER, _DOWNLOADER):
            logger.info("DOWNLOADER=%s stays in use with its own delays", settings.get("DOWNLOADER"))
        idle = [name for name in _WITHOUT_EFFECT if (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["default"]]
        if idle:
            logger.info("webfountain stores the requests, so these settings have no effect: %s", ", ".join(idle))


def _impose(settings: BaseSettings, name: str, value: Any) -> None:
    """Give a setting a value that has priority over settings.py, custom_settings and the command line."""
    settings.set(name, value, priority=max(settings.getpriority(name) or 0, SETTINGS_PRIORITIES["project"]))


def _with_ours(own: dict[Any, int | None]) -> dict[Any, int | None]:
    """Return the project's downloader middlewares together with the middlewares of the add-on."""
    robots = [key for key in own if load_object(key) is RobotsTxtMiddleware]
    order = own[robots[-1]] if robots else _ROBOTS_ORDER
    return {**own, **dict.fromkeys(robots or [RobotsTxtMiddleware], None), _BESIDE: order, **_MIDDLEWARES}
