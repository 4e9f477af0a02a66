"""The add-on: all that an existing Scrapy project needs to schedule its requests by the frontier.

``ADDONS = {"webfountain.crawl.addon.FountainAddon": 500}``. Only what the project's spiders yield enters the
frontier: nothing is extracted and, without WEBFOUNTAIN_RECRAWL, nothing asked twice. Requests survive a restart;
callbacks, errbacks, cookies, retries and redirects stay Scrapy's. The project's settings stay as they are:
DOWNLOAD_DELAY and ROBOTSTXT_OBEY are read for the frontier (`session`) and hold in Scrapy's own way for what Scrapy
downloads beside it (files, images, `engine.download_async`). What is replaced is said in the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.settings.default_settings import DOWNLOADER, SCHEDULER
from scrapy.utils.misc import load_object

from webfountain.crawl import engine

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

__all__ = ["FountainAddon"]

logger = logging.getLogger(__name__)

_SCHEDULER: Final = "webfountain.crawl.scheduler.FountainScheduler"
_DOWNLOADER: Final = "webfountain.crawl.downloader.FountainDownloader"
_MIDDLEWARES: Final = {
    "webfountain.crawl.downloader_middlewares.RefusingMiddleware": 100,
    "webfountain.crawl.downloader_middlewares.LandingMiddleware": 999,
}
_BESIDE: Final = "webfountain.crawl.downloader_middlewares.BesideMiddleware"
_ROBOTS_ORDER: Final = 100
_DOWNLOAD_HANDLER: Final = "webfountain.crawl.download_handler.FountainDownloadHandler"
_REPORTER: Final = "webfountain.crawl.extensions.Reporter"
_CONCURRENT_REQUESTS: Final = 256
"""Where the project sets none: its default of 16 is for one site, and each is asked one request at a time."""
_WITHOUT_EFFECT: Final = (
    "JOBDIR",
    "SCHEDULER_PRIORITY_QUEUE",
    "SCHEDULER_DISK_QUEUE",
    "SCHEDULER_MEMORY_QUEUE",
    "SCHEDULER_START_DISK_QUEUE",
    "SCHEDULER_START_MEMORY_QUEUE",
)


class FountainAddon:
    """A component that the project has of its own stays, but for the scheduler."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Install scheduler, downloader, middlewares, extension, and the download handler where the project has none.

        Commands that only look (`scrapy shell`, `fetch`, `parse`) get none of them: they work as without the add-on.
        """
        if engine.is_inspecting():
            return
        self._say_replaced(settings)
        _impose(settings, "SCHEDULER", _SCHEDULER)
        settings.set("DOWNLOADER", _DOWNLOADER, priority="addon")
        settings.set("CONCURRENT_REQUESTS", _CONCURRENT_REQUESTS, priority="addon")
        _impose(settings, "DOWNLOADER_MIDDLEWARES", _with_ours(settings.getdict("DOWNLOADER_MIDDLEWARES")))
        _impose(settings, "EXTENSIONS", {**settings.getdict("EXTENSIONS"), _REPORTER: 0})
        own = settings.getdict("DOWNLOAD_HANDLERS")
        ours = {scheme: _DOWNLOAD_HANDLER for scheme in ("http", "https") if scheme not in own}
        _impose(settings, "DOWNLOAD_HANDLERS", {**own, **ours})

    @staticmethod
    def _say_replaced(settings: BaseSettings) -> None:
        scheduler = settings.get("SCHEDULER")
        if scheduler not in (SCHEDULER, _SCHEDULER):
            logger.info("webfountain schedules in the place of SCHEDULER=%s", scheduler)
        if settings.get("DOWNLOADER") not in (DOWNLOADER, _DOWNLOADER):
            logger.info("DOWNLOADER=%s stays: DOWNLOAD_DELAY delays requests in it again", settings.get("DOWNLOADER"))
        idle = [name for name in _WITHOUT_EFFECT if (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["default"]]
        if idle:
            logger.info("webfountain keeps the requests, so these settings have no effect: %s", ", ".join(idle))


def _impose(settings: BaseSettings, name: str, value: Any) -> None:
    """Set a setting whoever has set it before: settings.py, a spider's custom_settings, the command line."""
    settings.set(name, value, priority=max(settings.getpriority(name) or 0, SETTINGS_PRIORITIES["project"]))


def _with_ours(own: dict[Any, int | None]) -> dict[Any, int | None]:
    """The project's downloader middlewares and ours. Scrapy's for robots.txt serves what comes beside the frontier,
    where the project has put it."""
    robots = [key for key in own if load_object(key) is RobotsTxtMiddleware]
    order = own[robots[-1]] if robots else _ROBOTS_ORDER
    return {**own, **dict.fromkeys(robots or [RobotsTxtMiddleware], None), _BESIDE: order, **_MIDDLEWARES}
