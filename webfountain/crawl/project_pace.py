"""The delays between a Scrapy project's requests, as the project's settings require them.

Without a collection file, Scrapy's downloader slots apply these settings (`downloader`): DOWNLOAD_DELAY,
DOWNLOAD_DELAY_JITTER, CONCURRENT_REQUESTS_PER_DOMAIN, CONCURRENT_REQUESTS, DOWNLOAD_SLOTS, AutoThrottle and a request's
`download_slot`.

A site's downloader slot limits how many requests to the site the frontier hands out at a time. If a slot has a delay,
at most one request waits in its queue, so that slow sites do not fill the engine. A site may be delayed longer by
Retry-After, Crawl-delay, WEBFOUNTAIN_BACKOFF, WEBFOUNTAIN_DELAY_FACTOR or an unavailable robots.txt. A rule that delays
a site is logged once for the site.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from scrapy.core.downloader import Downloader
from scrapy.settings.default_settings import USER_AGENT

from webfountain.frontier.sites.politeness import SitePace
from webfountain.policy.tables import PolitenessTable
from webfountain.policy.units import Duration, PositiveDuration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request
    from scrapy.settings import BaseSettings

    from webfountain.config import FountainConfig
    from webfountain.frontier.sites.politeness import HoldRule

__all__ = ["ProjectPace", "SlotDelay", "user_agent_of"]

logger = logging.getLogger(__name__)

MAX_DELAY_S: Final = 300.0
"""Maximum delay by Crawl-delay or WEBFOUNTAIN_DELAY_FACTOR, in seconds, unless DOWNLOAD_DELAY is longer.
"""
MAX_REPORTS: Final = 1000
"""Maximum number of log lines about delays that rules such as Retry-After cause."""
_SETTINGS: Final[Mapping[HoldRule, str]] = {
    "Crawl-delay": "WEBFOUNTAIN_CRAWL_DELAY=False ignores it",
    "Retry-After": "WEBFOUNTAIN_RETRY_AFTER=False ignores it",
    "back-off": "WEBFOUNTAIN_BACKOFF is set",
    "robots.txt": "it cannot be fetched; ROBOTSTXT_OBEY=False ignores it",
}


def user_agent_of(settings: BaseSettings) -> str:
    """Return the User-Agent header of requests for robots.txt: USER_AGENT, or Scrapy's default."""
    given = " ".join(str(settings.get("USER_AGENT") or "").split())
    return given.encode("utf-8", "replace").decode("latin-1") or str(USER_AGENT)


class SlotDelay(NamedTuple):
    """The delay of a downloader slot. `jitter` is the fraction of the delay that is random."""

    seconds: float
    jitter: float

    @property
    def shortest(self) -> float:
        """The shortest time between two requests of the slot, in seconds."""
        return max(0.0, self.seconds * (1.0 - self.jitter))


class ProjectPace:
    """The settings of one project that control the rate of its requests."""

    def __init__(self, settings: BaseSettings, config: FountainConfig) -> None:
        self._settings = settings
        self._config = config
        self._slots: dict[str, Any] = settings.getdict("DOWNLOAD_SLOTS")
        most = settings.getint("CONCURRENT_REQUESTS_PER_IP") or settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self._concurrency = max(1, most)
        self._mixed: set[str] = set()
        """Hosts of requests with a `download_slot` that is not the host."""
        self._reported: set[tuple[str, HoldRule]] = set()

    def table(self) -> PolitenessTable:
        """Convert the project's settings to the `[politeness]` table of a collection file."""
        settings = self._settings
        delay = settings.getfloat("DOWNLOAD_DELAY")
        return PolitenessTable(
            user_agent=user_agent_of(settings),
            min_delay=Duration(delay),
            delay_factor=self._config.delay_factor,
            max_delay=Duration(max(MAX_DELAY_S, delay)),
            concurrency=max([self._concurrency, *map(self._concurrency_of, self._slots)]),
            per_ip=False,
            timeout=PositiveDuration(settings.getfloat("DOWNLOAD_TIMEOUT")),
        )

    def site_pace(self) -> SitePace:
        """Return the rules by which the frontier limits requests to each site."""
        config = self._config
        return SitePace(
            slots=self._slots_of_site,
            keeps_delay=False,
            crawl_delay=config.crawl_delay,
            retry_after=config.retry_after,
            back_off=config.backoff,
            lends=False,
            report=self._report,
        )

    def log_rules(self) -> None:
        """Log which settings and rules delay the requests of the project."""
        config, settings = self._config, self._settings
        extra = [
            name
            for name, holds in (
                ("Crawl-delay", config.crawl_delay and settings.getbool("ROBOTSTXT_OBEY")),
                ("Retry-After", config.retry_after),
                ("back-off", config.backoff),
                (f"{config.delay_factor:g} times the duration of a request", config.delay_factor > 0),
            )
            if holds
        ]
        logger.info(
            "The pace follows the project's settings: concurrency %d for a host, delay %g s%s%s; in addition: %s",
            self._concurrency,
            settings.getfloat("DOWNLOAD_DELAY"),
            ", AutoThrottle" if settings.getbool("AUTOTHROTTLE_ENABLED") else "",
            f", other rules for {', '.join(map(str, self._slots))}" if self._slots else "",
            ", ".join(extra) or "nothing",
        )

    def delay_of(self, downloader: Downloader, url: str) -> SlotDelay:
        """Return the current delay of the slot for a URL's host; AutoThrottle may change the delay."""
        host = urlsplit(url).hostname or ""
        slot = downloader.slots.get(host)
        if slot is not None:
            return SlotDelay(slot.delay, slot.jitter)
        rules = self._slots.get(host, {})
        return SlotDelay(float(rules.get("delay", downloader._delay)), downloader._jitter)

    def is_apart(self, request: Request) -> bool:
        """Return whether a request's `download_slot` is set and differs from its host."""
        host, chosen = urlsplit(request.url).hostname or "", request.meta.get(Downloader.DOWNLOAD_SLOT)
        if chosen is None or chosen == host:
            return False
        self._mixed.add(host)
        return True

    def waits_in_queue(self, downloader: Downloader, request: Request) -> bool:
        """Return whether a request may have to wait for the delay of its downloader slot."""
        is_mixed = self.is_apart(request) or (urlsplit(request.url).hostname or "") in self._mixed
        return not is_mixed and self.delay_of(downloader, request.url).seconds > 0

    def _concurrency_of(self, host: str) -> int:
        return max(1, int(self._slots.get(host, {}).get("concurrency", self._concurrency)))

    def _slots_of_site(self, site: str) -> int:
        return self._concurrency_of(urlsplit(site).hostname or "")

    def _report(self, site: str, rule: HoldRule, seconds: float) -> None:
        if (site, rule) not in self._reported and len(self._reported) < MAX_REPORTS:
            self._reported.add((site, rule))
            logger.info(
                "%s gets no request for %.3g s because of its %s (%s; logged once)",
                site,
                seconds,
                rule,
                _SETTINGS[rule],
            )
