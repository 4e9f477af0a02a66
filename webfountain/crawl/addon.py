"""The add-on: all that an existing Scrapy project needs to schedule its requests by the frontier.

``ADDONS = {"webfountain.crawl.addon.FountainAddon": 500}``. Only what the project's spiders yield enters the
frontier: nothing is extracted and, without WEBFOUNTAIN_RECRAWL, nothing asked twice. Requests survive a restart;
callbacks, errbacks, cookies, retries and redirects stay Scrapy's. What is overridden is said in the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from webfountain.crawl.building import ADDON_SETTING

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

__all__ = ["FountainAddon"]

logger = logging.getLogger(__name__)

_SCHEDULER: Final = "webfountain.crawl.scheduler.FountainScheduler"
_MIDDLEWARES: Final = {
    "webfountain.crawl.downloader_middlewares.RefusingMiddleware": 100,
    "webfountain.crawl.downloader_middlewares.LandingMiddleware": 999,
}
_DOWNLOAD_HANDLER: Final = "webfountain.crawl.download_handler.FountainDownloadHandler"
_REPORTER: Final = "webfountain.crawl.extensions.Reporter"
_OVERRIDDEN: Final[dict[str, Any]] = {
    # Politeness is the ant's: these would put a second, blind queue behind it.
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS": 256,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 256,
    "CONCURRENT_REQUESTS_PER_IP": 0,
    "CONCURRENT_ITEMS": 1,  # Scrapy starts that many tasks for every response, 0.45 ms a page at 100
    "AUTOTHROTTLE_ENABLED": False,
    "ROBOTSTXT_OBEY": False,  # the ant asks for robots.txt, before a request is handed out
}


class FountainAddon:
    """Settings read before they are overridden: DOWNLOAD_DELAY, ROBOTSTXT_OBEY (see `building`)."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Install scheduler, middleware, extension, and the download handler where the project has none of its own."""
        before = {"delay": settings.getfloat("DOWNLOAD_DELAY"), "obey_robots": settings.getbool("ROBOTSTXT_OBEY")}
        settings.set(ADDON_SETTING, before, priority="addon")
        settings.set("SCHEDULER", _SCHEDULER, priority="project")
        self._override(settings)
        settings.set(
            "DOWNLOADER_MIDDLEWARES", {**settings.getdict("DOWNLOADER_MIDDLEWARES"), **_MIDDLEWARES}, "project"
        )
        settings.set("EXTENSIONS", {**settings.getdict("EXTENSIONS"), _REPORTER: 0}, "project")
        own = settings.getdict("DOWNLOAD_HANDLERS")
        ours = {scheme: _DOWNLOAD_HANDLER for scheme in ("http", "https") if scheme not in own}
        settings.set("DOWNLOAD_HANDLERS", {**own, **ours}, "project")

    @staticmethod
    def _override(settings: BaseSettings) -> None:
        """At project priority, because a project template sets some of these; the command line still wins."""
        changed = []
        for name, value in _OVERRIDDEN.items():
            if settings.get(name) != value:
                changed.append(f"{name}={settings.get(name)!r} -> {value!r}")
            settings.set(name, value, priority="project")
        if changed:
            logger.info("Politeness is the frontier's, so these settings are overridden: %s", ", ".join(changed))
